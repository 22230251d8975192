"""What a cycle decided, as plain values. scheduler.writes turns them into writes."""

from __future__ import annotations

from dataclasses import dataclass, field

from kube.meta import Object
from scheduler.policy.actions import Action
from scheduler.records.records import Orphan, Pod

MOVED = "NodeAboveTarget"  # why a pod ends that is moved, as its condition DisruptionTarget says
ROOM = (
    "/room"  # ends the key of the writes by which pods are asked to end for a group: it may be bound though those fail
)


@dataclass(frozen=True, slots=True)
class Bind:
    """A pod gets a node."""

    pod: Pod
    node: str


@dataclass(frozen=True, slots=True)
class Note:
    """A waiting pod is told why."""

    pod: Pod
    message: str


@dataclass(frozen=True, slots=True)
class Report:
    """An event on the pod group; type is Normal or Warning."""

    type: str
    reason: str
    message: str


Need = tuple[int, list[int]]
"""At least so many of the binds at these places."""


@dataclass(slots=True)
class GroupDecision:
    """What happens to one pod group: all of binds, status and report, or nothing.

    status holds only the fields that change, as a merge patch. uid is empty
    when there is no such group; then there are only notes. minima are what the
    group lacks of its own, as (how many, of which binds by their places).
    announced is the status that says that the binds are under way, as a merge
    patch. given_back are pods that must not keep their nodes. What is kept of the decision (`scheduler.decided`) also takes: its
    queue, how many pods must start together, whether so many run already, the reason of a refusal that is news, with the
    sentence, and whether it was let in after it had been kept waiting. never tells of the refusal that nothing which ends mends it. hyper_node is
    what its annotation says from now on, "" for nothing; None leaves it.
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
    """Pods without a group get one; it is created unless it exists."""

    namespace: str
    name: str
    queue: str
    create: bool
    pods: list[Orphan]


@dataclass(frozen=True, slots=True)
class Eviction:
    """A pod has to go, so that a waiting pod group may have its room.

    action is preempt or reclaim, beneficiary the key of the group, message what people read on the pod that goes, queue that
    of the group that loses it. noted_on is the uid of that group where it has to be noted there that it was evicted, "" otherwise. Where the time of its node is over, action is None and beneficiary the key of its own group; so is
    it for shuffle, by which the pod goes to be made again and get another node.
    """

    pod: Pod
    action: Action | None
    beneficiary: str
    message: str
    queue: str = ""
    noted_on: str = ""


@dataclass(slots=True)
class Decisions:
    """All of a cycle.

    wake is when to look again although nothing changed, or None. reported are the keys of the groups whose status says everything that the cycle
    decided (see `Groups.settled`).
    """

    groups: list[GroupDecision] = field(default_factory=list)
    adoptions: list[Adoption] = field(default_factory=list)
    evictions: list[Eviction] = field(default_factory=list)
    wake: int | None = None
    reported: list[str] = field(default_factory=list)

    def wake_at(self, due: int) -> None:
        """Ask to be woken at due, or sooner."""
        self.wake = due if self.wake is None else min(self.wake, due)
