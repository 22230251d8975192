"""Kubernetes' own kinds: Node, Namespace, Event, ConfigMap, Secret, Service, PersistentVolumeClaim ...

The pod and its parts are in `kube.kinds.pod` and can be imported from here too.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from kube.kinds.fields import (
    REQUIRED,
    AnyObject,
    Count,
    Int32,
    IntOrString,
    Port,
    Quantities,
    Time,
    View,
    keywords,
    one_of,
)
from kube.kinds.pod import (
    Container,
    ContainerPort,
    ContainerRestartPolicy,
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    EnvFromSource,
    EnvVar,
    EnvVarSource,
    FieldRef,
    KeyRef,
    KeyToPath,
    NameRef,
    Pod,
    PodPhase,
    PodSpec,
    PodStatus,
    PodTemplateSpec,
    ResourceFieldRef,
    ResourceRequirements,
    RestartPolicy,
    TaintEffect,
    Toleration,
    Volume,
    VolumeMount,
)
from kube.meta import Condition, ObjectMeta

__all__ = [
    "Binding",
    "ClaimPhase",
    "ConfigMap",
    "Container",
    "ContainerPort",
    "ContainerRestartPolicy",
    "ContainerState",
    "ContainerStateRunning",
    "ContainerStateTerminated",
    "ContainerStateWaiting",
    "ContainerStatus",
    "EnvFromSource",
    "EnvVar",
    "EnvVarSource",
    "Event",
    "EventSeries",
    "EventType",
    "FieldRef",
    "KeyRef",
    "KeyToPath",
    "Lease",
    "LeaseSpec",
    "NameRef",
    "Namespace",
    "NamespacePhase",
    "NamespaceSpec",
    "NamespaceStatus",
    "Node",
    "NodeAddress",
    "NodeInfo",
    "NodePhase",
    "NodeSpec",
    "NodeStatus",
    "ObjectReference",
    "PersistentVolumeClaim",
    "PersistentVolumeClaimSpec",
    "PersistentVolumeClaimStatus",
    "Pod",
    "PodPhase",
    "PodSpec",
    "PodStatus",
    "PodTemplateSpec",
    "PriorityClass",
    "ResourceFieldRef",
    "ResourceRequirements",
    "RestartPolicy",
    "Secret",
    "Service",
    "ServicePort",
    "ServiceSpec",
    "Taint",
    "TaintEffect",
    "Toleration",
    "Volume",
    "VolumeMount",
]


class NodePhase(StrEnum):
    """What the Ready condition of a node amounts to."""

    READY = "Ready"
    NOT_READY = "NotReady"
    UNKNOWN = "Unknown"


class NamespacePhase(StrEnum):
    """Whether a namespace is in use or on its way out."""

    ACTIVE = "Active"
    TERMINATING = "Terminating"


class ClaimPhase(StrEnum):
    """Whether a claim has its volume."""

    PENDING = "Pending"
    BOUND = "Bound"
    LOST = "Lost"


class EventType(StrEnum):
    """How much an event matters."""

    NORMAL = "Normal"
    WARNING = "Warning"


class Taint(View):
    """What keeps pods that do not tolerate it off a node."""

    key: Annotated[str, REQUIRED] = ""
    value: str = ""
    effect: Annotated[str, REQUIRED, one_of(TaintEffect)] = ""
    time_added: Time = ""


class NodeSpec(View):
    """What is wished of a node."""

    unschedulable: bool = False
    taints: list[Taint] = []
    pod_cidr: str = ""
    pod_cidrs: list[str] = []
    provider_id: str = ""
    config_source: AnyObject | None = None
    external_id: str = ""


class NodeAddress(View):
    """One address of a node."""

    type: str = ""
    address: str = ""


class NodeInfo(View):
    """What a node says about its machine and software."""

    machine_id: str = ""
    system_uuid: str = ""
    boot_id: str = ""
    kernel_version: str = ""
    os_image: str = ""
    container_runtime_version: str = ""
    kubelet_version: str = ""
    kube_proxy_version: str = ""
    operating_system: str = ""
    architecture: str = ""
    swap: AnyObject | None = None


class NodeStatus(View):
    """What a node reports."""

    capacity: Quantities = {}
    allocatable: Quantities = {}
    phase: str = ""
    conditions: list[Condition] = []
    addresses: list[NodeAddress] = []
    daemon_endpoints: AnyObject | None = None
    node_info: NodeInfo = NodeInfo()
    images: list[AnyObject] = []
    volumes_in_use: list[str] = []
    volumes_attached: list[AnyObject] = []
    config: AnyObject | None = None
    features: AnyObject | None = None
    runtime_handlers: list[AnyObject] = []
    declared_features: list[str] = []


class Node(View):
    """A machine that runs pods."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class NamespaceSpec(View):
    """Who must agree before a namespace goes."""

    finalizers: list[str] = []


class NamespaceStatus(View):
    """Where a namespace is in its life."""

    phase: Annotated[str, one_of(NamespacePhase)] = ""
    conditions: list[Condition] = []


class Namespace(View):
    """A name space for objects, and the unit of rights."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: NamespaceSpec = NamespaceSpec()
    status: NamespaceStatus = NamespaceStatus()


class ObjectReference(View):
    """Which object an event is about."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""


class Binding(View):
    """The wish to run a pod on a node; metadata names the pod."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    target: Annotated[ObjectReference, REQUIRED] = ObjectReference()


class EventSeries(View):
    """How often an event happened that goes on, and when last."""

    count: Int32 = 0
    last_observed_time: Time = ""


class Event(View):
    """Something that happened to an object, told to people."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    involved_object: Annotated[ObjectReference, REQUIRED] = ObjectReference()
    reason: Annotated[str, keywords(maxLength=128)] = ""
    message: str = ""
    source: dict[str, str] = {}
    first_timestamp: Time = ""
    last_timestamp: Time = ""
    event_time: Time = ""
    count: Count = 0
    type: Annotated[str, one_of(EventType)] = ""
    series: EventSeries | None = None
    action: str = ""
    related: ObjectReference | None = None
    reporting_component: str = ""
    reporting_instance: str = ""

    @property
    def times(self) -> int:
        """How often it happened: newer clients keep a series, older ones a count."""
        return self.series.count if self.series else self.count or 1

    @property
    def seen(self) -> str:
        """When it happened last."""
        last = self.series.last_observed_time if self.series else self.last_timestamp
        return last or self.event_time or self.metadata.creation_timestamp


class ConfigMap(View):
    """Texts by name, mounted into pods or given to them as variables."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    data: dict[str, str] = {}
    binary_data: dict[str, str] = {}
    immutable: bool | None = None


class Secret(View):
    """A ConfigMap that is not for everybody's eyes; the values of `data` are base64."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    data: dict[str, str] = {}
    string_data: dict[str, str] = {}
    type: str = ""
    immutable: bool | None = None


class ServicePort(View):
    """One port that a service listens on."""

    name: str = ""
    protocol: str = ""
    app_protocol: str = ""
    port: Annotated[Port, REQUIRED] = 0
    target_port: IntOrString = 0
    node_port: Port = 0


class ServiceSpec(View):
    """Which pods a service stands for, and under which address."""

    ports: list[ServicePort] = []
    selector: dict[str, str] = {}
    cluster_ip: str = ""
    cluster_ips: list[str] = []
    type: str = ""
    external_ips: list[str] = []
    session_affinity: str = ""
    load_balancer_ip: str = ""
    load_balancer_source_ranges: list[str] = []
    external_name: str = ""
    external_traffic_policy: str = ""
    health_check_node_port: Int32 = 0
    publish_not_ready_addresses: bool = False
    session_affinity_config: AnyObject | None = None
    ip_families: list[str] = []
    ip_family_policy: str | None = None
    allocate_load_balancer_node_ports: bool | None = None
    load_balancer_class: str | None = None
    internal_traffic_policy: str | None = None
    traffic_distribution: str | None = None


class Service(View):
    """A stable name for a set of pods."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: ServiceSpec = ServiceSpec()
    status: AnyObject | None = None


class PersistentVolumeClaimSpec(View):
    """What a claim asks of a volume."""

    access_modes: list[str] = []
    selector: AnyObject | None = None
    resources: ResourceRequirements = ResourceRequirements()
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None
    data_source: AnyObject | None = None
    data_source_ref: AnyObject | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaimStatus(View):
    """What a claim got."""

    phase: Annotated[str, one_of(ClaimPhase)] = ""
    access_modes: list[str] = []
    capacity: Quantities = {}
    conditions: list[Condition] = []
    allocated_resources: Quantities = {}
    allocated_resource_statuses: dict[str, str] = {}
    current_volume_attributes_class_name: str | None = None
    modify_volume_status: AnyObject | None = None


class PersistentVolumeClaim(View):
    """A wish for storage that outlives a pod."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class PriorityClass(View):
    """A name for a priority; it has no spec."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    value: Int32 = 0
    global_default: bool = False
    description: str = ""
    preemption_policy: Annotated[str, one_of(("PreemptLowerPriority", "Never"))] = ""


class LeaseSpec(View):
    """Who holds a lease, and until when."""

    holder_identity: str | None = None
    lease_duration_seconds: Annotated[int, keywords(minimum=1)] | None = None
    acquire_time: Time | None = None
    renew_time: Time | None = None
    lease_transitions: Count | None = None
    strategy: str | None = None
    preferred_holder: str | None = None


class Lease(View):
    """Proof that a node or a leader is alive."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: LeaseSpec = LeaseSpec()
