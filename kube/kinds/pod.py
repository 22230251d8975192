"""The pod and its parts (reference: kubernetes-api, v1.31 to v1.35).

What schedulers and node agents read is typed; the rest is passed through, but
named, so that unknown fields can be told from those.
"""

from __future__ import annotations

from enum import StrEnum

from kube.kinds.fields import AnyObject, Quantities, Quantity, View
from kube.kinds.meta import Condition, ObjectMeta


class PodPhase(StrEnum):
    """Where a pod is in its life."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


# The phases that a pod does not leave, and the others; "" is that of a pod without a status yet.
ENDED = (PodPhase.SUCCEEDED.value, PodPhase.FAILED.value)
UNENDED = ("", PodPhase.PENDING.value, PodPhase.RUNNING.value, PodPhase.UNKNOWN.value)
# The annotation by which a controller says that a pod's end is its own doing, and no eviction.
OUT_OF_SYNC = "volcano.sh/controller-out-of-sync"


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


class PullPolicy(StrEnum):
    """When an image is pulled before a container starts."""

    ALWAYS = "Always"
    IF_NOT_PRESENT = "IfNotPresent"
    NEVER = "Never"


class TaintEffect(StrEnum):
    """What a taint does to pods that do not tolerate it."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class ResourceRequirements(View):
    """The requests and limits of a container."""

    requests: Quantities = {}
    limits: Quantities = {}
    claims: list[AnyObject] = []


class FieldRef(View):
    """Names a field of the pod itself."""

    api_version: str = ""
    field_path: str = ""


class ResourceFieldRef(View):
    """Names a request or limit of a container."""

    container_name: str = ""
    resource: str = ""
    divisor: Quantity = ""


class KeyRef(View):
    """Names one key of a ConfigMap or Secret."""

    name: str = ""
    key: str = ""
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


class EnvVar(View):
    """One variable in a container's environment."""

    name: str = ""
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
    container_port: int = 0
    host_port: int = 0
    host_ip: str = ""
    protocol: str = ""


class VolumeMount(View):
    """Where a container sees a volume."""

    name: str = ""
    mount_path: str = ""
    sub_path: str = ""
    sub_path_expr: str = ""
    read_only: bool = False


class ExecAction(View):
    """A command in the container; it fails with any exit code but 0."""

    command: list[str] = []


class HttpHeader(View):
    """A line in the head of a request."""

    name: str = ""
    value: str = ""


class HttpGetAction(View):
    """A request; without a host it goes to the pod's own address."""

    path: str = ""
    port: int | str = 0
    host: str = ""
    scheme: str = ""
    http_headers: list[HttpHeader] = []


class TcpSocketAction(View):
    """A connection that is made and closed."""

    port: int | str = 0
    host: str = ""


class SleepAction(View):
    """A pause in seconds."""

    seconds: int = 0


class Probe(View):
    """How a container is checked; one of the actions is given, and 0 stands for Kubernetes' default."""

    exec: ExecAction | None = None
    http_get: HttpGetAction | None = None
    tcp_socket: TcpSocketAction | None = None
    grpc: AnyObject | None = None
    initial_delay_seconds: int = 0
    timeout_seconds: int = 0
    period_seconds: int = 0
    success_threshold: int = 0
    failure_threshold: int = 0
    termination_grace_period_seconds: int | None = None


class LifecycleHandler(View):
    """What is done after a container's start or before its end; one of the actions is given."""

    exec: ExecAction | None = None
    http_get: HttpGetAction | None = None
    tcp_socket: TcpSocketAction | None = None
    sleep: SleepAction | None = None


class Lifecycle(View):
    """What is done after a container's start and before its end."""

    post_start: LifecycleHandler | None = None
    pre_stop: LifecycleHandler | None = None


class SecurityContext(View):
    """As whom a container runs."""

    run_as_user: int | None = None
    run_as_group: int | None = None
    run_as_non_root: bool | None = None
    read_only_root_filesystem: bool | None = None
    capabilities: AnyObject | None = None


class PodSecurityContext(View):
    """As whom the containers of a pod run, and to which group their volumes belong."""

    run_as_user: int | None = None
    run_as_group: int | None = None
    run_as_non_root: bool | None = None
    fs_group: int | None = None
    supplemental_groups: list[int] = []


class Container(View):
    """One command of a pod, with all it needs."""

    name: str = ""
    image: str = ""
    image_pull_policy: str = ""
    command: list[str] = []
    args: list[str] = []
    working_dir: str = ""
    env: list[EnvVar] = []
    env_from: list[EnvFromSource] = []
    ports: list[ContainerPort] = []
    resources: ResourceRequirements = ResourceRequirements()
    volume_mounts: list[VolumeMount] = []
    restart_policy: str = ""
    lifecycle: Lifecycle | None = None
    startup_probe: Probe | None = None
    liveness_probe: Probe | None = None
    readiness_probe: Probe | None = None
    security_context: SecurityContext | None = None
    stdin: bool = False
    stdin_once: bool = False
    tty: bool = False


class KeyToPath(View):
    """Where one key of a ConfigMap or Secret appears in a volume."""

    key: str = ""
    path: str = ""
    mode: int | None = None


class ConfigMapVolume(View):
    """A ConfigMap as a directory."""

    name: str = ""
    items: list[KeyToPath] = []
    default_mode: int | None = None
    optional: bool | None = None


class SecretVolume(View):
    """A Secret as a directory."""

    secret_name: str = ""
    items: list[KeyToPath] = []
    default_mode: int | None = None
    optional: bool | None = None


class HostPathVolume(View):
    """A directory of the node."""

    path: str = ""
    type: str | None = None


class ClaimVolume(View):
    """The volume of a PersistentVolumeClaim."""

    claim_name: str = ""
    read_only: bool = False


class Volume(View):
    """A directory that containers of a pod share; one of the sources is given."""

    name: str = ""
    config_map: ConfigMapVolume | None = None
    secret: SecretVolume | None = None
    empty_dir: AnyObject | None = None
    host_path: HostPathVolume | None = None
    persistent_volume_claim: ClaimVolume | None = None
    projected: AnyObject | None = None
    downward_api: AnyObject | None = None
    cephfs: AnyObject | None = None
    cinder: AnyObject | None = None
    csi: AnyObject | None = None
    ephemeral: AnyObject | None = None
    fc: AnyObject | None = None
    flocker: AnyObject | None = None
    glusterfs: AnyObject | None = None
    image: AnyObject | None = None
    iscsi: AnyObject | None = None
    nfs: AnyObject | None = None
    quobyte: AnyObject | None = None
    rbd: AnyObject | None = None
    storageos: AnyObject | None = None


class Toleration(View):
    """A taint that a pod puts up with."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class PodSpec(View):
    """The desired state of a pod."""

    containers: list[Container] = []
    init_containers: list[Container] = []
    node_name: str = ""
    node_selector: dict[str, str] = {}
    affinity: AnyObject | None = None
    tolerations: list[Toleration] = []
    scheduler_name: str = ""
    priority: int | None = None
    priority_class_name: str = ""
    restart_policy: str = ""
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None
    hostname: str = ""
    subdomain: str = ""
    host_network: bool = False
    volumes: list[Volume] = []
    scheduling_gates: list[AnyObject] = []
    overhead: Quantities = {}
    resources: ResourceRequirements | None = None
    topology_spread_constraints: list[AnyObject] = []
    service_account_name: str = ""
    service_account: str = ""
    image_pull_secrets: list[NameRef] = []
    os: AnyObject | None = None
    security_context: PodSecurityContext | None = None


class ContainerStateWaiting(View):
    """The container does not run yet, or not at the moment."""

    reason: str = ""
    message: str = ""


class ContainerStateRunning(View):
    """The container runs."""

    started_at: str = ""


class ContainerStateTerminated(View):
    """The container has ended."""

    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    message: str = ""
    started_at: str = ""
    finished_at: str = ""
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
    restart_count: int = 0
    image: str = ""
    image_id: str = ""
    container_id: str = ""
    started: bool | None = None
    resources: ResourceRequirements | None = None
    volume_mounts: list[AnyObject] = []
    user: AnyObject | None = None


class PodStatus(View):
    """What the node and the scheduler report of a pod."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: list[Condition] = []
    pod_ip: str = ""
    host_ip: str = ""
    start_time: str = ""
    init_container_statuses: list[ContainerStatus] = []
    container_statuses: list[ContainerStatus] = []
    qos_class: str = ""
    resources: ResourceRequirements | None = None


class Pod(View):
    """Containers that run together on one node."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class PodTemplateSpec(View):
    """What the pods of a task look like."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
