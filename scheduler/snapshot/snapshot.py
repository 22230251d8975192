"""The world as the scheduler sees it, kept up to date from the log.

A change costs the same whatever the size of the cluster: a pod event changes a few counters and adds a vector to a row.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

import msgspec

from kube import resources, usage
from kube.priorities import PriorityClasses
from kube.volcano import scheduler_configuration, topology
from kube.volcano.topology import HyperNode
from scheduler.engine.hyper_nodes import HyperNodes
from scheduler.gangs.evictable import Evictable, evictable
from scheduler.gangs.fruitless import Fruitless
from scheduler.gangs.gang_layout import lay_out
from scheduler.gangs.layout import Layout
from scheduler.policy.config_map import Configuration
from scheduler.policy.policy import Policy
from scheduler.records import claims, reading
from scheduler.records.budgets import Budget, budget_of
from scheduler.records.decoding import decode, time_of
from scheduler.records.load import Loads
from scheduler.records.network import hyper_nodes_of
from scheduler.records.pods import is_orphan, pod_record
from scheduler.records.queues import queue_record
from scheduler.records.quotas import quota_record
from scheduler.records.records import READY, Group, Orphan, Pod, Queue, Quota, TaskStatus
from scheduler.records.shapes import readable
from scheduler.snapshot.groups import Groups
from scheduler.snapshot.nodes import NodeTable
from scheduler.snapshot.pod_relations import PodRelations, demands_in_force
from scheduler.snapshot.queue_usage import QueueUsage

log = logging.getLogger(__name__)
T = TypeVar("T")


class Changed(Protocol):
    """The fields of a change that apply() needs; cluster.store.Change has them."""

    @property
    def resource(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def verb(self) -> str: ...
    @property
    def at(self) -> int: ...
    @property
    def body(self) -> bytes: ...


@dataclass
class Memory:
    """What cycles remember; a scheduler without it decides the same, if later or at greater cost. Times are in ms.

    fruitless    failed searches for victims or room, which are costly, by what makes gangs alike
    revoked      when pods were last evicted because their revocable zone was closed
    rescheduled  when it was last checked whether pods are to be moved
    """

    fruitless: dict[tuple[object, ...], Fruitless] = field(default_factory=dict)
    revoked: int = 0
    rescheduled: int = 0


class Snapshot:
    """Nodes, HyperNodes, pods, pod groups, queues, priority classes, claims, quotas and budgets; see apply().

    schedulers are the names of this scheduler. With heeds_claims pods wait for their claims; the embedded cluster ignores claims.
    """

    def __init__(self, schedulers: Collection[str] = usage.VOLCANO_ALONE, *, heeds_claims: bool = False) -> None:
        self._schedulers, self._heeds_claims = schedulers, heeds_claims
        self.memory = Memory()
        self.changes = 0
        """How many changes were applied: while this is the same, so is everything that depends only on the snapshot."""
        self.configuration = Configuration()
        self.priority_classes = PriorityClasses()
        # Nodes, and the pods that run on them or wait for them.
        self.pods: dict[str, Pod] = {}
        self._namespace_labels: dict[str, dict[str, str]] = {}
        self.nodes = NodeTable(PodRelations(self.pods, self._namespace_labels))
        self.loads = Loads()
        self.orphans: dict[str, Orphan] = {}
        self.releasing: dict[str, Pod] = {}
        """Pods that are being deleted and still hold their nodes."""
        self.cooling: dict[str, Pod] = {}
        """Pods with a node and a cooldown, whether or not that time is over."""
        self._bound_claims: set[str] = set()
        self._hyper_nodes: dict[str, HyperNode] = {}
        self._network: tuple[object, HyperNodes] | None = None
        # The groups and queues that share the nodes, and their limits.
        self.groups = Groups()
        self.queues: dict[str, Queue] = {}
        self._children: Counter[str] = Counter()
        self.usage = QueueUsage()
        self.quotas: dict[str, dict[str, Quota]] = {}
        """By namespace and name."""
        self.budgets: dict[str, dict[str, Budget]] = {}
        """The PodDisruptionBudgets of the namespaces that have some, by name."""

    @property
    def policy(self) -> Policy:
        """The policy of the configuration in force."""
        return self.configuration.policy

    def apply(self, change: Changed) -> None:
        """Apply one change. An object that cannot be read counts as absent."""
        self.changes += 1
        handler = _HANDLERS.get(change.resource)
        if handler is None:
            return
        try:
            handler(self, change, change.verb != "DELETED")
        except msgspec.ValidationError as error:
            log.warning("object cannot be read: %s %s/%s: %s", change.resource, change.namespace, change.name, error)
            handler(self, change, False)

    def priority_of(self, class_name: str) -> int:
        """Return the priority for a class name, which may be "" or of no class."""
        return self.priority_classes.value(class_name)

    def preempts(self, class_name: str) -> bool:
        """Tell whether pods may be evicted for groups of a priority class."""
        return self.priority_classes.find(class_name).preempts

    def has_children(self, queue: str) -> bool:
        """Tell whether a queue has queues below it."""
        return queue in self._children

    def layout_of(self, group: Group) -> Layout:
        """Return the layout of a group; it is cached until the group or one of its pods changes."""
        layout = self.groups.layouts.get(group.key)
        if layout is None:
            layout = self.groups.layouts[group.key] = lay_out(group, self.priority_of, self.policy.tasks)
        return layout

    def evictable_of(self, group: Group) -> Evictable:
        """Return which pods of a group may be evicted; cached until the group or one of its pods changes."""
        found = self.groups.evictable.get(group.key)
        if found is None:
            found = self.groups.evictable[group.key] = evictable(group, self.priority_of)
        return found

    def hyper_nodes(self) -> HyperNodes:
        """Return the HyperNodes over the current nodes; cached until a HyperNode, or the labels of a node, change."""
        labels = self.nodes.labels()
        if self._network is None or self._network[0] is not labels:
            self._network = labels, hyper_nodes_of(self._hyper_nodes, labels)
        return self._network[1]

    def unbound_claim(self, group: Group) -> str:
        """Return the first unbound claim that a waiting pod of a group names; "" when there is none."""
        named = {f"{group.namespace}/{claim}" for pod in group.pending.values() for claim in pod.claims}
        return min(named - self._bound_claims, default="").partition("/")[2]

    # Pods

    def _pod(self, change: Changed, exists: bool) -> None:
        key = f"{change.namespace}/{change.name}"
        self.orphans.pop(key, None)
        pod = self._read_pod(change, key) if exists else None
        relations = self.nodes.relations
        if pod is not None and pod.demands is not None:
            self._profile(relations.add(demands_in_force(pod)))
        old = self.pods.get(key)
        self._replace(key, old, pod, change.at)
        if old is not None and old.demands is not None:
            self._profile(relations.remove(demands_in_force(old)))

    def _replace(self, key: str, old: Pod | None, pod: Pod | None, at: int) -> None:
        """Replace a pod by its new state, counted with the shape of its current profile."""
        relations = self.nodes.relations
        if pod is not None:
            if (profile := relations.profile(pod)) != pod.shape.profile:
                pod.shape = self.nodes.with_profile(pod.shape, profile)
            self.nodes.hold(pod.shape, 1)
        if old is not None:
            relations.index(key, self.pods.pop(key), present=False)
        may_change_status = old is None or pod is None or (old.group, old.status) != (pod.group, pod.status)
        if old is not None:
            self._count(old, -1, at, may_change_status=may_change_status, is_last=pod is None or pod.group != old.group)
        if pod is not None:
            self.pods[key] = pod
            relations.index(key, pod, present=True)
            self._count(pod, 1, at, may_change_status=may_change_status)
        if old is not None:
            self.nodes.hold(old.shape, -1)

    def _profile(self, keys: Iterable[str]) -> None:
        """Give pods the shape of their current profile; most have it already."""
        for key in keys:
            old = self.pods[key]
            if self.nodes.relations.profile(old) == old.shape.profile:
                continue
            pod = replace(old)
            self._replace(key, old, pod, 0)
            orphan = self.orphans.get(key)
            if orphan is not None and orphan.pod is old:
                self.orphans[key] = Orphan(pod, orphan.owner)

    def _read_pod(self, change: Changed, key: str) -> Pod:
        view = decode(change.body, reading.PodView)
        pod = pod_record(
            change.namespace, change.name, view, self.nodes.shape_of, self._schedulers, heeds_claims=self._heeds_claims
        )
        if is_orphan(pod, view):
            owners = view.metadata.owner_references or ()
            self.orphans[key] = Orphan(pod, next((each for each in owners if each.controller), None))
        return pod

    def _count_on_node(self, pod: Pod, sign: int) -> None:
        self.nodes.occupy(pod.node, pod.shape, sign)
        self.usage.count(pod, self.groups.get(pod.group), sign)
        if pod.status is TaskStatus.RELEASING:
            _keep(self.releasing, pod, sign)
        if pod.cooldown:
            _keep(self.cooling, pod, sign)

    def _count(self, pod: Pod, sign: int, at: int, *, may_change_status: bool, is_last: bool = True) -> None:
        """Add a pod (sign 1) or remove it (-1). is_last is False where another call for its group follows, which will touch it."""
        if pod.holds:
            self._count_on_node(pod, sign)
        if not pod.group:
            return
        group = self.groups.at(pod.group)
        if pod.status is not TaskStatus.RELEASING or pod.node:
            _bump(group.counts, pod.status, sign)
        if pod.status in READY:
            _bump(group.ready_roles, pod.role, sign)
        if pod.holds:
            _bump(group.shapes, pod.shape, sign)
            _keep(group.holders, pod, sign)
        elif pod.status is TaskStatus.SUCCEEDED:
            _keep(group.succeeded, pod, sign)
        if pod.status is TaskStatus.PENDING:
            _keep(group.pending, pod, sign)
            if pod.is_barred:
                _bump(group.barred, pod.shape, sign)
        group.changed = max(group.changed, at)
        if is_last or not group.exists:
            self.groups.touch(group, at, may_change_status=may_change_status)

    # Pod groups

    def _group(self, change: Changed, exists: bool) -> None:
        group = self.groups.at(f"{change.namespace}/{change.name}")
        view = decode(change.body, reading.GroupView) if exists else None
        phase = group.phase
        moved = group.holders if _counted_at(view) != _counted_at(group.view) else {}
        self._use_all(moved, -1)
        if _stated(view) != _stated(group.view):
            group.min_resources = _minimum(view)
        group.view = view
        group.uid = view.metadata.uid if view else ""
        group.created = time_of(view.metadata.creation_timestamp) if view else 0
        self.groups.note_status(group.key, view)
        if view:
            self.usage.group_queues[group.key] = group.queue
        else:
            self.usage.group_queues.pop(group.key, None)
        self._use_all(moved, 1)
        if change.verb == "ADDED" or group.phase != phase:
            group.changed = max(group.changed, change.at)
        self.groups.touch(group, change.at, may_change_status=True)

    def _use_all(self, pods: dict[str, Pod], sign: int) -> None:
        for pod in pods.values():
            self.usage.count(pod, self.groups.get(pod.group), sign)

    # Everything else

    def _node(self, change: Changed, exists: bool) -> None:
        if exists:
            self.nodes.put(change.name, decode(change.body, reading.NodeView))
        else:
            self.nodes.remove(change.name)

    def _queue(self, change: Changed, exists: bool) -> None:
        old = self.queues.pop(change.name, None)
        if old is not None and old.parent != old.name:
            _bump(self._children, old.parent, -1)
        if not exists:
            return
        view = decode(change.body, reading.QueueView)
        self.queues[change.name] = queue_record(change.name, view, time_of(view.metadata.creation_timestamp))
        if view.spec.parent != change.name:
            _bump(self._children, view.spec.parent or "", 1)

    def _priority_class(self, change: Changed, exists: bool) -> None:
        self.priority_classes.put(change.name, change.body if exists else None)
        self.groups.layouts.clear()
        self.groups.evictable.clear()

    def _quota(self, change: Changed, exists: bool) -> None:
        quotas = self.quotas.setdefault(change.namespace, {})
        quotas.pop(change.name, None)
        if exists and (quota := quota_record(decode(change.body, reading.QuotaView))) is not None:
            quotas[change.name] = quota
        if not quotas:
            del self.quotas[change.namespace]

    def _claim(self, change: Changed, exists: bool) -> None:
        note = self._bound_claims.add if exists and claims.is_bound(change.body) else self._bound_claims.discard
        note(f"{change.namespace}/{change.name}")

    def _budget(self, change: Changed, exists: bool) -> None:
        budgets = self.budgets.setdefault(change.namespace, {})
        budgets.pop(change.name, None)
        if exists:
            budgets[change.name] = budget_of(f"{change.namespace}/{change.name}", change.body)
        if not budgets:
            del self.budgets[change.namespace]

    def _hyper_node(self, change: Changed, exists: bool) -> None:
        found = topology.read(msgspec.json.decode(change.body)) if exists else None
        if found == self._hyper_nodes.get(change.name):
            return
        self._network = None
        self.groups.dirty |= self.groups.waiting
        if found is None:
            del self._hyper_nodes[change.name]
        else:
            self._hyper_nodes[change.name] = found

    def _configuration(self, change: Changed, exists: bool) -> None:
        if not scheduler_configuration.is_configuration(resources.CONFIGMAPS, change.namespace, change.name):
            return
        before = self.policy
        self.configuration.take(change.body if exists else None)
        if self.policy != before:
            self.groups.layouts.clear()
            self.groups.dirty |= self.groups.waiting

    def _namespace(self, change: Changed, exists: bool) -> None:
        labels = decode(change.body, reading.NamespaceView).metadata.labels or {} if exists else {}
        if labels != self._namespace_labels.get(change.name, {}):
            self._namespace_labels[change.name] = labels
            self._profile(self.nodes.relations.of_namespace(change.name))
        if not exists:
            self._namespace_labels.pop(change.name, None)
        queue = usage.namespace_queue(change.body) if exists else ""
        if queue == self.usage.namespace_queues.get(change.name, ""):
            return
        moved = {key: pod for key, pod in self.pods.items() if pod.namespace == change.name and pod.holds}
        self._use_all(moved, -1)
        self.usage.namespace_queues.pop(change.name, None)
        if queue:
            self.usage.namespace_queues[change.name] = queue
        self._use_all(moved, 1)


def _counted_at(view: reading.GroupView | None) -> tuple[str | None, str | None] | None:
    """Return the fields of a group that decide where the usage of its pods is counted."""
    return (view.spec.queue, view.spec.priority_class_name) if view else None


def _stated(view: reading.GroupView | None) -> dict[str, Any] | None:
    """Return the amounts that a group states for its minimum, as written."""
    if view is None:
        return None
    return view.spec.min_resources if view.spec.min_resources is not None else view.spec.total_resources


def _minimum(view: reading.GroupView | None) -> tuple[tuple[str, int], ...] | None:
    """Return minResources, sorted, without the ResourceQuota spellings of the same amounts (queue-podgroup §3.6)."""
    stated = _stated(view)
    if stated is None:
        return None
    quota = ("requests.", "limits.", "count/")
    parsed = sorted(readable(stated).items())
    return tuple((name, amount) for name, amount in parsed if amount > 0 and not name.startswith(quota))


def _keep(pods: dict[str, Pod], pod: Pod, sign: int) -> None:
    if sign > 0:
        pods[pod.key] = pod
    else:
        del pods[pod.key]


def _bump(counter: Counter[T], key: T, by: int) -> None:
    """Add to a counter that keeps no zeros, so that equal contents compare equal."""
    left = counter[key] + by
    if left:
        counter[key] = left
    else:
        del counter[key]


_HANDLERS: dict[str, Callable[[Snapshot, Changed, bool], None]] = {
    resources.PODS.id: Snapshot._pod,
    resources.NODES.id: Snapshot._node,
    resources.POD_GROUPS.id: Snapshot._group,
    resources.QUEUES.id: Snapshot._queue,
    resources.PRIORITY_CLASSES.id: Snapshot._priority_class,
    resources.NAMESPACES.id: Snapshot._namespace,
    resources.CLAIMS.id: Snapshot._claim,
    resources.RESOURCE_QUOTAS.id: Snapshot._quota,
    resources.DISRUPTION_BUDGETS.id: Snapshot._budget,
    resources.HYPER_NODES.id: Snapshot._hyper_node,
    resources.CONFIGMAPS.id: Snapshot._configuration,
}
