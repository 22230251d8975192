"""Queue and PodGroup of `scheduling.volcano.sh/v1beta1` (reference: volcano-queue-podgroup-cli §1, §3)."""

from __future__ import annotations

from enum import StrEnum

from kube.kinds.fields import AnyObject, Quantities, View
from kube.kinds.meta import Condition, ObjectMeta


class QueueState(StrEnum):
    """Whether a queue takes work."""

    OPEN = "Open"
    CLOSED = "Closed"
    CLOSING = "Closing"
    UNKNOWN = "Unknown"


class PodGroupPhase(StrEnum):
    """Where a group of pods is in its life."""

    PENDING = "Pending"
    INQUEUE = "Inqueue"
    RUNNING = "Running"
    UNKNOWN = "Unknown"
    COMPLETED = "Completed"


class DequeueStrategy(StrEnum):
    """What a queue does when its first job cannot start: wait for it, or try the next."""

    FIFO = "fifo"
    TRAVERSE = "traverse"


class Guarantee(View):
    """What is reserved for a queue and never lent."""

    resource: Quantities = {}


class NodeGroups(View):
    """Names of groups of nodes."""

    required_during_scheduling_ignored_during_execution: list[str] = []
    preferred_during_scheduling_ignored_during_execution: list[str] = []


class QueueAffinity(View):
    """Which node groups a queue uses, and which it avoids."""

    node_group_affinity: NodeGroups = NodeGroups()
    node_group_anti_affinity: NodeGroups = NodeGroups()


class QueueSpec(View):
    """The desired state of a queue; `state` is that of the queue state design (seed 001)."""

    weight: int = 0
    capability: Quantities = {}
    deserved: Quantities = {}
    guarantee: Guarantee = Guarantee()
    reclaimable: bool | None = None
    parent: str = ""
    affinity: QueueAffinity = QueueAffinity()
    state: str = ""
    type: str = ""
    priority: int = 0
    dequeue_strategy: str = ""


class QueueStatus(View):
    """What a queue is and holds."""

    state: str = ""
    reason: str = ""
    message: str = ""
    allocated: Quantities = {}
    reservation: AnyObject | None = None
    pending: int = 0
    running: int = 0
    unknown: int = 0
    inqueue: int = 0
    completed: int = 0


class Queue(View):
    """A share of the cluster that jobs are submitted to."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: QueueSpec = QueueSpec()
    status: QueueStatus = QueueStatus()


class PodGroupStatus(View):
    """How far the group has come."""

    phase: str = ""
    conditions: list[Condition] = []
    running: int = 0
    succeeded: int = 0
    failed: int = 0
