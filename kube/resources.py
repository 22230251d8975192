"""The table of all resources: what exists, under which names, how it is printed and found.

Everything that depends on the kind of an object and not on its content is
read from here: URLs, discovery, printed columns, the store's index columns.
Names and columns are those of the CRDs (reference: volcano-queue-podgroup-cli
§6) and of kubectl (reference: kubernetes-api §3.3).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from kube.kinds import batch, core, scheduling

if TYPE_CHECKING:
    from collections.abc import Callable

    from kube.kinds.fields import View
    from kube.meta import Object

QUEUE_ANNOTATION = "volcano.sh/queue-name"
CREATOR_ANNOTATION = "ui.volcano.sh/created-by"


class Index(NamedTuple):
    """By what the store finds an object; empty where the kind has no such thing."""

    phase: str = ""
    queue: str = ""
    node: str = ""
    owner: str = ""
    creator: str = ""


class Column(NamedTuple):
    """A printed column: the value at `path` in the object, or what the printer's function named `cell` returns.

    Priority 0 is always printed, 1 only in wide output. `missing` is what a
    built-in kind prints for an absent text; description and format are those
    of a custom resource's column.
    """

    name: str
    path: str = ""
    cell: str = ""
    type: str = "string"
    priority: int = 0
    missing: str = ""
    description: str = ""
    format: str = ""


VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
READ_VERBS = ("get", "list", "watch")


class Subresource(NamedTuple):
    """A part of an object with a path of its own, such as `pods/log`.

    group, version and kind are what its body is when that is not the
    resource's own kind: `pods/eviction` takes a policy/v1 Eviction.
    """

    name: str
    verbs: tuple[str, ...]
    kind: str = ""
    group: str = ""
    version: str = ""


STATUS = Subresource("status", ("get", "patch", "update"))


@dataclass(frozen=True)
class Resource:
    """One kind of object and how the API serves it.

    `index` tells by what the store finds an object; it does dict lookups only.
    `fields` are the paths that a field selector may name beside metadata.name
    and metadata.namespace. `stored` is false for what is computed when asked
    for, such as an access review. `schema` is the structural schema of a
    custom resource; the other kinds are described by their struct `type`.
    """

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    short_names: tuple[str, ...]
    namespaced: bool
    status_subresource: bool
    type: type[View]
    columns: tuple[Column, ...]
    index: Callable[[Object], Index]
    fields: tuple[str, ...] = ()
    verbs: tuple[str, ...] = VERBS
    subresources: tuple[Subresource, ...] = ()  # beside status
    categories: tuple[str, ...] = ()
    stored: bool = True
    schema: Object | None = None
    id: str = field(init=False)
    api_version: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", f"{self.plural}.{self.group}" if self.group else self.plural)
        object.__setattr__(
            self, "api_version", f"{self.group}/{self.version}" if self.group else self.version
        )

    # A resource is known by its id; hashing all fields would cost in every dict lookup.
    def __hash__(self) -> int:
        return hash(self.id)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Resource) and other.id == self.id

    def __repr__(self) -> str:
        return f"<Resource {self.id}>"

    @property
    def parts(self) -> tuple[Subresource, ...]:
        """All subresources, status included."""
        return (*self.subresources, *((STATUS,) if self.status_subresource else ()))

    @property
    def list_kind(self) -> str:
        """The kind of a list of these objects."""
        return f"{self.kind}List"

    @property
    def group_kind(self) -> str:
        """`Job.batch.volcano.sh` or `Pod`: the name of the kind in messages."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    def build(self, view: View) -> Object:
        """Return a view of this kind as a JSON object that says which kind it is."""
        return {"apiVersion": self.api_version, "kind": self.kind, **msgspec.to_builtins(view)}


def _part(obj: Object, key: str) -> dict[str, Any]:
    part = obj.get(key)
    return part if type(part) is dict else {}


def _common(obj: Object) -> tuple[str, str, dict[str, Any]]:
    """Return the controller's uid, the creator and the annotations."""
    metadata = _part(obj, "metadata")
    annotations = _part(metadata, "annotations")
    owner = ""
    for reference in metadata.get("ownerReferences") or ():
        if reference.get("controller"):
            owner = reference.get("uid") or ""
    return owner, annotations.get(CREATOR_ANNOTATION) or "", annotations


def _index_plain(obj: Object) -> Index:
    owner, creator, _ = _common(obj)
    return Index(owner=owner, creator=creator)


def _index_by_phase(obj: Object) -> Index:
    owner, creator, _ = _common(obj)
    return Index(_part(obj, "status").get("phase") or "", "", "", owner, creator)


def _index_pod(obj: Object) -> Index:
    owner, creator, annotations = _common(obj)
    return Index(
        _part(obj, "status").get("phase") or "",
        annotations.get(QUEUE_ANNOTATION) or "",
        _part(obj, "spec").get("nodeName") or "",
        owner,
        creator,
    )


def _index_node(obj: Object) -> Index:
    owner, creator, _ = _common(obj)
    for condition in _part(obj, "status").get("conditions") or ():
        if condition.get("type") == "Ready":
            return Index(
                _NODE_PHASES.get(condition.get("status") or "", core.NodePhase.UNKNOWN).value,
                "",
                "",
                owner,
                creator,
            )
    return Index(core.NodePhase.UNKNOWN.value, "", "", owner, creator)


def _index_event(obj: Object) -> Index:
    """An event is found by what it is about: that is its owner here, though not for the garbage collector."""
    _, creator, _ = _common(obj)
    about = _part(obj, "involvedObject").get("uid") or ""
    return Index(obj.get("type") or "", "", "", about, creator)


def _index_job(obj: Object) -> Index:
    owner, creator, _ = _common(obj)
    state = _part(_part(obj, "status"), "state")
    return Index(state.get("phase") or "", _part(obj, "spec").get("queue") or "", "", owner, creator)


def _index_queue(obj: Object) -> Index:
    owner, creator, _ = _common(obj)
    return Index(_part(obj, "status").get("state") or "", "", "", owner, creator)


def _index_pod_group(obj: Object) -> Index:
    owner, creator, _ = _common(obj)
    return Index(
        _part(obj, "status").get("phase") or "", _part(obj, "spec").get("queue") or "", "", owner, creator
    )


_NODE_PHASES = {"True": core.NodePhase.READY, "False": core.NodePhase.NOT_READY}

_NAME = Column("Name", path="metadata.name")
_AGE = Column("Age", path="metadata.creationTimestamp", type="date")
_VOLCANO_AGE = Column("AGE", path="metadata.creationTimestamp", type="date")
_VOLCANO_QUEUE = Column("QUEUE", path="spec.queue", priority=1)


def _core(
    kind: str, plural: str, short_names: tuple[str, ...], type_: type[View], *columns: Column, **changes: Any
) -> Resource:
    """Return a resource of Kubernetes itself: namespaced and without a status unless changes say otherwise."""
    settings = {
        "group": "",
        "version": "v1",
        "namespaced": True,
        "status_subresource": False,
        "index": _index_plain,
    }
    return Resource(
        kind=kind,
        plural=plural,
        singular=kind.lower(),
        short_names=short_names,
        type=type_,
        columns=(_NAME, *columns),
        **{**settings, **changes},
    )


PODS = _core(
    "Pod",
    "pods",
    ("po",),
    core.Pod,
    Column("Ready", cell="pod_ready"),
    Column("Status", cell="pod_status"),
    Column("Restarts", cell="pod_restarts"),
    _AGE,
    Column("IP", path="status.podIP", priority=1, missing="<none>"),
    Column("Node", path="spec.nodeName", priority=1, missing="<none>"),
    Column("Nominated Node", path="status.nominatedNodeName", priority=1, missing="<none>"),
    Column("Readiness Gates", cell="pod_readiness_gates", priority=1),
    status_subresource=True,
    index=_index_pod,
    fields=(
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
)
NODES = _core(
    "Node",
    "nodes",
    ("no",),
    core.Node,
    Column("Status", cell="node_status"),
    Column("Roles", cell="node_roles"),
    _AGE,
    Column("Version", path="status.nodeInfo.kubeletVersion"),
    Column("Internal-IP", cell="node_internal_ip", priority=1),
    Column("External-IP", cell="node_external_ip", priority=1),
    Column("OS-Image", path="status.nodeInfo.osImage", priority=1, missing="<unknown>"),
    Column("Kernel-Version", path="status.nodeInfo.kernelVersion", priority=1, missing="<unknown>"),
    Column(
        "Container-Runtime", path="status.nodeInfo.containerRuntimeVersion", priority=1, missing="<unknown>"
    ),
    namespaced=False,
    status_subresource=True,
    index=_index_node,
    fields=("spec.unschedulable",),
)
NAMESPACES = _core(
    "Namespace",
    "namespaces",
    ("ns",),
    core.Namespace,
    Column("Status", path="status.phase"),
    _AGE,
    namespaced=False,
    status_subresource=True,
    index=_index_by_phase,
    fields=("status.phase",),
)
_EVENT_NAME, _EVENT_COLUMNS = (
    _NAME._replace(priority=1),
    (
        Column("Last Seen", cell="event_last_seen"),
        Column("Type", path="type"),
        Column("Reason", path="reason"),
        Column("Object", cell="event_object"),
        Column("Subobject", path="involvedObject.fieldPath", priority=1),
        Column("Source", cell="event_source", priority=1),
        Column("Message", cell="event_message"),
        Column("First Seen", cell="event_first_seen", priority=1),
        Column("Count", cell="event_count", type="integer", priority=1),
    ),
)
EVENTS = Resource(
    group="",
    version="v1",
    kind="Event",
    plural="events",
    singular="event",
    short_names=("ev",),
    namespaced=True,
    status_subresource=False,
    type=core.Event,
    columns=(*_EVENT_COLUMNS, _EVENT_NAME),
    index=_index_event,
    fields=(
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
)
CONFIGMAPS = _core(
    "ConfigMap",
    "configmaps",
    ("cm",),
    core.ConfigMap,
    Column("Data", cell="config_map_data", type="integer"),
    _AGE,
)
SECRETS = _core(
    "Secret",
    "secrets",
    (),
    core.Secret,
    Column("Type", path="type"),
    Column("Data", cell="secret_data", type="integer"),
    _AGE,
    fields=("type",),
)
SERVICES = _core(
    "Service",
    "services",
    ("svc",),
    core.Service,
    Column("Type", path="spec.type"),
    Column("Cluster-IP", cell="service_cluster_ip"),
    Column("External-IP", cell="service_external_ip"),
    Column("Port(s)", cell="service_ports"),
    _AGE,
    Column("Selector", cell="service_selector", priority=1),
    status_subresource=True,
    fields=("spec.clusterIP", "spec.type"),
)
CLAIMS = _core(
    "PersistentVolumeClaim",
    "persistentvolumeclaims",
    ("pvc",),
    core.PersistentVolumeClaim,
    Column("Status", cell="claim_status"),
    Column("Volume", path="spec.volumeName"),
    Column("Capacity", cell="claim_capacity"),
    Column("Access Modes", cell="claim_access_modes"),
    Column("StorageClass", cell="claim_storage_class"),
    Column("VolumeAttributesClass", path="spec.volumeAttributesClassName", missing="<unset>"),
    _AGE,
    Column("VolumeMode", path="spec.volumeMode", priority=1, missing="<unset>"),
    status_subresource=True,
    index=_index_by_phase,
)
PRIORITY_CLASSES = _core(
    "PriorityClass",
    "priorityclasses",
    ("pc",),
    core.PriorityClass,
    Column("Value", path="value", type="integer"),
    Column("Global-Default", path="globalDefault", type="boolean"),
    _AGE,
    Column("PreemptionPolicy", path="preemptionPolicy"),
    group="scheduling.k8s.io",
    namespaced=False,
)
LEASES = _core(
    "Lease",
    "leases",
    (),
    core.Lease,
    Column("Holder", path="spec.holderIdentity"),
    _AGE,
    group="coordination.k8s.io",
)
JOBS = _core(
    "Job",
    "jobs",
    ("vcjob", "vj"),
    batch.Job,
    Column("STATUS", path="status.state.phase"),
    Column("minAvailable", path="status.minAvailable", type="integer"),
    Column("RUNNINGS", path="status.running", type="integer"),
    _VOLCANO_AGE,
    _VOLCANO_QUEUE,
    group="batch.volcano.sh",
    version="v1alpha1",
    status_subresource=True,
    index=_index_job,
)
COMMANDS = _core("Command", "commands", (), batch.Command, _AGE, group="bus.volcano.sh", version="v1alpha1")
QUEUES = _core(
    "Queue",
    "queues",
    ("q", "queue-v1beta1"),
    scheduling.Queue,
    Column("PARENT", path="spec.parent"),
    group="scheduling.volcano.sh",
    version="v1beta1",
    namespaced=False,
    status_subresource=True,
    index=_index_queue,
)
POD_GROUPS = _core(
    "PodGroup",
    "podgroups",
    ("pg", "podgroup-v1beta1"),
    scheduling.PodGroup,
    Column("STATUS", path="status.phase"),
    Column("minMember", path="spec.minMember", type="integer"),
    Column("RUNNINGS", path="status.running", type="integer"),
    _VOLCANO_AGE,
    _VOLCANO_QUEUE,
    group="scheduling.volcano.sh",
    version="v1beta1",
    index=_index_pod_group,
)

ALL = (
    PODS,
    NODES,
    NAMESPACES,
    EVENTS,
    CONFIGMAPS,
    SECRETS,
    SERVICES,
    CLAIMS,
    PRIORITY_CLASSES,
    LEASES,
    JOBS,
    COMMANDS,
    QUEUES,
    POD_GROUPS,
)

# Computed when asked for; nothing of them is stored.
VIRTUAL: tuple[Resource, ...] = ()

_BY_ID = {resource.id: resource for resource in (*ALL, *VIRTUAL)}
_BY_KIND = {(resource.api_version, resource.kind): resource for resource in (*ALL, *VIRTUAL)}
_BY_PATH = {(resource.group, resource.version, resource.plural): resource for resource in (*ALL, *VIRTUAL)}


def by_id(id: str) -> Resource:  # noqa: A002  it is the attribute's name
    """Return the resource with this id, such as `pods` or `jobs.batch.volcano.sh`; KeyError if there is none."""
    return _BY_ID[id]


def by_kind(api_version: str, kind: str) -> Resource | None:
    """Return the resource of an object's apiVersion and kind, or None if the cluster does not know it."""
    return _BY_KIND.get((api_version, kind))


def by_path(group: str, version: str, plural: str) -> Resource | None:
    """Return the resource that a path of the API names, or None if nothing is served there."""
    return _BY_PATH.get((group, version, plural))


def served() -> tuple[Resource, ...]:
    """Return all that the API serves, in the order of discovery."""
    return (*ALL, *VIRTUAL)
