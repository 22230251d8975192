"""Kubernetes' own kinds: Node, Namespace, Event, ConfigMap, Secret, Service, PersistentVolumeClaim ...

The pod and its parts are in `kube.kinds.pod` and can be imported from here too.
"""

from __future__ import annotations

from enum import StrEnum

from kube.kinds.fields import AnyObject, Quantities, View
from kube.kinds.meta import Condition, ObjectMeta
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

__all__ = [
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
    "Node",
    "NodeAddress",
    "NodeInfo",
    "NodePhase",
    "NodeSpec",
    "NodeStatus",
    "ObjectReference",
    "Pod",
    "PodPhase",
    "PodSpec",
    "PodStatus",
    "PodTemplateSpec",
    "ResourceFieldRef",
    "ResourceRequirements",
    "RestartPolicy",
    "Secret",
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


class EventType(StrEnum):
    """How much an event matters."""

    NORMAL = "Normal"
    WARNING = "Warning"


class Taint(View):
    """What keeps pods that do not tolerate it off a node; with every field, since it is written back."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str = ""


class NodeSpec(View):
    """The desired state of a node."""

    unschedulable: bool = False
    taints: list[Taint] = []


class NodeAddress(View):
    """One address of a node."""

    type: str = ""
    address: str = ""


class NodeInfo(View):
    """The machine and software of a node, as it reports them."""

    kernel_version: str = ""
    os_image: str = ""
    kubelet_version: str = ""
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
    node_info: NodeInfo = NodeInfo()
    config: AnyObject | None = None
    features: AnyObject | None = None


class Node(View):
    """A machine that runs pods."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class ObjectReference(View):
    """Which object an event is about."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""


class EventSeries(View):
    """How often an event happened that goes on, and when last."""

    count: int = 0
    last_observed_time: str = ""


class Event(View):
    """Something that happened to an object, for people."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    involved_object: ObjectReference = ObjectReference()
    reason: str = ""
    message: str = ""
    source: dict[str, str] = {}
    last_timestamp: str = ""
    event_time: str = ""
    count: int = 0
    type: str = ""
    series: EventSeries | None = None
    action: str = ""
    related: ObjectReference | None = None
    reporting_component: str = ""

    @property
    def times(self) -> int:
        """How often it happened: newer clients write a series, older ones a count."""
        return self.series.count if self.series else self.count or 1

    @property
    def last_seen(self) -> str:
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


class LeaseSpec(View):
    """Who holds a lease, and until when."""

    renew_time: str | None = None
    strategy: str | None = None


class Lease(View):
    """Proof that a node or a leader is alive."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: LeaseSpec = LeaseSpec()
