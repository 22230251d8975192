"""The table of all resources: what exists, under which names, how it is printed and found.

Everything that depends on the kind of an object and not on its content is
read from here: URLs, discovery, printed columns, the store's index columns.
Names and columns are those of the CRDs (reference: volcano-queue-podgroup-cli
§6) and of kubectl (reference: kubernetes-api §3.3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from kube import indexes
from kube.indexes import CREATOR_ANNOTATION
from kube.meta import Object
from kube.resource import READ_VERBS, STATUS, VERBS, Column, Index, Resource, ScalePaths, Subresource
from kube.selector import field_text

__all__ = [
    "CREATOR_ANNOTATION",
    "READ_VERBS",
    "STATUS",
    "VERBS",
    "Column",
    "Index",
    "Resource",
    "ScalePaths",
    "Subresource",
]

ALL_CATEGORY = ("all",)  # what `kubectl get all` shows
FINALIZE = Subresource("finalize", ("update",))

_NAME = Column("Name", path="metadata.name")
_AGE = Column("Age", path="metadata.creationTimestamp", type="date")
_CREATED = Column("Created At", cell="created_at", type="date")
_VOLCANO_AGE = Column("AGE", path="metadata.creationTimestamp", type="date")
_VOLCANO_QUEUE = Column("QUEUE", path="spec.queue", priority=1)


def _core(kind: str, plural: str, short_names: tuple[str, ...], *columns: Column, **changes: Any) -> Resource:
    """Return a resource: of the core group, namespaced and without a status unless changes say otherwise.

    In the core group generations are the exception, elsewhere the rule.
    """
    settings = {
        "group": "",
        "version": "v1",
        "namespaced": True,
        "status_subresource": False,
        "has_generation": "group" in changes,
        "index": indexes.plain,
    }
    return Resource(
        kind=kind,
        plural=plural,
        singular=kind.lower(),
        short_names=short_names,
        columns=(_NAME, *columns),
        **{**settings, **changes},
    )


def _flag(path: str) -> Callable[[Object], str]:
    """Return a function for the text of a truth value, which is false where it is absent."""
    return lambda obj: field_text(obj, path) or "false"


def _event_source(event: Object) -> str:
    return field_text(event, "source.component") or field_text(event, "reportingComponent")


def _successful(job: Object) -> str:
    return field_text(job, "status.succeeded") or "0"


PODS = _core(
    "Pod",
    "pods",
    ("po",),
    Column("Ready", cell="pod_ready"),
    Column("Status", cell="pod_status"),
    Column("Restarts", cell="pod_restarts"),
    _AGE,
    Column("IP", path="status.podIP", priority=1, missing="<none>"),
    Column("Node", path="spec.nodeName", priority=1, missing="<none>"),
    Column("Nominated Node", path="status.nominatedNodeName", priority=1, missing="<none>"),
    Column("Readiness Gates", cell="pod_readiness_gates", priority=1),
    status_subresource=True,
    index=indexes.pod,
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
    computed={"spec.hostNetwork": _flag("spec.hostNetwork")},
    subresources=(
        Subresource("attach", ("create", "get"), "PodAttachOptions"),
        Subresource("binding", ("create",), "Binding"),
        Subresource("eviction", ("create",), "Eviction", "policy", "v1"),
        Subresource("exec", ("create", "get"), "PodExecOptions"),
        Subresource("log", ("get",)),
        Subresource("portforward", ("create", "get"), "PodPortForwardOptions"),
    ),
    categories=ALL_CATEGORY,
    has_generation=True,
)
NODES = _core(
    "Node",
    "nodes",
    ("no",),
    Column("Status", cell="node_status"),
    Column("Roles", cell="node_roles"),
    _AGE,
    Column("Version", path="status.nodeInfo.kubeletVersion"),
    Column("Internal-IP", cell="node_internal_ip", priority=1),
    Column("External-IP", cell="node_external_ip", priority=1),
    Column("OS-Image", path="status.nodeInfo.osImage", priority=1, missing="<unknown>"),
    Column("Kernel-Version", path="status.nodeInfo.kernelVersion", priority=1, missing="<unknown>"),
    Column("Container-Runtime", path="status.nodeInfo.containerRuntimeVersion", priority=1, missing="<unknown>"),
    namespaced=False,
    status_subresource=True,
    index=indexes.node,
    fields=("spec.unschedulable",),
    subresources=(Subresource("link", ("create",)),),
    computed={"spec.unschedulable": _flag("spec.unschedulable")},
)
NAMESPACES = _core(
    "Namespace",
    "namespaces",
    ("ns",),
    Column("Status", path="status.phase"),
    _AGE,
    namespaced=False,
    status_subresource=True,
    index=indexes.by_phase,
    fields=("status.phase",),
    verbs=tuple(verb for verb in VERBS if verb != "deletecollection"),
    subresources=(FINALIZE,),
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
        Column("Count", cell="event_count", priority=1),
    ),
)
_REFERENCE = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
EVENTS = Resource(
    group="",
    version="v1",
    kind="Event",
    plural="events",
    singular="event",
    short_names=("ev",),
    namespaced=True,
    status_subresource=False,
    columns=(*_EVENT_COLUMNS, _EVENT_NAME),
    index=indexes.event,
    fields=(*(f"involvedObject.{part}" for part in _REFERENCE), "reason", "reportingComponent", "source", "type"),
    computed={"source": _event_source},
    has_generation=False,
)
EVENTS_VIEW = replace(
    EVENTS,
    group="events.k8s.io",
    fields=(*(f"regarding.{part}" for part in _REFERENCE), "reason", "reportingController", "type"),
    computed={},
    storage=False,
    view_of=EVENTS,
    renamed={
        "regarding": "involvedObject",
        "note": "message",
        "reportingController": "reportingComponent",
        "deprecatedSource": "source",
        "deprecatedFirstTimestamp": "firstTimestamp",
        "deprecatedLastTimestamp": "lastTimestamp",
        "deprecatedCount": "count",
    },
)
CONFIGMAPS = _core(
    "ConfigMap", "configmaps", ("cm",), Column("Data", cell="config_map_data"), _AGE, index=indexes.config_map
)
SECRETS = _core(
    "Secret", "secrets", (), Column("Type", path="type"), Column("Data", cell="secret_data"), _AGE, fields=("type",)
)
SERVICES = _core(
    "Service",
    "services",
    ("svc",),
    Column("Type", path="spec.type"),
    Column("Cluster-IP", cell="service_cluster_ip"),
    Column("External-IP", cell="service_external_ip"),
    Column("Port(s)", cell="service_ports"),
    _AGE,
    Column("Selector", cell="service_selector", priority=1),
    status_subresource=True,
    fields=("spec.clusterIP", "spec.type"),
    categories=ALL_CATEGORY,
)
CLAIMS = _core(
    "PersistentVolumeClaim",
    "persistentvolumeclaims",
    ("pvc",),
    Column("Status", cell="claim_status"),
    Column("Volume", path="spec.volumeName"),
    Column("Capacity", cell="claim_capacity"),
    Column("Access Modes", cell="claim_access_modes"),
    Column("StorageClass", cell="claim_storage_class"),
    Column("VolumeAttributesClass", path="spec.volumeAttributesClassName", missing="<unset>"),
    _AGE,
    Column("VolumeMode", path="spec.volumeMode", priority=1, missing="<unset>"),
    status_subresource=True,
    index=indexes.by_phase,
)
PRIORITY_CLASSES = _core(
    "PriorityClass",
    "priorityclasses",
    ("pc",),
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
    Column("Holder", path="spec.holderIdentity"),
    _AGE,
    group="coordination.k8s.io",
    has_generation=False,
)
ENDPOINTS = _core("Endpoints", "endpoints", ("ep",), Column("Endpoints", cell="endpoints_addresses"), _AGE)
SERVICE_ACCOUNTS = _core(
    "ServiceAccount",
    "serviceaccounts",
    ("sa",),
    Column("Secrets", cell="service_account_secrets", type="integer"),
    _AGE,
    subresources=(Subresource("token", ("create",), "TokenRequest", "authentication.k8s.io", "v1"),),
)
RESOURCE_QUOTAS = _core(
    "ResourceQuota",
    "resourcequotas",
    ("quota",),
    Column("Request", cell="quota_request"),
    Column("Limit", cell="quota_limit"),
    _AGE,
    status_subresource=True,
)
LIMIT_RANGES = _core("LimitRange", "limitranges", ("limits",), _CREATED)
NETWORK_POLICIES = _core(
    "NetworkPolicy",
    "networkpolicies",
    ("netpol",),
    Column("Pod-Selector", cell="network_policy_pod_selector"),
    _AGE,
    group="networking.k8s.io",
)
DISRUPTION_BUDGETS = _core(
    "PodDisruptionBudget",
    "poddisruptionbudgets",
    ("pdb",),
    Column("Min Available", cell="budget_min_available"),
    Column("Max Unavailable", cell="budget_max_unavailable"),
    Column("Allowed Disruptions", path="status.disruptionsAllowed", type="integer"),
    _AGE,
    group="policy",
    status_subresource=True,
)
BATCH_JOBS = _core(
    "Job",
    "jobs",
    (),
    Column("Status", cell="job_status"),
    Column("Completions", cell="job_completions"),
    Column("Duration", cell="job_duration"),
    _AGE,
    Column("Containers", cell="job_containers", priority=1),
    Column("Images", cell="job_images", priority=1),
    Column("Selector", cell="job_selector", priority=1),
    group="batch",
    status_subresource=True,
    index=indexes.job_v1,
    fields=("status.successful",),
    computed={"status.successful": _successful},
    categories=ALL_CATEGORY,
    default_propagation="Orphan",
)
CUSTOM_RESOURCE_DEFINITIONS = _core(
    "CustomResourceDefinition",
    "customresourcedefinitions",
    ("crd", "crds"),
    _CREATED,
    group="apiextensions.k8s.io",
    namespaced=False,
    status_subresource=True,
    categories=("api-extensions",),
)
JOBS = _core(
    "Job",
    "jobs",
    ("vcjob", "vcjobs", "vj"),  # the plural is not Volcano's, but what people type
    Column("STATUS", path="status.state.phase"),
    Column("minAvailable", path="status.minAvailable", type="integer"),
    Column("RUNNINGS", path="status.running", type="integer"),
    _VOLCANO_AGE,
    _VOLCANO_QUEUE,
    group="batch.volcano.sh",
    version="v1alpha1",
    status_subresource=True,
    index=indexes.job,
)
CRON_JOBS = _core(
    "CronJob",
    "cronjobs",
    ("cronvcjob", "cronvj"),
    _AGE,
    group="batch.volcano.sh",
    version="v1alpha1",
    status_subresource=True,
    index=indexes.cron_job,
)
COMMANDS = _core("Command", "commands", (), _AGE, group="bus.volcano.sh", version="v1alpha1")
QUEUES = _core(
    "Queue",
    "queues",
    ("q", "queue-v1beta1"),
    Column("PARENT", path="spec.parent"),
    group="scheduling.volcano.sh",
    version="v1beta1",
    namespaced=False,
    status_subresource=True,
    index=indexes.queue,
)
POD_GROUPS = _core(
    "PodGroup",
    "podgroups",
    ("pg", "podgroup-v1beta1"),
    Column("STATUS", path="status.phase"),
    Column("minMember", path="spec.minMember", type="integer"),
    Column("RUNNINGS", path="status.running", type="integer"),
    _VOLCANO_AGE,
    _VOLCANO_QUEUE,
    group="scheduling.volcano.sh",
    version="v1beta1",
    index=indexes.pod_group,
)
JOB_FLOWS = _core(
    "JobFlow",
    "jobflows",
    ("jf",),
    Column("Status", path="status.state.phase"),
    _AGE,
    group="flow.volcano.sh",
    version="v1alpha1",
    status_subresource=True,
    index=indexes.job_flow,
)
JOB_TEMPLATES = _core(
    "JobTemplate", "jobtemplates", ("jt",), _AGE, group="flow.volcano.sh", version="v1alpha1", status_subresource=True
)
HYPER_NODES = _core(
    "HyperNode",
    "hypernodes",
    ("hn",),
    Column("Tier", path="spec.tier"),
    Column("TierName", path="spec.tierName"),
    Column("NodeCount", path="status.nodeCount", type="integer"),
    _AGE,
    group="topology.volcano.sh",
    version="v1alpha1",
    namespaced=False,
    status_subresource=True,
)

# In the order of discovery, in which kubectl looks for a name: `kubectl get jobs` are those of batch/v1.
ALL = (
    PODS,
    NODES,
    NAMESPACES,
    EVENTS,
    CONFIGMAPS,
    SECRETS,
    SERVICES,
    ENDPOINTS,
    CLAIMS,
    SERVICE_ACCOUNTS,
    RESOURCE_QUOTAS,
    LIMIT_RANGES,
    BATCH_JOBS,
    DISRUPTION_BUDGETS,
    NETWORK_POLICIES,
    PRIORITY_CLASSES,
    LEASES,
    CUSTOM_RESOURCE_DEFINITIONS,
    JOBS,
    CRON_JOBS,
    COMMANDS,
    QUEUES,
    POD_GROUPS,
    JOB_FLOWS,
    JOB_TEMPLATES,
    HYPER_NODES,
)


def _review(kind: str, group: str, *, namespaced: bool = False) -> Resource:
    """Return a review, which is answered at once and not stored."""
    settings = {"group": group, "namespaced": namespaced, "verbs": ("create",), "stored": False}
    return _core(kind, f"{kind.lower()}s", (), **settings)


SELF_SUBJECT_ACCESS_REVIEWS = _review("SelfSubjectAccessReview", "authorization.k8s.io")
SELF_SUBJECT_RULES_REVIEWS = _review("SelfSubjectRulesReview", "authorization.k8s.io")
SUBJECT_ACCESS_REVIEWS = _review("SubjectAccessReview", "authorization.k8s.io")
LOCAL_SUBJECT_ACCESS_REVIEWS = _review("LocalSubjectAccessReview", "authorization.k8s.io", namespaced=True)
TOKEN_REVIEWS = _review("TokenReview", "authentication.k8s.io")
SELF_SUBJECT_REVIEWS = _review("SelfSubjectReview", "authentication.k8s.io")


# The same as pods/binding, for clients that do not use the pod's path.
BINDINGS = _review("Binding", "", namespaced=True)


def _metrics(kind: str, plural: str, *columns: Column, namespaced: bool) -> Resource:
    """Return what is measured and not stored."""
    settings = {"group": "metrics.k8s.io", "version": "v1beta1", "namespaced": namespaced, "stored": False}
    return _core(kind, plural, (), *columns, verbs=("get", "list"), **settings)


NODE_METRICS = _metrics(
    "NodeMetrics",
    "nodes",
    Column("CPU", path="usage.cpu"),
    Column("Memory", path="usage.memory"),
    Column("Window", path="window"),
    namespaced=False,
)
POD_METRICS = _metrics(
    "PodMetrics",
    "pods",
    Column("CPU", path="containers[*].usage.cpu"),
    Column("Memory", path="containers[*].usage.memory"),
    Column("Window", path="window"),
    namespaced=True,
)

# Computed at each request; nothing of them is stored.
VIRTUAL: tuple[Resource, ...] = (
    SELF_SUBJECT_ACCESS_REVIEWS,
    SELF_SUBJECT_RULES_REVIEWS,
    SUBJECT_ACCESS_REVIEWS,
    LOCAL_SUBJECT_ACCESS_REVIEWS,
    TOKEN_REVIEWS,
    BINDINGS,
    SELF_SUBJECT_REVIEWS,
    NODE_METRICS,
    POD_METRICS,
)

# The objects of other resources in another form.
VIEWS: tuple[Resource, ...] = (EVENTS_VIEW,)

BUILT_IN = (*ALL, *VIEWS, *VIRTUAL)
_BUILT_IN = frozenset(resource.full_name for resource in BUILT_IN)


class _Tables:
    """All resources by each of their names. A new one replaces it whole, so that readers need no lock."""

    def __init__(self, custom: Iterable[Resource] = ()) -> None:
        self.custom = tuple(resource for resource in custom if resource.id not in _BUILT_IN)
        served = (*BUILT_IN, *(resource for resource in self.custom if resource.served))
        self.served = served
        stored = (resource for resource in self.custom if resource.storage)
        self.by_id = {resource.id: resource for resource in (*ALL, *VIRTUAL, *stored)}
        self.by_kind = {(resource.api_version, resource.kind): resource for resource in served}
        self.by_path = {(resource.group, resource.version, resource.plural): resource for resource in served}


_tables = _Tables()
_refresh: Callable[[], None] | None = None


def set_custom(custom: Iterable[Resource]) -> None:
    """Make these the custom resources, besides those that are built in."""
    global _tables
    _tables = _Tables(custom)


def set_source(refresh: Callable[[], None]) -> None:
    """Call refresh for an id that is not in the table: it may belong to a kind that was added by another process."""
    global _refresh
    _refresh = refresh


def custom() -> tuple[Resource, ...]:
    """Return the custom resources, all versions of each."""
    return _tables.custom


def is_built_in(id: str) -> bool:  # noqa: A002  it is the attribute's name
    """Whether a kind is part of the cluster itself."""
    return id in _BUILT_IN


def by_id(id: str) -> Resource:  # noqa: A002  it is the attribute's name
    """Return the resource with this id, such as `pods` or `jobs.batch.volcano.sh`; KeyError if there is none.

    Of a custom kind it is the version in which objects are stored.
    """
    resource = _tables.by_id.get(id)
    if resource is None and _refresh is not None and "." in id:
        _refresh()
        resource = _tables.by_id.get(id)
    if resource is None:
        raise KeyError(id)
    return resource


def of_stored(id: str, obj: Object) -> Resource:  # noqa: A002  it is the attribute's name
    """Return the resource of a stored object, also when its kind is not defined any more: enough to delete it."""
    try:
        return by_id(id)
    except KeyError:
        pass
    plural, _, group = id.partition(".")
    return Resource(
        group=group,
        version=str(obj.get("apiVersion") or "").rpartition("/")[2],
        kind=str(obj.get("kind") or ""),
        plural=plural,
        singular=plural,
        short_names=(),
        namespaced=bool((obj.get("metadata") or {}).get("namespace")),
        status_subresource=False,
        columns=(),
        index=indexes.plain,
        served=False,
    )


def by_kind(api_version: str, kind: str) -> Resource | None:
    """Return the resource of an object's apiVersion and kind, or None if the cluster does not serve it."""
    return _tables.by_kind.get((api_version, kind))


def by_path(group: str, version: str, plural: str) -> Resource | None:
    """Return the resource that a path of the API names, or None if nothing is served there."""
    return _tables.by_path.get((group, version, plural))


def served() -> tuple[Resource, ...]:
    """Return all that the API serves, in the order of discovery."""
    return _tables.served
