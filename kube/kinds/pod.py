"""The pod and its parts (reference: kubernetes-api, v1.31 to v1.35).

What schedulers and node agents read is typed; the rest is passed through, but
named, so that an unknown field is known to be unknown.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from kube.kinds.fields import (
    REQUIRED,
    AnyObject,
    Count,
    DnsLabel,
    Int32,
    Int64,
    Port,
    Quantities,
    Quantity,
    Seconds,
    Time,
    View,
    keywords,
    one_of,
)
from kube.meta import Condition, ObjectMeta


class PodPhase(StrEnum):
    """Where a pod is in its life."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


# The phases that a pod does not leave, and the others; "" is that of a pod nobody has said anything of yet.
ENDED = (PodPhase.SUCCEEDED.value, PodPhase.FAILED.value)
UNENDED = ("", PodPhase.PENDING.value, PodPhase.RUNNING.value, PodPhase.UNKNOWN.value)


class RestartPolicy(StrEnum):
    """When the containers of a pod are started again."""

    ALWAYS = "Always"
    ON_FAILURE = "OnFailure"
    NEVER = "Never"


class ContainerRestartPolicy(StrEnum):
    """When one container is started again; Always makes an init container keep running beside the others."""

    ALWAYS = "Always"
    ON_FAILURE = "OnFailure"
    NEVER = "Never"


class TaintEffect(StrEnum):
    """What a taint does to pods that do not tolerate it."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class ResourceRequirements(View):
    """What a container asks for and may use at most."""

    requests: Quantities = {}
    limits: Quantities = {}
    claims: list[AnyObject] = []


class FieldRef(View):
    """Names a field of the pod itself."""

    api_version: str = ""
    field_path: Annotated[str, REQUIRED] = ""


class ResourceFieldRef(View):
    """Names a request or limit of a container."""

    container_name: str = ""
    resource: Annotated[str, REQUIRED] = ""
    divisor: Quantity = ""


class KeyRef(View):
    """Names one key of a ConfigMap or Secret."""

    name: str = ""
    key: Annotated[str, REQUIRED] = ""
    optional: bool | None = None


class NameRef(View):
    """Names a whole ConfigMap or Secret."""

    name: str = ""
    optional: bool | None = None


class EnvVarSource(View):
    """Where the value of a variable comes from."""

    field_ref: FieldRef | None = None
    resource_field_ref: ResourceFieldRef | None = None
    config_map_key_ref: KeyRef | None = None
    secret_key_ref: KeyRef | None = None
    file_key_ref: AnyObject | None = None


class EnvVar(View):
    """One variable in a container's environment."""

    name: Annotated[str, REQUIRED] = ""
    value: str = ""
    value_from: EnvVarSource | None = None


class EnvFromSource(View):
    """A ConfigMap or Secret all of whose keys become variables."""

    prefix: str = ""
    config_map_ref: NameRef | None = None
    secret_ref: NameRef | None = None


class ContainerPort(View):
    """A port that a container listens on."""

    name: str = ""
    container_port: Annotated[int, REQUIRED, keywords(minimum=1, maximum=65535)] = 0
    host_port: Port = 0
    host_ip: str = ""
    protocol: Annotated[str, one_of(("TCP", "UDP", "SCTP"))] = ""


class VolumeMount(View):
    """Where a container sees a volume."""

    name: Annotated[str, REQUIRED] = ""
    mount_path: Annotated[str, REQUIRED] = ""
    sub_path: str = ""
    sub_path_expr: str = ""
    read_only: bool = False
    recursive_read_only: str | None = None
    mount_propagation: str | None = None


class Container(View):
    """One command of a pod, with all it needs."""

    name: Annotated[DnsLabel, REQUIRED] = ""
    image: str = ""
    command: list[str] = []
    args: list[str] = []
    working_dir: str = ""
    env: list[EnvVar] = []
    env_from: list[EnvFromSource] = []
    ports: list[ContainerPort] = []
    resources: ResourceRequirements = ResourceRequirements()
    volume_mounts: list[VolumeMount] = []
    restart_policy: Annotated[str, one_of(ContainerRestartPolicy)] = ""
    restart_policy_rules: list[AnyObject] = []
    resize_policy: list[AnyObject] = []
    volume_devices: list[AnyObject] = []
    liveness_probe: AnyObject | None = None
    readiness_probe: AnyObject | None = None
    startup_probe: AnyObject | None = None
    lifecycle: AnyObject | None = None
    termination_message_path: str = ""
    termination_message_policy: Annotated[str, one_of(("File", "FallbackToLogsOnError"))] = ""
    image_pull_policy: Annotated[str, one_of(("Always", "Never", "IfNotPresent"))] = ""
    security_context: AnyObject | None = None
    stdin: bool = False
    stdin_once: bool = False
    tty: bool = False


class KeyToPath(View):
    """Where one key of a ConfigMap or Secret appears in a volume."""

    key: Annotated[str, REQUIRED] = ""
    path: Annotated[str, REQUIRED] = ""
    mode: Int32 | None = None


class ConfigMapVolume(View):
    """A ConfigMap as a directory."""

    name: str = ""
    items: list[KeyToPath] = []
    default_mode: Int32 | None = None
    optional: bool | None = None


class SecretVolume(View):
    """A Secret as a directory."""

    secret_name: str = ""
    items: list[KeyToPath] = []
    default_mode: Int32 | None = None
    optional: bool | None = None


class EmptyDirVolume(View):
    """A directory that lives as long as the pod."""

    medium: str = ""
    size_limit: Quantity | None = None


class HostPathVolume(View):
    """A directory of the node."""

    path: Annotated[str, REQUIRED] = ""
    type: str | None = None


class ClaimVolume(View):
    """The volume of a PersistentVolumeClaim."""

    claim_name: Annotated[str, REQUIRED] = ""
    read_only: bool = False


class Volume(View):
    """A directory that containers of a pod share; one of the sources is given."""

    name: Annotated[DnsLabel, REQUIRED] = ""
    config_map: ConfigMapVolume | None = None
    secret: SecretVolume | None = None
    empty_dir: EmptyDirVolume | None = None
    host_path: HostPathVolume | None = None
    persistent_volume_claim: ClaimVolume | None = None
    projected: AnyObject | None = None
    downward_api: AnyObject | None = None
    aws_elastic_block_store: AnyObject | None = None
    azure_disk: AnyObject | None = None
    azure_file: AnyObject | None = None
    cephfs: AnyObject | None = None
    cinder: AnyObject | None = None
    csi: AnyObject | None = None
    ephemeral: AnyObject | None = None
    fc: AnyObject | None = None
    flex_volume: AnyObject | None = None
    flocker: AnyObject | None = None
    gce_persistent_disk: AnyObject | None = None
    git_repo: AnyObject | None = None
    glusterfs: AnyObject | None = None
    image: AnyObject | None = None
    iscsi: AnyObject | None = None
    nfs: AnyObject | None = None
    photon_persistent_disk: AnyObject | None = None
    portworx_volume: AnyObject | None = None
    quobyte: AnyObject | None = None
    rbd: AnyObject | None = None
    scale_io: AnyObject | None = None
    storageos: AnyObject | None = None
    vsphere_volume: AnyObject | None = None


class Toleration(View):
    """A taint that a pod puts up with."""

    key: str = ""
    operator: Annotated[str, one_of(("Exists", "Equal", "Lt", "Gt"))] = ""
    value: str = ""
    effect: Annotated[str, one_of(TaintEffect)] = ""
    toleration_seconds: Int64 | None = None


class PodSpec(View):
    """What is wished of a pod."""

    containers: Annotated[list[Container], REQUIRED, keywords(minItems=1)] = []
    init_containers: list[Container] = []
    node_name: str = ""
    node_selector: dict[str, str] = {}
    affinity: AnyObject | None = None
    tolerations: list[Toleration] = []
    scheduler_name: str = ""
    priority: Int32 | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    restart_policy: Annotated[str, one_of(RestartPolicy)] = ""
    termination_grace_period_seconds: Seconds | None = None
    active_deadline_seconds: Annotated[int, keywords(minimum=1, maximum=2**31 - 1)] | None = None
    hostname: DnsLabel = ""
    subdomain: DnsLabel = ""
    volumes: list[Volume] = []
    scheduling_gates: list[AnyObject] = []
    overhead: Quantities = {}
    resources: ResourceRequirements | None = None
    topology_spread_constraints: list[AnyObject] = []
    service_account_name: str = ""
    service_account: str = ""
    automount_service_account_token: bool | None = None
    dns_policy: Annotated[str, one_of(("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"))] = ""
    dns_config: AnyObject | None = None
    host_network: bool = False
    host_pid: bool = False
    host_ipc: bool = False
    host_users: bool | None = None
    host_aliases: list[AnyObject] = []
    hostname_override: str | None = None
    set_hostname_as_fqdn: bool | None = None
    share_process_namespace: bool | None = None
    security_context: AnyObject | None = None
    image_pull_secrets: list[NameRef] = []
    ephemeral_containers: list[AnyObject] = []
    readiness_gates: list[AnyObject] = []
    runtime_class_name: str | None = None
    enable_service_links: bool | None = None
    os: AnyObject | None = None
    resource_claims: list[AnyObject] = []
    workload_ref: AnyObject | None = None


class ContainerStateWaiting(View):
    """The container does not run yet, or not at the moment."""

    reason: str = ""
    message: str = ""


class ContainerStateRunning(View):
    """The container runs."""

    started_at: Time = ""


class ContainerStateTerminated(View):
    """The container has ended."""

    exit_code: Annotated[Int32, REQUIRED] = 0
    signal: Int32 = 0
    reason: str = ""
    message: str = ""
    started_at: Time = ""
    finished_at: Time = ""
    container_id: str = ""


class ContainerState(View):
    """One of the three is given."""

    waiting: ContainerStateWaiting | None = None
    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None


class ContainerStatus(View):
    """How one container of a pod is doing."""

    name: str = ""
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()
    ready: bool = False
    restart_count: Count = 0
    image: str = ""
    image_id: str = ""
    container_id: str = ""
    started: bool | None = None
    allocated_resources: Quantities = {}
    allocated_resources_status: list[AnyObject] = []
    resources: ResourceRequirements | None = None
    volume_mounts: list[AnyObject] = []
    user: AnyObject | None = None
    stop_signal: str | None = None


class PodStatus(View):
    """What the node and the scheduler report of a pod."""

    phase: Annotated[str, one_of(PodPhase)] = ""
    reason: str = ""
    message: str = ""
    conditions: list[Condition] = []
    pod_ip: str = ""
    pod_ips: list[AnyObject] = []
    host_ip: str = ""
    host_ips: list[AnyObject] = []
    start_time: Time = ""
    init_container_statuses: list[ContainerStatus] = []
    container_statuses: list[ContainerStatus] = []
    ephemeral_container_statuses: list[ContainerStatus] = []
    nominated_node_name: str = ""
    qos_class: str = ""
    resize: str = ""
    resource_claim_statuses: list[AnyObject] = []
    extended_resource_claim_status: AnyObject | None = None
    allocated_resources: Quantities = {}
    resources: ResourceRequirements | None = None
    observed_generation: Int64 = 0


class Pod(View):
    """Containers that run together on one node."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[PodSpec, REQUIRED] = PodSpec()
    status: PodStatus = PodStatus()


class PodTemplateSpec(View):
    """What the pods of a task look like."""

    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[PodSpec, REQUIRED] = PodSpec()
