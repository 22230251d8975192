"""The few fields of objects that scheduling reads.

Decoding a whole pod costs several times as much as decoding these fields.
What decides where a pod may run stays undecoded bytes (`Raw`): equal bytes
mean equal pods, so ten thousand pods of one template are interpreted once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Raw, field

from kube import usage
from kube.kinds.core import Taint
from kube.kinds.fields import View
from kube.kinds.meta import OwnerReference
from kube.usage import NOTHING, QueueAnnotations, RequestSpec
from kube.volcano import evictions, intake_times, reserved_room
from kube.volcano.task_topology import AFFINITY, ANTI_AFFINITY, TASK_ORDER
from kube.volcano.topology import ALLOCATED


class PodAnnotations(QueueAnnotations):
    """The annotations of a pod that say where it belongs."""

    role: str = field(default="", name="volcano.sh/task-spec")
    priority: str = field(default="", name="volcano.sh/task-priority")
    cooldown: str = field(default="", name="volcano.sh/cooldown-time")
    preemptable: str = field(default="", name="volcano.sh/preemptable")
    revocable: str = field(default="", name="volcano.sh/revocable-zone")


class Preemptable(View):
    """The annotation, or the label, that says whether something may be evicted."""

    preemptable: str = field(default="", name="volcano.sh/preemptable")


class PodLabels(Preemptable):
    """The labels that some clients use in place of the annotations."""

    cooldown: str = field(default="", name="volcano.sh/cooldown-time")
    role: str = field(default="", name="volcano.sh/task-spec")


class PodMeta(View):
    """A pod's metadata."""

    uid: str = ""
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None
    annotations: PodAnnotations | None = None
    labels: Raw = NOTHING
    owner_references: list[OwnerReference] | None = None


class PodSpecView(RequestSpec):
    """What a pod requests and where it may run."""

    node_selector: Raw = NOTHING
    affinity: Raw = NOTHING
    tolerations: Raw = NOTHING
    topology_spread_constraints: Raw = NOTHING
    volumes: Raw = NOTHING
    resource_claims: Raw = NOTHING
    priority: int | None = None
    priority_class_name: str | None = None
    preemption_policy: str | None = None
    scheduling_gates: list[dict[str, Any]] | None = None


class PodStatusView(View):
    """A pod's phase and conditions."""

    phase: str = ""
    conditions: Raw = NOTHING


class PodView(View):
    """A pod."""

    metadata: PodMeta = PodMeta()
    spec: PodSpecView = PodSpecView()
    status: PodStatusView = PodStatusView()


class NamespaceMeta(View):
    """A namespace's metadata."""

    labels: dict[str, str] | None = None


class NamespaceView(View):
    """A namespace."""

    metadata: NamespaceMeta = NamespaceMeta()


class NodeMeta(View):
    """A node's metadata."""

    labels: dict[str, str] | None = None


class NodeSpecView(View):
    """What keeps pods off a node."""

    unschedulable: bool | None = None
    taints: list[Taint] | None = None


class NodeCondition(View):
    """One condition of a node."""

    type: str = ""
    status: str = ""


class NodeStatusView(View):
    """What a node offers."""

    allocatable: dict[str, Any] | None = None
    capacity: dict[str, Any] | None = None
    conditions: list[NodeCondition] | None = None


class NodeView(View):
    """A node."""

    metadata: NodeMeta = NodeMeta()
    spec: NodeSpecView = NodeSpecView()
    status: NodeStatusView = NodeStatusView()


class GroupAnnotations(Preemptable):
    """The annotations of a pod group (reference/volcano-scheduler §1.4).

    Whether it may be evicted, and when it first was; how long it may wait (sla, under both names); how many of its pods must stay;
    how long it runs; when its job was created; when its reservation was released; its HyperNode; the topology of its tasks.
    """

    waits: str = field(default="", name="volcano.sh/sla-waiting-time")
    waits_too: str = field(default="", name="sla-waiting-time")
    least_available: str = field(default="", name="volcano.sh/jdb-min-available")
    most_unavailable: str = field(default="", name="volcano.sh/jdb-max-unavailable")
    estimate: str = field(default="", name=usage.ESTIMATE_ANNOTATION)
    job_made: str = field(default="", name=intake_times.JOB_CREATED)
    first_evicted: str = field(default="", name=evictions.FIRST_EVICTED)
    released: str = field(default="", name=reserved_room.RELEASED)
    hyper_node: str = field(default="", name=ALLOCATED)
    near: str = field(default="", name=AFFINITY)
    apart: str = field(default="", name=ANTI_AFFINITY)
    task_order: str = field(default="", name=TASK_ORDER)


class GroupMeta(View):
    """A pod group's metadata."""

    uid: str = ""
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None
    annotations: GroupAnnotations | None = None
    labels: Preemptable | None = None


class TopologyView(View):
    """How close together in the network pods should be."""

    mode: str | None = None
    highest_tier_allowed: int | None = None
    highest_tier_name: str | None = None


class SubGroupView(View):
    """A policy that forms sub-groups: pods of a group that start together."""

    name: str = ""
    label_selector: dict[str, Any] | None = None
    match_label_keys: list[str] | None = None
    sub_group_size: int | None = None
    min_sub_groups: int | None = None
    network_topology: TopologyView | None = None


class GroupSpec(View):
    """What must start together. minMembers, numMember and totalResources are the KEP's names (design §4)."""

    min_member: int | None = None
    min_members: int | None = None
    num_member: int | None = None
    min_task_member: dict[str, int] | None = None
    queue: str | None = None
    priority_class_name: str | None = None
    min_resources: dict[str, Any] | None = None
    total_resources: dict[str, Any] | None = None
    network_topology: TopologyView | None = None
    sub_group_policy: list[SubGroupView] | None = None


class GroupCondition(View):
    """One condition of a pod group."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""
    transition_id: str = ""


def find_condition(conditions: Iterable[GroupCondition], kind: str) -> GroupCondition | None:
    """Return the condition of a type; None where a status has none."""
    return next((each for each in conditions if each.type == kind), None)


class GroupStatus(View):
    """What the scheduler last said about a group."""

    phase: str = ""
    conditions: list[GroupCondition] | None = None
    running: int = 0
    succeeded: int = 0
    failed: int = 0


class GroupView(View):
    """A pod group."""

    metadata: GroupMeta = GroupMeta()
    spec: GroupSpec = GroupSpec()
    status: GroupStatus = GroupStatus()


class GuaranteeView(View):
    """A queue's guarantee."""

    resource: dict[str, Any] | None = None


class NodeGroupsView(View):
    """Names of node groups."""

    required_during_scheduling_ignored_during_execution: list[str] | None = None
    preferred_during_scheduling_ignored_during_execution: list[str] | None = None


class QueueAffinityView(View):
    """Which node groups a queue uses, and which it avoids."""

    node_group_affinity: NodeGroupsView | None = None
    node_group_anti_affinity: NodeGroupsView | None = None


class QueueSpecView(View):
    """A queue's share of the cluster, and its place among queues."""

    capability: dict[str, Any] | None = None
    deserved: dict[str, Any] | None = None
    guarantee: GuaranteeView | None = None
    parent: str | None = None
    weight: int | None = None
    priority: int | None = None
    dequeue_strategy: str | None = None
    reclaimable: bool | None = None
    affinity: QueueAffinityView | None = None


class QueueNotes(View):
    """The annotations of a queue."""

    shut_since: str = field(default="", name=intake_times.SHUT_SINCE)


class QueueMeta(View):
    """A queue's metadata."""

    creation_timestamp: str = ""
    annotations: QueueNotes | None = None


class QueueStatusView(View):
    """A queue's state."""

    state: str = ""


class QueueView(View):
    """A queue."""

    metadata: QueueMeta = QueueMeta()
    spec: QueueSpecView = QueueSpecView()
    status: QueueStatusView = QueueStatusView()


class QuotaSpecView(View):
    """What a quota allows, and for which pods."""

    hard: dict[str, Any] | None = None
    scopes: list[Any] | None = None
    scope_selector: Any = None


class QuotaStatusView(View):
    """What is used of a quota."""

    used: dict[str, Any] | None = None


class QuotaView(View):
    """A ResourceQuota."""

    spec: QuotaSpecView = QuotaSpecView()
    status: QuotaStatusView = QuotaStatusView()
