"""Queue and PodGroup of `scheduling.volcano.sh/v1beta1` (reference: volcano-queue-podgroup-cli §1, §3)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from kube.kinds.fields import (
    AnyObject,
    Count,
    DnsSubdomain,
    Int32,
    Positive,
    Quantities,
    Text253,
    View,
    keywords,
    one_of,
)
from kube.meta import Condition, ObjectMeta


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


class TopologyMode(StrEnum):
    """Whether a network topology must or should be kept."""

    HARD = "hard"
    SOFT = "soft"


class NetworkTopology(View):
    """How close together in the network pods must be."""

    mode: Annotated[str, one_of(TopologyMode)] = ""
    highest_tier_allowed: Count | None = None
    highest_tier_name: Text253 = ""


class Guarantee(View):
    """What is kept for a queue and never lent."""

    resource: Quantities = {}


class NodeGroups(View):
    """Node groups that a queue must or should use, or avoid."""

    required_during_scheduling_ignored_during_execution: list[str] = []
    preferred_during_scheduling_ignored_during_execution: list[str] = []


class QueueAffinity(View):
    """Which node groups a queue uses."""

    node_group_affinity: NodeGroups | None = None
    node_group_anti_affinity: NodeGroups | None = None


class ExtendCluster(View):
    """Another cluster that a queue may forward jobs to."""

    name: str = ""
    weight: Int32 = 0
    capacity: Quantities = {}


class QueueSpec(View):
    """What is wished of a queue; `state` is the wish of the queue state design (seed 001)."""

    weight: Annotated[int, keywords(minimum=1, maximum=65535)] = 0
    capability: Quantities = {}
    deserved: Quantities = {}
    guarantee: Guarantee = Guarantee()
    reclaimable: bool | None = None
    parent: DnsSubdomain = ""
    state: Annotated[str, one_of((QueueState.OPEN, QueueState.CLOSED))] = ""
    affinity: QueueAffinity | None = None
    type: Text253 = ""
    extend_clusters: list[ExtendCluster] = []
    priority: Count = 0
    dequeue_strategy: Annotated[str, one_of(DequeueStrategy)] = ""


class QueueStatus(View):
    """What a queue is and holds."""

    state: Annotated[str, one_of(QueueState)] = ""
    reason: str = ""
    message: str = ""
    allocated: Quantities = {}
    reservation: AnyObject | None = None
    pending: Count = 0
    running: Count = 0
    unknown: Count = 0
    inqueue: Count = 0
    completed: Count = 0


class Queue(View):
    """A share of the cluster that jobs are submitted to."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: QueueSpec = QueueSpec()
    status: QueueStatus = QueueStatus()


class SubGroupPolicy(View):
    """How the pods of a group form smaller gangs."""

    name: Text253 = ""
    label_selector: AnyObject | None = None
    match_label_keys: list[str] = []
    sub_group_size: Positive | None = None
    min_sub_groups: Count = 0
    network_topology: NetworkTopology | None = None


class PodGroupSpec(View):
    """How many pods must start together, and with what."""

    min_member: Count = 0
    min_task_member: dict[str, Count] = {}
    queue: DnsSubdomain = ""
    priority_class_name: DnsSubdomain = ""
    min_resources: Quantities | None = None
    network_topology: NetworkTopology | None = None
    sub_group_policy: list[SubGroupPolicy] = []


class PodGroupStatus(View):
    """How far the group has come."""

    phase: Annotated[str, one_of(PodGroupPhase)] = ""
    conditions: list[Condition] = []
    running: Count = 0
    succeeded: Count = 0
    failed: Count = 0


class PodGroup(View):
    """Pods that start together or not at all."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()
