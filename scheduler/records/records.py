"""What the snapshot keeps of an object."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, auto

import msgspec

from kube.amounts import Amounts
from kube.kinds.meta import OwnerReference
from kube.kinds.scheduling import DequeueStrategy, PodGroupPhase
from kube.usage import queue_named
from kube.volcano import intake_times, reserved_room, task_topology
from kube.volcano.reserved_room import Reservation
from kube.volcano.task_topology import TaskTopology
from scheduler.records.demands import Demands
from scheduler.records.reading import GroupCondition, GroupView, PodAnnotations, Preemptable, SubGroupView
from scheduler.records.shapes import PodShape


class TaskStatus(IntEnum):
    """The status of a pod, in Volcano's words (reference/volcano-scheduler §1.3). Numbers, because they are hashed often."""

    PENDING = auto()
    BOUND = auto()
    RUNNING = auto()
    RELEASING = auto()
    SUCCEEDED = auto()
    FAILED = auto()
    UNKNOWN = auto()

    @property
    def title(self) -> str:
        """The word in messages."""
        return self.name.capitalize()


HOLDING = frozenset((TaskStatus.BOUND, TaskStatus.RUNNING, TaskStatus.RELEASING, TaskStatus.UNKNOWN))
"""Pods that use their node."""

READY = frozenset((TaskStatus.BOUND, TaskStatus.RUNNING, TaskStatus.SUCCEEDED))
"""Pods that count for the minimum of their gang."""


_TRUE = ("1", "t", "T", "true", "TRUE", "True")


def preemptable(annotations: Preemptable | PodAnnotations | None, labels: Preemptable | None) -> bool | None:
    """Return the value of the annotation, else of the label; None when neither is set. Anything but a true value means False (§1.3)."""
    text = (annotations.preemptable if annotations else "") or (labels.preemptable if labels else "")
    return text in _TRUE if text else None


@dataclass(slots=True, eq=False)
class Pod:
    """A pod. group is the key of its pod group, "" when it names none or has another scheduler; wish is the queue that it names.

    controlled: its controller makes it again when it is deleted. labels are undecoded, a part of the body that conditions
    keep in memory anyway: the labels of few pods are ever read (`scheduler.snapshot.pod_relations`).
    preemptable: its own setting whether it may be evicted, None if it has none. preempts: others may be
    evicted for it. cooldown: for how many ms after it got its node it asks not to be evicted. revocable: it may be on nodes of
    revocable zones (tdm).
    """

    namespace: str
    name: str
    uid: str
    created: int
    group: str
    wish: str
    ours: bool
    role: str
    shape: PodShape
    node: str
    status: TaskStatus
    gated: bool
    priority: int | None
    priority_class: str
    conditions: msgspec.Raw
    deleting: bool
    controlled: bool
    claims: tuple[str, ...]
    labels: msgspec.Raw
    demands: Demands | None
    preemptable: bool | None = None
    preempts: bool = True
    cooldown: int = 0
    revocable: bool = False

    @property
    def key(self) -> str:
        """namespace/name."""
        return f"{self.namespace}/{self.name}"

    @property
    def holds(self) -> bool:
        """Whether it has a node and uses it."""
        return self.status in HOLDING and bool(self.node)

    @property
    def is_barred(self) -> bool:
        """Whether it cannot be placed yet, whatever room there is; no room is promised to it."""
        return self.gated or self.shape.constraint is not None


@dataclass(slots=True, eq=False)
class Orphan:
    """A pod of this scheduler that names no group; one will be created for it."""

    pod: Pod
    owner: OwnerReference | None


class Group:
    """A pod group, or what is known of one that pods name but that does not exist (view is None)."""

    __slots__ = (
        "barred",
        "changed",
        "counts",
        "created",
        "holders",
        "key",
        "min_resources",
        "name",
        "namespace",
        "pending",
        "ready_roles",
        "shapes",
        "succeeded",
        "uid",
        "view",
    )

    def __init__(self, namespace: str, name: str) -> None:
        self.namespace, self.name, self.key = namespace, name, f"{namespace}/{name}"
        self.view: GroupView | None = None
        self.uid = ""
        self.created = 0
        self.changed = 0
        self.min_resources: tuple[tuple[str, int], ...] | None = None
        self.counts: Counter[TaskStatus] = Counter()
        self.ready_roles: Counter[str] = Counter()
        self.pending: dict[str, Pod] = {}
        self.barred: Counter[PodShape] = Counter()
        """Its waiting pods that cannot be placed yet, by shape."""
        self.shapes: Counter[PodShape] = Counter()
        """Its pods that use a node, by shape."""
        self.holders: dict[str, Pod] = {}
        self.succeeded: dict[str, Pod] = {}

    @property
    def exists(self) -> bool:
        """Whether the object exists."""
        return self.view is not None

    @property
    def phase(self) -> str:
        """The phase last written."""
        return self.view.status.phase if self.view else ""

    @property
    def is_outside(self) -> bool:
        """Whether it has not been admitted yet."""
        return self.phase in ("", PodGroupPhase.PENDING)

    @property
    def queue(self) -> str:
        """The queue it is in."""
        return queue_named(self.view.spec.queue if self.view else "")

    @property
    def priority_class(self) -> str:
        """The priority class it names."""
        return (self.view.spec.priority_class_name if self.view else "") or ""

    @property
    def preemptable(self) -> bool | None:
        """Its setting whether its pods may be evicted; None if it has none."""
        return preemptable(self.view.metadata.annotations, self.view.metadata.labels) if self.view else None

    @property
    def waits(self) -> str:
        """How long it may wait before it is admitted, as it states; "" where it does not."""
        notes = self.view.metadata.annotations if self.view else None
        return (notes.waits or notes.waits_too) if notes else ""

    @property
    def estimate(self) -> str:
        """How long it will run once it has started, as its job states; "" where it does not."""
        notes = self.view.metadata.annotations if self.view else None
        return notes.estimate if notes else ""

    @property
    def submitted_at(self) -> int:
        """When it was submitted, in ms: when its job was created, else when the group was."""
        notes = self.view.metadata.annotations if self.view else None
        made = intake_times.moment(notes.job_made) if notes else None
        return self.created if made is None else made

    @property
    def first_evicted(self) -> int | None:
        """When pods of it were first evicted for others, in ms; None where none was."""
        notes = self.view.metadata.annotations if self.view else None
        return intake_times.moment(notes.first_evicted) if notes else None

    @property
    def released(self) -> int:
        """When somebody gave back its reservation, in ms; 0 where nobody did."""
        return reserved_room.released_at(self._released)

    @property
    def _released(self) -> str:
        notes = self.view.metadata.annotations if self.view else None
        return notes.released if notes else ""

    def has_released(self, reservation: Reservation) -> bool:
        """Tell whether somebody gave back a reservation."""
        return reserved_room.is_released(reservation, self._released)

    @property
    def conditions(self) -> Sequence[GroupCondition]:
        """The conditions in its status."""
        return (self.view.status.conditions if self.view else None) or ()

    @property
    def policies(self) -> Sequence[SubGroupView]:
        """The policies by which its pods form sub-groups."""
        return (self.view.spec.sub_group_policy if self.view else None) or ()

    @property
    def is_arranged(self) -> bool:
        """Whether it has a network topology or sub-groups."""
        return self.view is not None and (
            self.view.spec.network_topology is not None or bool(self.view.spec.sub_group_policy)
        )

    @property
    def hyper_node(self) -> str:
        """The HyperNode in its annotation; "" where there is none."""
        notes = self.view.metadata.annotations if self.view else None
        return notes.hyper_node if notes else ""

    @property
    def task_topology(self) -> TaskTopology | None:
        """The affinities, anti-affinities and order of its tasks; None where it states none."""
        notes = self.view.metadata.annotations if self.view else None
        return task_topology.read(notes.near, notes.apart, notes.task_order) if notes else None

    @property
    def min_member(self) -> int:
        """How many pods must start together; also under the names of the KEP."""
        if self.view is None:
            return 0
        spec = self.view.spec
        for value in (spec.min_member, spec.min_members, spec.num_member):
            if value is not None:
                return max(value, 0)
        return 0

    @property
    def roles(self) -> Mapping[str, int]:
        """The minimum of pods of each task that has one."""
        return (self.view.spec.min_task_member if self.view else None) or {}

    @property
    def total(self) -> int:
        """How many pods it has."""
        return self.counts.total()

    def ready(self) -> int:
        """Return how many pods count for the minimum."""
        return sum(self.counts[status] for status in READY)

    def scheduled(self) -> int:
        """Return how many pods got a node so far, finished ones included."""
        return self.total - self.counts[TaskStatus.PENDING] - self.counts[TaskStatus.UNKNOWN]

    def is_waiting(self) -> bool:
        """Whether each cycle must look at it."""
        if self.pending or self.view is None:
            return bool(self.pending)
        if self.phase in (PodGroupPhase.PENDING, PodGroupPhase.INQUEUE, ""):
            return True
        return self.phase != PodGroupPhase.COMPLETED and self.scheduled() < self.min_member


@dataclass(frozen=True, slots=True)
class GroupAffinity:
    """The node groups that a queue requires, prefers, must not use (excluded) and prefers not to use (avoided)."""

    required: tuple[str, ...] = ()
    preferred: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    avoided: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Quota:
    """A ResourceQuota without scopes: what it allows, and what is used of that."""

    hard: Amounts
    used: Amounts


@dataclass(slots=True)
class Queue:
    """A queue: its state, its place among queues, and its share of the cluster.

    capability is a limit (absent resource = unlimited), guarantee is reserved for
    it, deserved is its fair share of the resources named there, weight decides
    its share of the others. created is in epoch milliseconds. reclaimable: queues
    that have less than they deserve may take back what it has beyond its share.
    shut_since: since when it is not Open, None where that is not known.
    """

    name: str
    state: str
    capability: Amounts
    parent: str = ""
    guarantee: Amounts = field(default_factory=dict)
    deserved: Amounts = field(default_factory=dict)
    weight: int = 1
    priority: int = 0
    created: int = 0
    strategy: str = DequeueStrategy.TRAVERSE
    reclaimable: bool = True
    affinity: GroupAffinity | None = None
    shut_since: int | None = None
