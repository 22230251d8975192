"""What a process knows of a cluster to tell which groups could start on idle room, kept up to date change by change.

Waiting pods of one template share what is decoded, so ten thousand of them cost little more than their names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple, Protocol

import msgspec
from msgspec import field

from kube import amounts, usage
from kube.amounts import Amounts
from kube.kinds.core import Node
from kube.kinds.fields import View
from kube.kinds.meta import ObjectMeta
from kube.kinds.pod import ENDED
from kube.kinds.scheduling import PodGroupStatus, Queue, QueueState
from kube.quantity import QuantityError
from kube.resources import NAMESPACES, NODES, POD_GROUPS, PODS, QUEUES, RESOURCE_QUOTAS
from kube.usage import RequestSpec, Usage, group_use, namespace_queue, pod_use, queue_named
from kube.volcano import reserved_room
from scheduler.idle import facts, placing
from scheduler.idle.facts import ROOT_QUEUE
from scheduler.idle.waiting_pod import WaitingPod

KINDS = (NODES, QUEUES, NAMESPACES, RESOURCE_QUOTAS, POD_GROUPS, PODS)
WAITING = ("", "Pending", "Inqueue", "Unknown")
"""Phases of groups whose minimum does not run."""


class Changed(Protocol):
    """An object as it stands in a change of the log, or in the store."""

    @property
    def resource(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def body(self) -> bytes: ...


class _PodNotes(View):
    group: str = field(default="", name="scheduling.k8s.io/group-name")
    role: str = field(default="", name="volcano.sh/task-spec")


class _PodLabels(View):
    role: str = field(default="", name="volcano.sh/task-spec")


class _PodMeta(View):
    deletion_timestamp: str | None = None
    annotations: _PodNotes | None = None
    labels: _PodLabels | None = None


class _PodStatus(View):
    phase: str = ""


class _Pod(View):
    metadata: _PodMeta = _PodMeta()
    spec: RequestSpec = RequestSpec()
    status: _PodStatus = _PodStatus()


class _GroupSpec(View):
    min_member: int | None = None
    min_members: int | None = None
    num_member: int | None = None
    min_task_member: dict[str, int] | None = None
    min_resources: dict[str, Any] | None = None
    network_topology: dict[str, Any] | None = None
    sub_group_policy: list[Any] | None = None
    queue: str | None = None


class _Group(View):
    metadata: ObjectMeta = ObjectMeta()
    spec: _GroupSpec = _GroupSpec()
    status: PodGroupStatus = PodGroupStatus()


class _Member(NamedTuple):
    """A pod that has not ended; template is None where it does not wait for a node, may not have one yet, or cannot be read."""

    group: str
    role: str
    ready: bool
    template: _Template | None


class _Template(NamedTuple):
    """What pods that are alike request, and what decides where they may be."""

    request: Amounts
    waiting: WaitingPod


class Reader:
    """The cluster at one revision. schedulers are the names of this scheduler; with heeds_claims, volumes bind pods to nodes."""

    def __init__(self, revision: int, schedulers: Collection[str], *, heeds_claims: bool) -> None:
        self.revision = revision
        self._schedulers, self._heeds_claims = schedulers, heeds_claims
        self._usage = Usage()
        self._nodes: dict[str, facts.Node] = {}
        self._queues: dict[str, Queue] = {}
        self._groups: dict[str, _Group] = {}  # those that wait
        self._quotas: set[str] = set()
        self._pods: dict[str, _Member] = {}
        self._members: defaultdict[str, dict[str, _Member]] = defaultdict(dict)  # group → its pods
        self._repelling: defaultdict[str, set[str]] = defaultdict(set)  # node → its pods with pod anti-affinity
        self._at: dict[str, str] = {}  # the same pods → their nodes
        self._templates: dict[bytes, _Template] = {}
        self._unreadable: set[tuple[str, str]] = set()

    @property
    def is_whole(self) -> bool:
        """Whether everything could be read: what an unreadable pod uses is unknown."""
        return not self._unreadable

    def take(self, change: Changed, *, gone: bool) -> None:
        """Take over an object as it is now; gone: it was deleted."""
        key = f"{change.namespace}/{change.name}" if change.namespace else change.name
        self._unreadable.discard((change.resource, key))
        try:
            _TAKERS[change.resource](self, key, None if gone else change.body)
        except msgspec.ValidationError:
            _TAKERS[change.resource](self, key, None)
            self._unreadable.add((change.resource, key))

    def world(self) -> facts.World:
        """Return what the checker works on."""
        # A pod with an anti-affinity may keep others off its node, which no naive count can tell: such a node counts as closed.
        nodes = {
            name: node._replace(is_ready=False) if self._repelling.get(name) else node
            for name, node in self._nodes.items()
        }
        used = self._usage.on_node
        queues = {name: self._queue(name, queue) for name, queue in self._queues.items()}
        groups = {key: self._group(key, group) for key, group in self._groups.items()}
        return facts.World(nodes, used, queues, groups, {key.partition("/")[0] for key in self._quotas})

    def created(self, key: str) -> str:
        """Return when a waiting pod group was created."""
        return self._groups[key].metadata.creation_timestamp

    def takes_work(self, queue: str) -> bool:
        """Tell whether a queue exists, is open, and has no child queues."""
        found = self._queues.get(queue)
        if found is None or (found.status.state or found.spec.state or QueueState.OPEN) != QueueState.OPEN:
            return False
        return not any(each.spec.parent == queue for each in self._queues.values())

    def _queue(self, name: str, queue: Queue) -> facts.Queue:
        spec = queue.spec
        parent = "" if name == ROOT_QUEUE else spec.parent or ROOT_QUEUE
        own = self._usage.in_queue.get(name, {})
        limits, guarantee = _readable(spec.capability), _readable(spec.guarantee.resource)
        return facts.Queue(parent, limits, guarantee, own, is_fifo=spec.dequeue_strategy == "fifo")

    def _group(self, key: str, group: _Group) -> facts.Group:
        spec, members = group.spec, self._members.get(key, {}).values()
        conditions = {each.type: each for each in group.status.conditions if each.status == "True"}
        why, reservation = conditions.get("Unschedulable"), conditions.get(reserved_room.DATA)
        named = (each for each in (spec.min_member, spec.min_members, spec.num_member) if each is not None)
        pods = [each.template for each in members if each.template]
        return facts.Group(
            key,
            queue_named(spec.queue),
            group.status.phase or "Pending",
            max(next(named, 0), 0),
            spec.min_task_member or {},
            _readable(spec.min_resources or {}),
            bool(spec.network_topology or spec.sub_group_policy)
            or (self._heeds_claims and any(each.waiting.has_claims for each in pods)),
            why.reason if why else "",
            why.message if why else "",
            reserved_room.read(reservation.message) if reservation else None,
            [each.role for each in members if each.ready],
            pods,
        )

    def _take_node(self, key: str, body: bytes | None) -> None:
        if body is None:
            self._nodes.pop(key, None)
            return
        node = _node(body)
        is_ready = any(each.type == "Ready" and each.status == "True" for each in node.status.conditions)
        self._nodes[key] = facts.Node(
            _readable(node.status.allocatable or node.status.capacity),
            node.metadata.labels,
            node.spec.taints,
            is_ready,
            node.spec.unschedulable,
        )

    def _take_queue(self, key: str, body: bytes | None) -> None:
        if body is None:
            self._queues.pop(key, None)
        else:
            self._queues[key] = _queue(body)

    def _take_namespace(self, key: str, body: bytes | None) -> None:
        self._usage.put_namespace(key, "" if body is None else namespace_queue(body))

    def _take_quota(self, key: str, body: bytes | None) -> None:
        if body is None:
            self._quotas.discard(key)
        else:
            self._quotas.add(key)

    def _take_group(self, key: str, body: bytes | None) -> None:
        self._usage.put_group(key, None if body is None else group_use(body))
        group = None if body is None else _group(body)
        if group is None or group.status.phase not in WAITING or group.metadata.deletion_timestamp:
            self._groups.pop(key, None)
        else:
            self._groups[key] = group

    def _take_pod(self, key: str, body: bytes | None) -> None:
        self._usage.put_pod(key, None if body is None else pod_use(body, self._schedulers))
        if (before := self._pods.pop(key, None)) is not None:
            members = self._members[before.group]
            members.pop(key)
            if not members:
                del self._members[before.group]
        if (node := self._at.pop(key, "")) and (repelling := self._repelling[node]):
            repelling.discard(key)
        if body is None:
            return
        pod = _pod(body)
        if pod.status.phase in ENDED:
            return
        if pod.spec.node_name and b'"podAntiAffinity"' in body:
            self._at[key] = pod.spec.node_name
            self._repelling[pod.spec.node_name].add(key)
        if (member := self._member(key, pod, body)) is not None:
            self._pods[key] = self._members[member.group][key] = member

    def _member(self, key: str, pod: _Pod, body: bytes) -> _Member | None:
        """Return a pod as a member of its group; None for pods without a group or of other schedulers."""
        notes, labels = pod.metadata.annotations, pod.metadata.labels
        if notes is None or not notes.group or (pod.spec.scheduler_name or "") not in self._schedulers:
            return None
        group, role = f"{key.partition('/')[0]}/{notes.group}", notes.role or (labels.role if labels else "")
        is_going, has_node = bool(pod.metadata.deletion_timestamp), bool(pod.spec.node_name)
        template = None
        if not has_node and not is_going and pod.status.phase in ("", "Pending"):
            template = self._template(pod, body)
        return _Member(group, role, has_node and not is_going, template)

    def _template(self, pod: _Pod, body: bytes) -> _Template | None:
        waiting = placing.read(body)
        if waiting is None or waiting.is_gated:
            return None
        try:
            request = usage.request_of(usage.request_key(pod.spec))
        except ValueError:  # not a quantity: its request is unknown
            return None
        like = placing.likeness(request, waiting) + bytes((waiting.has_rules, waiting.has_claims))
        return self._templates.setdefault(like, _Template(request, waiting))


_TAKERS: Mapping[str, Callable[[Reader, str, bytes | None], None]] = {
    NODES.id: Reader._take_node,
    QUEUES.id: Reader._take_queue,
    NAMESPACES.id: Reader._take_namespace,
    RESOURCE_QUOTAS.id: Reader._take_quota,
    POD_GROUPS.id: Reader._take_group,
    PODS.id: Reader._take_pod,
}
_node = msgspec.json.Decoder(Node).decode
_queue = msgspec.json.Decoder(Queue).decode
_group = msgspec.json.Decoder(_Group).decode
_pod = msgspec.json.Decoder(_Pod).decode


def _readable(quantities: Mapping[str, Any]) -> Amounts:
    """Return quantities as amounts by name, plain or as quotas spell it; values that are no quantities are left out."""
    found: Amounts = {}
    for name, written in quantities.items():
        try:
            plain = "cpu" if name.rpartition(".")[2] == "cpu" else name
            found[name] = max(amounts.of({plain: written})[plain], 0)
        except QuantityError:
            continue
    return found
