"""Which queue a pod uses, and what pods on nodes take, added up by node and by queue.

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

A pod takes what it asks for from when it has a node until it has ended.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec
from msgspec import Raw, field

from kube import amounts
from kube.kinds.fields import View
from kube.kinds.pod import ENDED

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from kube.amounts import Amounts

DEFAULT_QUEUE = "default"
ROOT_QUEUE = "root"
QUEUE_ANNOTATION = "scheduling.volcano.sh/queue-name"
ESTIMATE_ANNOTATION = "ui.volcano.sh/running-estimate"
"""On a pod group: how long it will run once it has begun, as a Go duration; of a job's group its runningEstimate."""
"""By which pods without a group, and namespaces for pods and pod groups, name a queue."""
VOLCANO = frozenset({"volcano"})
"""What pods of ours name as their scheduler where Kubernetes' own one works as well."""

VOLCANO_ALONE = VOLCANO | {"default-scheduler", ""}
"""The same where there is no other scheduler: Kubernetes' default name stands for Volcano's."""

NOTHING = Raw(b"")


class Placed(Protocol):
    """What says which queue a pod uses. group is the key of its pod group, or empty; `wish` is what it names itself."""

    @property
    def namespace(self) -> str: ...
    @property
    def group(self) -> str: ...
    @property
    def wish(self) -> str: ...
    @property
    def ours(self) -> bool: ...


def queue_of(pod: Placed, groups: Mapping[str, str], namespaces: Mapping[str, str]) -> str:
    """Return the queue that a pod uses; empty for a pod of another scheduler.

    groups are the queues of all pod groups that exist, by key; namespaces are
    the queues of those namespaces that name one.
    """
    if not pod.ours:
        return ""
    return groups.get(pod.group) or pod.wish or namespaces.get(pod.namespace) or DEFAULT_QUEUE


class QueueAnnotations(View):
    """The annotations of a pod that say where it belongs."""

    group: str = field(default="", name="scheduling.k8s.io/group-name")
    queue: str = field(default="", name=QUEUE_ANNOTATION)
    job_queue: str = field(default="", name="volcano.sh/queue-name")


class AskingContainer(View):
    """What a container asks of its node. Undecoded: equal bytes ask for the same."""

    resources: Raw = NOTHING
    restart_policy: str | None = None
    ports: Raw = NOTHING


class AskingSpec(View):
    """What a pod asks of its node."""

    containers: list[AskingContainer] = []
    init_containers: list[AskingContainer] | None = None
    overhead: Raw = NOTHING
    resources: Raw = NOTHING
    node_name: str | None = None
    scheduler_name: str | None = None


RequestKey = tuple[tuple[bytes, ...], tuple[tuple[bytes, str | None], ...], bytes, bytes]


def request_key(spec: AskingSpec) -> RequestKey:
    """Return everything that `request_of` depends on: equal keys ask for the same."""
    return (
        tuple(bytes(container.resources) for container in spec.containers),
        tuple((bytes(each.resources), each.restart_policy) for each in spec.init_containers or ()),
        bytes(spec.overhead),
        bytes(spec.resources),
    )


# Pods of one template ask for the same: their amounts are worked out once.
@lru_cache(maxsize=4096)
def request_of(key: RequestKey) -> Amounts:
    """Return what pods with a key ask of a node, to be read only; ValueError when it cannot be read."""
    containers, init_containers, overhead, resources = key
    asked: dict[str, Any] = {
        "containers": [{"resources": value_of(each) or {}} for each in containers],
        "initContainers": [
            {"resources": value_of(each) or {}, "restartPolicy": policy or ""}
            for each, policy in init_containers
        ],
        "overhead": value_of(overhead) or {},
    }
    if (whole := value_of(resources)) is not None:
        asked["resources"] = whole
    return amounts.pod_request(asked)


def value_of(raw: Raw | bytes) -> Any:
    """Decode bytes that were kept; absent is None."""
    data = bytes(raw)
    return msgspec.json.decode(data) if data else None


class PodUse(NamedTuple):
    """A pod on a node: what says which queue it uses, and what it takes. The amounts are shared."""

    node: str
    namespace: str
    group: str
    wish: str
    ours: bool
    amounts: Amounts


def pod_use(body: bytes, schedulers: Collection[str]) -> PodUse | None:
    """Return what a pod takes, or None when it is on no node or has ended; schedulers are the names of ours.

    A request that cannot be read counts as one pod; ValidationError when the pod cannot.
    """
    pod = _pod(body)
    if not pod.spec.node_name or pod.status.phase in ENDED:
        return None
    try:
        asked = request_of(request_key(pod.spec))
    except ValueError:
        asked = {"pods": 1}
    notes = pod.metadata.annotations or QueueAnnotations()
    namespace = pod.metadata.namespace
    return PodUse(
        pod.spec.node_name,
        namespace,
        f"{namespace}/{notes.group}" if notes.group else "",
        notes.queue or notes.job_queue,
        (pod.spec.scheduler_name or "") in schedulers,
        asked,
    )


def group_queue(body: bytes) -> str:
    """Return the queue of a pod group."""
    return _group(body).spec.queue or DEFAULT_QUEUE


def namespace_queue(body: bytes) -> str:
    """Return the queue that a namespace names for pods and pod groups that name none; empty when it names none."""
    notes = _namespace(body).metadata.annotations
    return notes.queue if notes else ""


class Usage:
    """What pods take, by node and by queue, kept up to date object by object.

    Each change costs the same however many pods there are, but for a group or
    namespace that changes its queue, which moves its pods. Methods return the
    queues whose use changed.
    """

    def __init__(self) -> None:
        self.on_node: defaultdict[str, Amounts] = defaultdict(dict)
        self.in_queue: defaultdict[str, Amounts] = defaultdict(dict)
        self._pods: dict[str, tuple[PodUse, str]] = {}  # with the queue that it is counted in
        self._groups: dict[str, str] = {}
        self._members: defaultdict[str, set[str]] = defaultdict(set)  # group → keys of its pods
        self._namespaces: dict[str, str] = {}

    def put_pod(self, key: str, use: PodUse | None) -> set[str]:
        """Take over a pod; None when it takes nothing or is gone."""
        before = self._pods.pop(key, None)
        after = (use, queue_of(use, self._groups, self._namespaces)) if use else None
        if after is not None:
            self._pods[key] = after
        if before == after:
            return set()
        if before is not None:
            self._leave(before[0].group, key)
            self._count(*before, -1)
        if after is not None:
            self._members[after[0].group].add(key)
            self._count(*after, 1)
        return {counted[1] for counted in (before, after) if counted is not None}

    def put_group(self, key: str, queue: str) -> set[str]:
        """Take over the queue of a pod group; empty when the group is gone."""
        if self._groups.get(key, "") == queue:
            return set()
        _put(self._groups, key, queue)
        return self._recount(self._members.get(key, ()))

    def put_namespace(self, name: str, queue: str) -> set[str]:
        """Take over the queue that a namespace names; empty when it names none or is gone."""
        if self._namespaces.get(name, "") == queue:
            return set()
        _put(self._namespaces, name, queue)
        return self._recount(key for key, (use, _) in self._pods.items() if use.namespace == name)

    def _recount(self, keys: Iterable[str]) -> set[str]:
        changed: set[str] = set()
        for key in list(keys):
            changed |= self.put_pod(key, self._pods[key][0])
        return changed

    def _leave(self, group: str, key: str) -> None:
        members = self._members[group]
        members.discard(key)
        if not members:
            del self._members[group]

    def _count(self, use: PodUse, queue: str, sign: int) -> None:
        _add(self.on_node, use.node, use.amounts, sign)
        if queue:
            _add(self.in_queue, queue, use.amounts, sign)


def _put(known: dict[str, str], key: str, value: str) -> None:
    if value:
        known[key] = value
    else:
        known.pop(key, None)


def _add(totals: defaultdict[str, Amounts], key: str, more: Mapping[str, int], sign: int) -> None:
    """Add amounts to one total; what becomes nothing is forgotten."""
    total = totals[key]
    for name, amount in more.items():
        left = total.get(name, 0) + sign * amount
        if left:
            total[name] = left
        else:
            total.pop(name, None)
    if not total:
        del totals[key]


class _PodMetadata(View):
    namespace: str = ""
    annotations: QueueAnnotations | None = None


class _PodStatus(View):
    phase: str = ""


class _Pod(View):
    metadata: _PodMetadata = _PodMetadata()
    spec: AskingSpec = AskingSpec()
    status: _PodStatus = _PodStatus()


class _GroupSpec(View):
    queue: str | None = None


class _Group(View):
    spec: _GroupSpec = _GroupSpec()


class _NamespaceMetadata(View):
    annotations: QueueAnnotations | None = None


class _Namespace(View):
    metadata: _NamespaceMetadata = _NamespaceMetadata()


_pod = msgspec.json.Decoder(_Pod).decode
_group = msgspec.json.Decoder(_Group).decode
_namespace = msgspec.json.Decoder(_Namespace).decode
