"""What a cycle decided, as plain values. scheduler.writes turns them into writes."""

from __future__ import annotations

from dataclasses import dataclass, field

from kube.meta import Object
from scheduler.policy.actions import Action
from scheduler.records.records import Orphan, Pod

MOVED = "NodeAboveTarget"  # the reason in the condition DisruptionTarget of a pod that is moved
ROOM = "/room"  # suffix of the key of the writes that evict pods for a group: it may be bound even if they fail


@dataclass(frozen=True, slots=True)
class Bind:
    """A pod gets a node."""

    pod: Pod
    node: str


@dataclass(frozen=True, slots=True)
class Note:
    """Why a pod waits, as its condition says."""

    pod: Pod
    message: str


@dataclass(frozen=True, slots=True)
class Report:
    """An event on the pod group; type is Normal or Warning."""

    type: str
    reason: str
    message: str


Need = tuple[int, list[int]]
"""At least this many of the binds at these indexes."""


@dataclass(slots=True)
class GroupDecision:
    """What happens to one pod group: all of binds, status and report, or nothing.

    uid is empty when there is no such group; then there are only notes. status
    holds only the fields that change, as a merge patch; announced, also one,
    says that the binds are under way. minima are the group's own minima over
    its binds. given_back are pods that must not keep their nodes. hyper_node
    is the new value of its annotation, "" to remove it, None to leave it.
    The rest is for `scheduler.decided`: queue; needed, how many pods must start
    together; started, whether that many run already; refusal, (reason, sentence)
    where it is new; let_in, whether it was admitted after it had waited. never:
    nothing that ends lifts the refusal.
    """

    namespace: str
    name: str
    uid: str
    binds: list[Bind] = field(default_factory=list)
    status: Object = field(default_factory=dict)
    report: Report | None = None
    notes: list[Note] = field(default_factory=list)
    minima: list[Need] = field(default_factory=list)
    announced: Object = field(default_factory=dict)
    given_back: list[Pod] = field(default_factory=list)
    hyper_node: str | None = None
    queue: str = ""
    needed: int = 0
    started: bool = False
    refusal: tuple[str, str] | None = None
    never: bool = False
    let_in: bool = False

    @property
    def key(self) -> str:
        """namespace/name of the pod group."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Adoption:
    """Pods without a group get one; create is False where it exists already."""

    namespace: str
    name: str
    queue: str
    create: bool
    pods: list[Orphan]


@dataclass(frozen=True, slots=True)
class Eviction:
    """A pod is evicted, so that a waiting pod group can have its room.

    action is preempt or reclaim, beneficiary the key of the waiting group, message what people read on the evicted pod. queue is
    that of the group that loses the pod; noted_on is that group's uid if its first eviction has to be noted on it, else "".
    When the revocable zone of its node closes, action is None and beneficiary the key of its own group. So is beneficiary for shuffle,
    which evicts a pod so that it is made again on another node.
    """

    pod: Pod
    action: Action | None
    beneficiary: str
    message: str
    queue: str = ""
    noted_on: str = ""


@dataclass(slots=True)
class Decisions:
    """Everything that a cycle decided.

    wake is when to run again (ms) although nothing changed, or None. reported are the keys of the groups whose status says
    everything that the cycle decided (see `Groups.settled`).
    """

    groups: list[GroupDecision] = field(default_factory=list)
    adoptions: list[Adoption] = field(default_factory=list)
    evictions: list[Eviction] = field(default_factory=list)
    wake: int | None = None
    reported: list[str] = field(default_factory=list)

    def wake_at(self, due: int) -> None:
        """Ask to be woken at due (ms), or sooner."""
        self.wake = due if self.wake is None else min(self.wake, due)
