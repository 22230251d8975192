"""What the columns of Kubernetes' own kinds show where that is more than a field's value.

A column of the resource table names its cell; the rules are those of
Kubernetes' printers (reference: kubernetes-api §3.3), which no object can make
fail.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from kube import lenient, quantity, selector
from kube.meta import Object
from kube.printing import ages, values
from kube.printing.pods import Summary

NONE = "<none>"
_ROLE = "node-role.kubernetes.io/"
_OLD_ROLE = "kubernetes.io/role"
_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
_JOB_STATES = (
    ("Complete", "Complete"),
    ("Failed", "Failed"),
    ("", "Terminating"),
    ("Suspended", "Suspended"),
    ("FailureTarget", "FailureTarget"),
    ("SuccessCriteriaMet", "SuccessCriteriaMet"),
)
_MAX_ENDPOINTS = 3

CELLS: dict[str, Callable[[PrintedRow], Any]] = {}


class PrintedRow:
    """The object that a row shows, and when it is looked at."""

    def __init__(self, obj: Object, now: int) -> None:
        self.obj = obj
        self.now = now

    def at(self, *path: str) -> Any:
        """Return the value at path, or None."""
        value: Any = self.obj
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        return value

    def text(self, *path: str) -> str:
        """Return the text at path, or an empty one."""
        return lenient.text(self.obj, *path)

    def maps(self, *path: str) -> list[Object]:
        """Return the maps in the list at path."""
        return [item for item in lenient.sequence(self.obj, *path) if isinstance(item, dict)]

    @property
    def deleting(self) -> bool:
        """Whether the object is being deleted."""
        return self.at("metadata", "deletionTimestamp") is not None

    @cached_property
    def pod(self) -> Summary:
        """The summary of its containers that three columns of a pod show."""
        return Summary(self.obj)


def cell(function: Callable[[PrintedRow], Any]) -> Callable[[PrintedRow], Any]:
    """Let columns name this function."""
    CELLS[function.__name__] = function
    return function


@cell
def created_at(row: PrintedRow) -> str:
    """Return the moment of creation itself, as kinds without a printer show it."""
    then = ages.moment(row.at("metadata", "creationTimestamp"))
    return "0001-01-01T00:00:00Z" if then is None else row.text("metadata", "creationTimestamp")


@cell
def pod_ready(row: PrintedRow) -> str:
    """Return how many containers are ready, of how many."""
    return f"{row.pod.ready}/{row.pod.total}"


@cell
def pod_status(row: PrintedRow) -> str:
    """Return the one word for how a pod is."""
    return row.pod.reason


@cell
def pod_restarts(row: PrintedRow) -> str:
    """Return how often containers were restarted, and when last."""
    pod = row.pod
    if not pod.restarts or pod.last_restart is None:
        return str(pod.restarts)
    return f"{pod.restarts} ({ages.human_duration(row.now - pod.last_restart)} ago)"


@cell
def pod_readiness_gates(row: PrintedRow) -> str:
    """Return how many readiness gates are open, of how many."""
    gates = row.maps("spec", "readinessGates")
    if not gates:
        return NONE
    conditions = _conditions(row)
    true = sum(1 for gate in gates if conditions.get(lenient.text(gate, "conditionType")) == "True")
    return f"{true}/{len(gates)}"


@cell
def node_status(row: PrintedRow) -> str:
    """Return whether the node is ready and takes pods."""
    ready = _conditions(row).get("Ready")
    readiness = "Unknown" if ready is None else "Ready" if ready == "True" else "NotReady"
    return f"{readiness},SchedulingDisabled" if row.at("spec", "unschedulable") is True else readiness


@cell
def node_roles(row: PrintedRow) -> str:
    """Return the roles that a node's labels give it."""
    roles = set()
    for key, value in lenient.mapping(row.obj, "metadata", "labels").items():
        if key.startswith(_ROLE):
            roles.add(key.removeprefix(_ROLE))
        elif key == _OLD_ROLE and isinstance(value, str):
            roles.add(value)
    return ",".join(sorted(roles - {""})) or NONE


@cell
def node_internal_ip(row: PrintedRow) -> str:
    """Return the address by which other nodes reach this one."""
    return _address(row, "InternalIP")


@cell
def node_external_ip(row: PrintedRow) -> str:
    """Return the address by which the world reaches a node."""
    return _address(row, "ExternalIP")


def _address(row: PrintedRow, kind: str) -> str:
    return next(
        (lenient.text(each, "address") for each in row.maps("status", "addresses") if each.get("type") == kind), NONE
    )


@cell
def event_last_seen(row: PrintedRow) -> str:
    """Return how long ago the event happened last."""
    if isinstance(row.at("series"), dict):
        return ages.age(row.at("series", "lastObservedTime"), row.now)
    last = row.at("lastTimestamp")
    return event_first_seen(row) if ages.moment(last) is None else ages.age(last, row.now)


@cell
def event_first_seen(row: PrintedRow) -> str:
    """Return how long ago the event happened first."""
    first = row.at("firstTimestamp")
    return ages.age(row.at("eventTime") if ages.moment(first) is None else first, row.now)


@cell
def event_count(row: PrintedRow) -> int:
    """Return how often the event happened; one that is not repeated carries no count."""
    count = row.at("series", "count") if isinstance(row.at("series"), dict) else row.at("count") or 1
    return count if isinstance(count, int) else 0


@cell
def event_object(row: PrintedRow) -> str:
    """Return what the event is about, such as `pod/web-0`."""
    kind, name = row.text("involvedObject", "kind").lower(), row.text("involvedObject", "name")
    return f"{kind}/{name}" if name else kind


@cell
def event_source(row: PrintedRow) -> str:
    """Return who reported the event, and from where."""
    component = row.text("source", "component") or row.text("reportingComponent")
    host = row.text("source", "host") or row.text("reportingInstance")
    return f"{component}, {host}" if host else component


@cell
def event_message(row: PrintedRow) -> str:
    """Return the message without the white space around it."""
    return row.text("message").strip()


@cell
def config_map_data(row: PrintedRow) -> int:
    """Return how many entries there are, text and binary."""
    return sum(len(lenient.mapping(row.obj, part)) for part in ("data", "binaryData"))


@cell
def secret_data(row: PrintedRow) -> int:
    """Return how many entries there are."""
    return len(lenient.mapping(row.obj, "data"))


@cell
def service_cluster_ip(row: PrintedRow) -> str:
    """Return the first address inside the cluster."""
    first = next(iter(lenient.texts(row.obj, "spec", "clusterIPs")), "")
    return first or row.text("spec", "clusterIP") or NONE


@cell
def service_external_ip(row: PrintedRow) -> str:
    """Return the addresses outside the cluster, which depend on the type of the service."""
    external = lenient.texts(row.obj, "spec", "externalIPs")
    match row.text("spec", "type"):
        case "ClusterIP" | "NodePort":
            return ",".join(external) or NONE
        case "LoadBalancer":
            ingress = row.maps("status", "loadBalancer", "ingress")
            addresses = {lenient.text(each, "ip") or lenient.text(each, "hostname") for each in ingress}
            return ",".join(sorted(addresses - {""}) + external) or "<pending>"
        case "ExternalName":
            return row.text("spec", "externalName")
    return ages.UNKNOWN


@cell
def service_ports(row: PrintedRow) -> str:
    """Return the ports, such as `80:30080/TCP,443/TCP`."""
    return ",".join(_port(each) for each in row.maps("spec", "ports")) or NONE


def _port(port: Object) -> str:
    node_port = lenient.whole(port, "nodePort") or 0
    number, protocol = lenient.whole(port, "port") or 0, lenient.text(port, "protocol")
    return f"{number}:{node_port}/{protocol}" if node_port > 0 else f"{number}/{protocol}"


@cell
def service_selector(row: PrintedRow) -> str:
    """Return the labels of the pods behind the service."""
    return _labels(lenient.mapping(row.obj, "spec", "selector")) or NONE


@cell
def endpoints_addresses(row: PrintedRow) -> str:
    """Return the first three addresses, and how many more there are."""
    subsets = row.maps("subsets")
    if not subsets:
        return NONE
    addresses = [each for subset in subsets for each in _addresses(subset)]
    listed, more = ",".join(addresses[:_MAX_ENDPOINTS]), len(addresses) - _MAX_ENDPOINTS
    return f"{listed} + {more} more..." if more > 0 else listed


def _addresses(subset: Object) -> list[str]:
    hosts = [lenient.text(each, "ip") for each in lenient.sequence(subset, "addresses")]
    ports = lenient.sequence(subset, "ports")
    if not ports:
        return hosts
    numbers = [lenient.whole(port, "port") or 0 for port in ports]
    return [f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for port in numbers for host in hosts]


@cell
def service_account_secrets(row: PrintedRow) -> int:
    """Return how many secrets the service account names."""
    return len(lenient.sequence(row.obj, "secrets"))


@cell
def claim_status(row: PrintedRow) -> str:
    """Return the phase of a claim."""
    return "Terminating" if row.deleting else row.text("status", "phase")


@cell
def claim_capacity(row: PrintedRow) -> str:
    """Return how large the volume is that a claim got."""
    if not row.text("spec", "volumeName"):
        return ""
    return _quantity(row.at("status", "capacity", "storage"))


@cell
def claim_access_modes(row: PrintedRow) -> str:
    """Return how the volume that a claim got may be mounted, such as `RWO,ROX`."""
    if not row.text("spec", "volumeName"):
        return ""
    modes = lenient.texts(row.obj, "status", "accessModes")
    return ",".join(short for mode, short in _MODES.items() if mode in modes)


@cell
def claim_storage_class(row: PrintedRow) -> str:
    """Return the storage class; the annotation of old still wins."""
    annotated = lenient.mapping(row.obj, "metadata", "annotations").get(_STORAGE_CLASS)
    return annotated if isinstance(annotated, str) else row.text("spec", "storageClassName")


@cell
def job_status(row: PrintedRow) -> str:
    """Return the state of a batch/v1 Job: the first that is true, or Running."""
    conditions = _conditions(row)
    for condition, state in _JOB_STATES:
        if conditions.get(condition) == "True" if condition else row.deleting:
            return state
    return "Running"


@cell
def job_completions(row: PrintedRow) -> str:
    """Return how many pods have succeeded, of how many."""
    succeeded = lenient.whole(row.obj, "status", "succeeded") or 0
    completions = lenient.whole(row.obj, "spec", "completions")
    if completions is not None:
        return f"{succeeded}/{completions}"
    parallelism = lenient.whole(row.obj, "spec", "parallelism") or 0
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


@cell
def job_duration(row: PrintedRow) -> str:
    """Return how long the job took, or has been running."""
    start = ages.moment(row.at("status", "startTime"))
    if start is None:
        return ""
    end = ages.moment(row.at("status", "completionTime"))
    return ages.human_duration((row.now if end is None else end) - start)


@cell
def job_containers(row: PrintedRow) -> str:
    """Return the names of the containers of the pod template."""
    return ",".join(lenient.text(each, "name") for each in _template(row))


@cell
def job_images(row: PrintedRow) -> str:
    """Return the images of the containers of the pod template."""
    return ",".join(lenient.text(each, "image") for each in _template(row))


def _template(row: PrintedRow) -> list[Object]:
    return row.maps("spec", "template", "spec", "containers")


@cell
def job_selector(row: PrintedRow) -> str:
    """Return `spec.selector` as kubectl's `-l` would take it."""
    return _selector(row.at("spec", "selector"))


@cell
def network_policy_pod_selector(row: PrintedRow) -> str:
    """Return the pods that a network policy is about."""
    return _selector(row.at("spec", "podSelector"))


@cell
def quota_request(row: PrintedRow) -> str:
    """Return what is used and allowed of everything but limits."""
    return _usage(row, limits=False)


@cell
def quota_limit(row: PrintedRow) -> str:
    """Return what is used and allowed of the limits."""
    return _usage(row, limits=True)


def _usage(row: PrintedRow, *, limits: bool) -> str:
    hard, used = (lenient.mapping(row.obj, "status", part) for part in ("hard", "used"))
    return ", ".join(
        f"{name}: {_quantity(used.get(name))}/{_quantity(hard[name])}"
        for name in sorted(hard)
        if name.startswith("limits.") is limits
    )


@cell
def budget_min_available(row: PrintedRow) -> str:
    """Return how many pods a disruption budget protects."""
    return _or_not_available(row.at("spec", "minAvailable"))


@cell
def budget_max_unavailable(row: PrintedRow) -> str:
    """Return how many pods a disruption budget lets go."""
    return _or_not_available(row.at("spec", "maxUnavailable"))


def _or_not_available(value: Any) -> str:
    return "N/A" if value is None else values.text(value)


def _conditions(row: PrintedRow) -> dict[str, str]:
    return {lenient.text(each, "type"): lenient.text(each, "status") for each in row.maps("status", "conditions")}


def _labels(labels: Object) -> str:
    return ",".join(f"{key}={values.text(value)}" for key, value in sorted(labels.items()))


def _selector(value: Any) -> str:
    """Write a labelSelector; each of its conditions by its key, as Kubernetes orders them."""
    try:
        selector.from_object(value)
    except selector.SelectorError:
        return "<error>"
    conditions = [(key, f"{key}={values.text(each)}") for key, each in lenient.mapping(value, "matchLabels").items()]
    for each in lenient.sequence(value, "matchExpressions"):
        key = lenient.text(each, "key")
        conditions.append((key, _expression(key, each)))
    return ",".join(text for _, text in sorted(conditions, key=lambda pair: pair[0])) or NONE


def _expression(key: str, expression: Object) -> str:
    operator = lenient.text(expression, "operator")
    if operator in ("Exists", "DoesNotExist"):
        return key if operator == "Exists" else f"!{key}"
    return f"{key} {operator.lower()} ({','.join(sorted(lenient.texts(expression, 'values')))})"


def _quantity(value: Any) -> str:
    try:
        return "0" if value is None else quantity.canonical(value)
    except quantity.QuantityError:
        return values.text(value)
