"""Which queue a pod uses, what pods on nodes take, added up by node and by queue, and what is in a queue.

One rule for everybody who counts pods by queue (reference: volcano-queue-podgroup
§3.5 and §3.6):

* A pod uses the queue of its pod group, whatever its own annotations say: the
  group is what is scheduled, and it may be moved to another queue.
* A pod without a group, or with one that does not exist, uses the queue that a
  group made for it would have: the one its annotations name
  (`scheduling.volcano.sh/queue-name`, then `volcano.sh/queue-name`, which the
  job controller writes), else the one that its namespace names, else `default`.
* A pod of another scheduler uses no queue. Which names mean ours depends on the
  cluster: where Kubernetes' own scheduler works, `default-scheduler` is that one.

A pod takes its request from when it has a node until it has ended.

In a queue are its pod groups, and the pods on nodes that use it without a group. A queue in which no group is
unfinished and no such pod is left is empty. What a group's phase says is not enough: it is written by whoever
schedules, for the pods of that moment, and of a group whose pods come one after the other all may have ended
before the next is made (`counted_phase`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec
from msgspec import Raw, field

from kube import amounts
from kube.amounts import Amounts
from kube.kinds.fields import View
from kube.kinds.pod import ENDED
from kube.kinds.scheduling import PodGroupPhase

DEFAULT_QUEUE = "default"
ROOT_QUEUE = "root"
QUEUE_ANNOTATION = "scheduling.volcano.sh/queue-name"
"""By which pods without a group, and namespaces for pods and pod groups, name a queue."""
ESTIMATE_ANNOTATION = "ui.volcano.sh/running-estimate"
"""On a pod group: how long it will run once it has begun, as a Go duration; of a job's group its runningEstimate."""
VOLCANO = frozenset({"volcano"})
"""What pods of ours name as their scheduler where Kubernetes' own one works as well."""

VOLCANO_ALONE = VOLCANO | {"default-scheduler", ""}
"""The same where there is no other scheduler: Kubernetes' default name stands for Volcano's."""

NOTHING = Raw(b"")
T = TypeVar("T")


class QueuedPod(Protocol):
    """What decides which queue a pod uses. group is the key of its pod group, or empty; `wish` is what it names itself."""

    @property
    def namespace(self) -> str: ...
    @property
    def group(self) -> str: ...
    @property
    def wish(self) -> str: ...
    @property
    def ours(self) -> bool: ...


def queue_named(name: str | None) -> str:
    """Return the queue of a job or a pod group that names this one, or none."""
    return name or DEFAULT_QUEUE


def queue_of(pod: QueuedPod, groups: Mapping[str, str], namespaces: Mapping[str, str]) -> str:
    """Return the queue that a pod uses; empty for a pod of another scheduler.

    groups are the queues of all pod groups that exist, by key; namespaces are
    the queues of those namespaces that name one.
    """
    if not pod.ours:
        return ""
    return groups.get(pod.group) or pod.wish or namespaces.get(pod.namespace) or DEFAULT_QUEUE


class QueueAnnotations(View):
    """The annotations of a pod that name its pod group and queue."""

    group: str = field(default="", name="scheduling.k8s.io/group-name")
    queue: str = field(default="", name=QUEUE_ANNOTATION)
    job_queue: str = field(default="", name="volcano.sh/queue-name")


class RequestContainer(View):
    """A container's requests of its node. Undecoded: equal bytes request the same."""

    resources: Raw = NOTHING
    restart_policy: str | None = None
    ports: Raw = NOTHING


class RequestSpec(View):
    """A pod's requests of its node."""

    containers: list[RequestContainer] = []
    init_containers: list[RequestContainer] | None = None
    overhead: Raw = NOTHING
    resources: Raw = NOTHING
    node_name: str | None = None
    scheduler_name: str | None = None


RequestKey = tuple[tuple[bytes, ...], tuple[tuple[bytes, str | None], ...], bytes, bytes]


def request_key(spec: RequestSpec) -> RequestKey:
    """Return everything that `request_of` depends on: equal keys request the same."""
    return (
        tuple(bytes(container.resources) for container in spec.containers),
        tuple((bytes(each.resources), each.restart_policy) for each in spec.init_containers or ()),
        bytes(spec.overhead),
        bytes(spec.resources),
    )


# Pods of one template request the same: their amounts are worked out once.
@lru_cache(maxsize=4096)
def request_of(key: RequestKey) -> Amounts:
    """Return what pods with a key request of a node, to be read only; ValueError when it cannot be read."""
    containers, init_containers, overhead, resources = key
    spec: dict[str, Any] = {
        "containers": [{"resources": value_of(each) or {}} for each in containers],
        "initContainers": [
            {"resources": value_of(each) or {}, "restartPolicy": policy or ""} for each, policy in init_containers
        ],
        "overhead": value_of(overhead) or {},
    }
    if (whole := value_of(resources)) is not None:
        spec["resources"] = whole
    return amounts.pod_request(spec)


def value_of(raw: Raw | bytes) -> Any:
    """Decode the bytes of a value; absent is None."""
    data = bytes(raw)
    return msgspec.json.decode(data) if data else None


class Owner(NamedTuple):
    """What controls a pod or made a pod group."""

    kind: str
    name: str
    is_job: bool = False
    """Whether it is a Volcano Job."""


class PodUse(NamedTuple):
    """A pod that has not ended: what decides which queue it uses, and what it takes; nothing while it has no node.

    group is the key of its pod group, "" for a pod of another scheduler. The amounts are shared.
    """

    node: str
    namespace: str
    group: str
    wish: str
    ours: bool
    amounts: Amounts
    owner: Owner | None = None


class GroupUse(NamedTuple):
    """A pod group: the queue that it is in, the phase that is written, and whose it is."""

    queue: str
    phase: str = PodGroupPhase.PENDING.value
    owner: Owner | None = None


class Holder(NamedTuple):
    """Who has pods or pod groups in a queue and is no Volcano Job; held is what the pods on nodes take."""

    namespace: str
    owner: Owner
    placed: int
    waiting: int
    held: Amounts


def pod_use(body: bytes, schedulers: Collection[str]) -> PodUse | None:
    """Return what a pod takes, or None when it has ended; schedulers are the names of ours.

    A request that cannot be read counts as one pod; ValidationError when the pod cannot.
    """
    pod = _pod(body)
    if pod.status.phase in ENDED:
        return None
    request: Amounts = {}
    if pod.spec.node_name:
        try:
            request = request_of(request_key(pod.spec))
        except ValueError:
            request = {"pods": 1}
    notes = pod.metadata.annotations or QueueAnnotations()
    namespace = pod.metadata.namespace
    ours = (pod.spec.scheduler_name or "") in schedulers
    return PodUse(
        pod.spec.node_name or "",
        namespace,
        f"{namespace}/{notes.group}" if ours and notes.group else "",
        notes.queue or notes.job_queue,
        ours,
        request,
        _controller(pod.metadata),
    )


def group_use(body: bytes) -> GroupUse:
    """Return a pod group as it counts for usage; ValidationError when it cannot be read."""
    group = _group(body)
    phase = group.status.phase or PodGroupPhase.PENDING.value
    return GroupUse(queue_named(group.spec.queue), phase, _controller(group.metadata))


def counted_phase(phase: str, placed: int, waiting: int) -> str:
    """Return the phase as which a pod group counts; of its pods that have not ended some are on nodes and some wait for one.

    One with such a pod is not Completed, whatever is written.
    """
    if phase != PodGroupPhase.COMPLETED or not placed + waiting:
        return phase
    return (PodGroupPhase.RUNNING if placed else PodGroupPhase.INQUEUE).value


def namespace_queue(body: bytes) -> str:
    """Return the queue that a namespace names for pods and pod groups that name none; empty when it names none."""
    notes = _namespace(body).metadata.annotations
    return notes.queue if notes else ""


class Usage:
    """What pods take, by node and by queue, and what is in each queue, kept up to date object by object.

    Each change costs the same however many pods there are, but for a group or
    namespace that changes its queue, which moves its pods. Methods return the
    queues of which something changed.
    """

    def __init__(self) -> None:
        self.on_node: defaultdict[str, Amounts] = defaultdict(dict)
        self.in_queue: defaultdict[str, Amounts] = defaultdict(dict)
        self.groups_in: defaultdict[str, Counter[str]] = defaultdict(Counter)
        """Pod groups by the phase as which they count, by queue."""
        self.loose_in: Counter[str] = Counter()
        """Pods on nodes that have no pod group, by queue."""
        self._pods: dict[str, tuple[PodUse, str]] = {}  # with the queue that it is counted in
        self._groups: dict[str, GroupUse] = {}
        self._queues: dict[str, str] = {}  # group → its queue
        self._counted: dict[str, _Counted] = {}
        self._members: defaultdict[str, set[str]] = defaultdict(set)  # group → keys of its pods
        self._placed: Counter[str] = Counter()  # group → how many of them are on nodes
        self._namespaces: dict[str, str] = {}
        self._others: defaultdict[str, set[str]] = defaultdict(set)  # queue → pods that are of no Volcano Job
        self._other_groups: defaultdict[str, set[str]] = defaultdict(set)  # queue → the same of pod groups

    def put_pod(self, key: str, use: PodUse | None) -> set[str]:
        """Put a pod; None when it has ended or is gone."""
        before = self._pods.get(key)
        after = (use, self._queue_of(use)) if use else None
        if before == after:
            return set()
        self._pods.pop(key, None)
        changed = set()
        if before is not None:
            self._count(key, *before, -1)
            changed |= {before[1], *self._count_group(before[0].group)}
        if after is not None:
            self._pods[key] = after
            self._count(key, *after, 1)
            changed |= {after[1], *self._count_group(after[0].group)}
        return changed

    def put_group(self, key: str, group: GroupUse | None) -> set[str]:
        """Put a pod group; None when it is gone."""
        before = self._groups.get(key)
        if before == group:
            return set()
        is_moved = _counting_key(before) != _counting_key(group)
        pods = [(each, *self._pods[each]) for each in self._members.get(key, ())] if is_moved else []
        for pod in pods:
            self._count(*pod, -1)
        _set_or_drop(self._groups, key, group)
        _set_or_drop(self._queues, key, group.queue if group else None)
        changed = {queue for _, _, queue in pods}
        for each, use, _ in pods:
            self._pods[each] = use, self._queue_of(use)
            self._count(each, *self._pods[each], 1)
            changed.add(self._pods[each][1])
        return changed | self._count_group(key)

    def put_namespace(self, name: str, queue: str) -> set[str]:
        """Put the queue that a namespace names; empty when it names none or is gone."""
        if self._namespaces.get(name, "") == queue:
            return set()
        _set_or_drop(self._namespaces, name, queue or None)
        changed: set[str] = set()
        for key in [key for key, (use, _) in self._pods.items() if use.namespace == name]:
            changed |= self.put_pod(key, self._pods[key][0])
        return changed

    def holders(self, queues: Iterable[str]) -> list[Holder]:
        """Return who besides Volcano Jobs has something in these queues, those who hold most CPU first."""
        found: dict[tuple[str, Owner], Holder] = {}
        for queue in queues:
            for key in self._others.get(queue, ()):
                use = self._pods[key][0]
                group = self._groups.get(use.group)
                owner = (group.owner if group else None) or use.owner or _stand_in(use.group if group else "", key)
                _add_holder(found, use.namespace, owner, use)
            for key in self._other_groups.get(queue, ()):
                if key not in self._members:
                    _add_holder(found, key.partition("/")[0], self._groups[key].owner or _stand_in(key, ""), None)
        return sorted(found.values(), key=lambda each: (-each.held.get("cpu", 0), each.namespace, each.owner))

    def _queue_of(self, use: PodUse) -> str:
        return queue_of(use, self._queues, self._namespaces)

    def _count(self, key: str, use: PodUse, queue: str, sign: int) -> None:
        """Count a pod where it belongs, as long as its group is what it is."""
        if use.group:
            _set_member(self._members, use.group, key, sign)
        if use.node:
            _add(self.on_node, use.node, use.amounts, sign)
            _bump(self._placed, use.group, sign)
        if not queue:
            return
        if use.node:
            _add(self.in_queue, queue, use.amounts, sign)
        group = self._groups.get(use.group)
        if group is None and use.node:
            _bump(self.loose_in, queue, sign)
        if not _is_job(use.owner if group is None else group.owner):
            _set_member(self._others, queue, key, sign)

    def _count_group(self, key: str) -> set[str]:
        """Count a pod group as what it is by now."""
        before, after = self._counted.get(key), self._counted_as(key)
        if before == after:
            return set()
        for counted, sign in ((before, -1), (after, 1)):
            if counted is not None:
                _bump(self.groups_in[counted.queue], counted.phase, sign)
                if counted.is_other:
                    _set_member(self._other_groups, counted.queue, key, sign)
        _set_or_drop(self._counted, key, after)
        return {counted.queue for counted in (before, after) if counted is not None}

    def _counted_as(self, key: str) -> _Counted | None:
        group = self._groups.get(key)
        if group is None:
            return None
        placed = self._placed[key]
        phase = counted_phase(group.phase, placed, len(self._members.get(key, ())) - placed)
        return _Counted(group.queue, phase, not _is_job(group.owner))


class _Counted(NamedTuple):
    """Where and as what a pod group is counted, and whether it is of no Volcano Job."""

    queue: str
    phase: str
    is_other: bool


def _is_job(owner: Owner | None) -> bool:
    return owner is not None and owner.is_job


def _counting_key(group: GroupUse | None) -> tuple[str, Owner | None] | None:
    """Return the part of a group that decides where its pods are counted."""
    return (group.queue, group.owner) if group else None


def _stand_in(group: str, pod: str) -> Owner:
    """Return a stand-in for the owner of a group or a pod that has none."""
    return Owner("PodGroup" if group else "Pod", (group or pod).partition("/")[2])


def _add_holder(holders: dict[tuple[str, Owner], Holder], namespace: str, owner: Owner, use: PodUse | None) -> None:
    """Add what a pod holds to its owner's; None for a pod group without pods."""
    holder = holders.get((namespace, owner)) or Holder(namespace, owner, 0, 0, {})
    if use is not None:
        placed, held = int(bool(use.node)), amounts.add(holder.held, use.amounts)
        holder = holder._replace(placed=holder.placed + placed, waiting=holder.waiting + 1 - placed, held=held)
    holders[namespace, owner] = holder


def _set_member(sets: defaultdict[str, set[str]], where: str, key: str, sign: int) -> None:
    """Add a key to one set or discard it; an empty set is dropped."""
    if sign > 0:
        sets[where].add(key)
        return
    sets[where].discard(key)
    if not sets[where]:
        del sets[where]


def _bump(counter: Counter[str], key: str, by: int) -> None:
    """Add to a counter, dropping zeros."""
    counter[key] += by
    if not counter[key]:
        del counter[key]


def _set_or_drop(values: dict[str, T], key: str, value: T | None) -> None:
    if value is None:
        values.pop(key, None)
    else:
        values[key] = value


def _add(totals: defaultdict[str, Amounts], key: str, more: Mapping[str, int], sign: int) -> None:
    """Add amounts to one total; what becomes zero is dropped."""
    total = totals[key]
    for name, amount in more.items():
        left = total.get(name, 0) + sign * amount
        if left:
            total[name] = left
        else:
            total.pop(name, None)
    if not total:
        del totals[key]


class _Reference(View):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    controller: bool | None = None


class _PodMetadata(View):
    namespace: str = ""
    annotations: QueueAnnotations | None = None
    owner_references: list[_Reference] | None = None


class _PodStatus(View):
    phase: str = ""


class _Pod(View):
    metadata: _PodMetadata = _PodMetadata()
    spec: RequestSpec = RequestSpec()
    status: _PodStatus = _PodStatus()


class _GroupSpec(View):
    queue: str | None = None


class _Group(View):
    metadata: _PodMetadata = _PodMetadata()
    spec: _GroupSpec = _GroupSpec()
    status: _PodStatus = _PodStatus()


def _controller(metadata: _PodMetadata) -> Owner | None:
    """Return the controller among the owners, otherwise the first of them."""
    owners = metadata.owner_references or ()
    owner = next((each for each in owners if each.controller), owners[0] if owners else None)
    if owner is None:
        return None
    return _owner(owner.kind, owner.name, owner.api_version)


# Pods of one controller share it.
@lru_cache(maxsize=4096)
def _owner(kind: str, name: str, version: str) -> Owner:
    return Owner(kind, name, is_job=kind == "Job" and version.startswith("batch.volcano.sh/"))


class _NamespaceMetadata(View):
    annotations: QueueAnnotations | None = None


class _Namespace(View):
    metadata: _NamespaceMetadata = _NamespaceMetadata()


_pod = msgspec.json.Decoder(_Pod).decode
_group = msgspec.json.Decoder(_Group).decode
_namespace = msgspec.json.Decoder(_Namespace).decode
