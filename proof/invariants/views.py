"""As much of each kind of object as the invariants look at, decoded once a change.

Of kinds that no rule is about only the metadata is read. A pod becomes a Pod
with its amounts worked out; pods of one template share them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct, field

from cluster.store import Change
from kube import amounts
from kube.amounts import Amounts
from kube.kinds.core import Taint
from kube.kinds.fields import View
from kube.kinds.meta import OwnerReference
from kube.quantity import QuantityError
from proof.invariants.asks import Ask, PodSpec, ask_of
from scheduler.idle import facts
from scheduler.idle.facts import Node as NodeFacts

PODS, NODES, NAMESPACES, EVENTS, QUOTAS = "pods", "nodes", "namespaces", "events", "resourcequotas"
RANGES = "limitranges"
JOBS, QUEUES = "jobs.batch.volcano.sh", "queues.scheduling.volcano.sh"
FLOWS, CRONS = "jobflows.flow.volcano.sh", "cronjobs.batch.volcano.sh"
GROUPS, COMMANDS = "podgroups.scheduling.volcano.sh", "commands.bus.volcano.sh"
ENDED = ("Succeeded", "Failed")
DEFAULT_QUEUE, ROOT_QUEUE = "default", "root"
# Kubernetes' default scheduler stands for Volcano's on this cluster.
OUR_SCHEDULERS = ("volcano", "default-scheduler", "")


class Meta(View):
    """What all objects have."""

    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    deletion_timestamp: str = ""
    finalizers: list[str] = []
    owner_references: list[OwnerReference] = []

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that made the object, or None."""
        return next((owner for owner in self.owner_references if owner.controller), None)


class Thing(View):
    """An object of a kind that no rule is about."""

    metadata: Meta = Meta()


class PodNotes(View):
    """The annotations of a pod that rules are about."""

    group: str = field(default="", name="scheduling.k8s.io/group-name")
    queue: str = field(default="", name="scheduling.volcano.sh/queue-name")
    job_queue: str = field(default="", name="volcano.sh/queue-name")
    role: str = field(default="", name="volcano.sh/task-spec")
    index: str = field(default="", name="volcano.sh/task-index")
    version: str = field(default="", name="volcano.sh/job-version")
    out_of_sync: str = field(default="", name="volcano.sh/controller-out-of-sync")
    creator: str = field(default="", name="ui.volcano.sh/created-by")


class PodLabels(View):
    """The labels of a pod that rules are about."""

    role: str = field(default="", name="volcano.sh/task-spec")


class PodMeta(Meta):
    """The metadata of a pod."""

    annotations: PodNotes | None = None
    labels: PodLabels | None = None


class Running(View):
    """A container that runs."""

    started_at: str = ""


class Terminated(View):
    """A container that has ended."""

    exit_code: int = 0
    started_at: str = ""
    finished_at: str = ""
    container_id: str = ""


class Waiting(View):
    """A container that does not run."""

    reason: str = ""


class ContainerState(View):
    """One of the three is given."""

    running: Running | None = None
    terminated: Terminated | None = None
    waiting: Waiting | None = None


class ContainerStatus(View):
    """How one container of a pod is doing."""

    name: str = ""
    restart_count: int = 0
    container_id: str = ""
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class PodStatus(View):
    """What is reported of a pod."""

    phase: str = ""
    start_time: str = ""
    container_statuses: list[ContainerStatus] = []
    init_container_statuses: list[ContainerStatus] = []


class PodView(View):
    """A pod as it is decoded."""

    metadata: PodMeta = PodMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class Pod(Struct, gc=False):
    """A pod. `group` is the key of its pod group or empty, `wish` the queue that it names itself.

    `waiting` is the pod's JSON while it has no node, for what is asked of those that wait.
    """

    metadata: PodMeta
    status: PodStatus
    ask: Ask
    node: str
    phase: str
    group: str
    role: str
    wish: str
    ours: bool
    deleting: bool
    holds: bool  # it takes what it asks for from its node
    ready: bool  # it counts for the minimum of its gang
    restart_policy: str
    restarting: bool  # some containers have a restartPolicy of their own
    deadline: int | None
    priority_class: str
    waiting: bytes

    @property
    def owner(self) -> str:
        """The uid of the job that made it."""
        controller = self.metadata.controller
        return controller.uid if controller else ""


class Condition(View):
    """One condition of a node, a pod or a pod group."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    transition_id: str = ""


class NodeMeta(Meta):
    """The metadata of a node."""

    labels: dict[str, str] = {}


class NodeSpec(View):
    """What is wished of a node."""

    taints: list[Taint] = []
    unschedulable: bool = False


class NodeStatus(View):
    """What a node offers."""

    allocatable: dict[str, Any] = {}
    capacity: dict[str, Any] = {}
    conditions: list[Condition] = []


class Node(View):
    """A node."""

    metadata: NodeMeta = NodeMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def offers(self) -> Amounts:
        """What pods may use of it; without an allocatable that is its capacity (Kubernetes' default)."""
        return readable(self.status.allocatable or self.status.capacity)

    @property
    def is_ready(self) -> bool:
        """Whether it says so."""
        return any(each.type == "Ready" and each.status == "True" for each in self.status.conditions)

    @property
    def facts(self) -> NodeFacts:
        """What the checker of idle room is told of it."""
        spec = self.spec
        return facts.Node(self.offers, self.metadata.labels, spec.taints, self.is_ready, spec.unschedulable)


class GroupSpec(View):
    """What is wished of a pod group; the minimum also under the names of the KEP."""

    min_member: int | None = None
    min_members: int | None = None
    num_member: int | None = None
    min_task_member: dict[str, int] = {}
    min_resources: dict[str, Any] = {}
    network_topology: dict[str, Any] = {}
    sub_group_policy: list[Any] = []
    queue: str = ""


class GroupStatus(View):
    """What the scheduler says of a pod group."""

    phase: str = ""
    conditions: list[Condition] = []


class Group(View):
    """A pod group."""

    metadata: Meta = Meta()
    spec: GroupSpec = GroupSpec()
    status: GroupStatus = GroupStatus()

    @property
    def minimum(self) -> int:
        """How many pods must start together."""
        spec = self.spec
        named = (each for each in (spec.min_member, spec.min_members, spec.num_member) if each is not None)
        return max(next(named, 0), 0)

    @property
    def roles(self) -> dict[str, int]:
        """How many pods of each role must start; ignored when they are more than the minimum (§3.1)."""
        roles = self.spec.min_task_member
        return roles if sum(roles.values()) <= self.minimum else {}

    @property
    def queue(self) -> str:
        """The queue that it is in."""
        return self.spec.queue or DEFAULT_QUEUE

    @property
    def phase(self) -> str:
        """Its phase; an empty one stands for Pending (§3.2)."""
        return self.status.phase or "Pending"


class DependsOn(View):
    """The tasks that a task waits for."""

    name: list[str] = []
    iteration: str = ""


class Policy(View):
    """What is to be done when something happens; one with a timeout waits."""

    action: str = ""
    event: str = ""
    events: list[str] = []
    exit_code: int | None = None
    timeout: str = ""

    @property
    def event_names(self) -> set[str]:
        """The events that it names."""
        return {self.event, *self.events} - {""}


class Task(View):
    """One task of a job."""

    name: str = ""
    replicas: int = 0
    min_available: int | None = None
    depends_on: DependsOn | None = None
    policies: list[Policy] = []

    @property
    def needed(self) -> int:
        """How many pods of it have to be ready for those that wait for it."""
        return self.replicas if self.min_available is None else self.min_available


class JobSpec(View):
    """What is wished of a job."""

    queue: str = ""
    tasks: list[Task] = []
    plugins: dict[str, Any] = {}
    policies: list[Policy] = []
    min_available: int = 0
    max_retry: int = 3


class JobState(View):
    """The phase of a job."""

    phase: str = ""


class TaskCount(View):
    """How many pods of a task are in which phase."""

    phase: dict[str, int] = {}


class JobStatus(View):
    """What the controller says of a job."""

    state: JobState = JobState()
    min_available: int = 0
    task_status_count: dict[str, TaskCount] = {}
    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    unknown: int = 0
    terminating: int = 0
    version: int = 0
    retry_count: int = 0


class JobNotes(View):
    """The annotations of a job that rules are about."""

    creator: str = field(default="", name="ui.volcano.sh/created-by")
    scheduled: str = field(default="", name="volcano.sh/cronjob-scheduled-timestamp")


class JobMeta(Meta):
    """The metadata of a job."""

    annotations: JobNotes | None = None


class Job(View):
    """A Volcano job."""

    metadata: JobMeta = JobMeta()
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()

    @property
    def phase(self) -> str:
        """Its phase; empty while no controller has seen it."""
        return self.status.state.phase

    @property
    def replicas(self) -> int:
        """How many pods it wants."""
        return sum(task.replicas for task in self.spec.tasks)

    @property
    def scheduled(self) -> str:
        """The time of its cron job that it was made for; empty for others."""
        return self.metadata.annotations.scheduled if self.metadata.annotations else ""


class Waits(View):
    """What a job of a flow waits for."""

    targets: list[str] = []
    probe: dict[str, Any] | None = None


class Part(View):
    """One job of a flow."""

    name: str = ""
    depends_on: Waits = Waits()


class FlowSpec(View):
    """What is wished of a flow."""

    flows: list[Part] = []
    job_retain_policy: str = ""


class FlowStatus(View):
    """What the controller says of a flow."""

    state: JobState = JobState()


class Flow(View):
    """A job flow."""

    metadata: Meta = Meta()
    spec: FlowSpec = FlowSpec()
    status: FlowStatus = FlowStatus()


class CronSpec(View):
    """What is wished of a cron job; defaults are the server's."""

    concurrency_policy: str = ""
    suspend: bool = False
    successful_jobs_history_limit: int = 3
    failed_jobs_history_limit: int = 1


class Active(View):
    """A job that runs, as a cron job names it."""

    name: str = ""


class CronStatus(View):
    """What the controller says of a cron job."""

    active: list[Active] = []


class Cron(View):
    """A Volcano cron job."""

    metadata: Meta = Meta()
    spec: CronSpec = CronSpec()
    status: CronStatus = CronStatus()


class QueueSpec(View):
    """What is wished of a queue."""

    state: str = ""
    parent: str = ""
    capability: dict[str, Any] = {}
    guarantee: dict[str, Any] = {}
    dequeue_strategy: str = ""


class QueueStatus(View):
    """What the controller says of a queue."""

    state: str = ""
    pending: int = 0
    inqueue: int = 0
    running: int = 0
    unknown: int = 0
    completed: int = 0
    allocated: dict[str, Any] = {}


class Queue(View):
    """A queue."""

    metadata: Meta = Meta()
    spec: QueueSpec = QueueSpec()
    status: QueueStatus = QueueStatus()

    @property
    def capability(self) -> Amounts:
        """What its pods may use at most; a resource that is not named is not limited."""
        return {name: max(amount, 0) for name, amount in readable(self.spec.capability).items()}

    @property
    def guarantee(self) -> Amounts:
        """What is kept for its pods, and lent to nobody."""
        resources = self.spec.guarantee.get("resource") or {}
        return {name: max(amount, 0) for name, amount in readable(resources).items()}


class NamespaceNotes(View):
    """The annotations of a namespace that rules are about."""

    queue: str = field(default="", name="scheduling.volcano.sh/queue-name")


class NamespaceMeta(Meta):
    """The metadata of a namespace."""

    annotations: NamespaceNotes | None = None


class NamespaceSpec(View):
    """What holds a namespace that is being deleted."""

    finalizers: list[str] = []


class Namespace(View):
    """A namespace."""

    metadata: NamespaceMeta = NamespaceMeta()
    spec: NamespaceSpec = NamespaceSpec()

    @property
    def queue(self) -> str:
        """The queue of pods and pod groups in it that name none."""
        return self.metadata.annotations.queue if self.metadata.annotations else ""


class ScopeTerm(View):
    """One condition of a quota's scope selector."""

    scope_name: str = ""
    operator: str = ""
    values: list[str] = []


class ScopeSelector(View):
    """Conditions on the pods that a quota counts."""

    match_expressions: list[ScopeTerm] = []


class QuotaSpec(View):
    """What a quota bounds."""

    hard: dict[str, Any] = {}
    scopes: list[str] = []
    scope_selector: ScopeSelector = ScopeSelector()


class QuotaStatus(View):
    """What is used of a quota."""

    hard: dict[str, Any] = {}
    used: dict[str, Any] = {}


class Quota(View):
    """A ResourceQuota."""

    metadata: Meta = Meta()
    spec: QuotaSpec = QuotaSpec()
    status: QuotaStatus = QuotaStatus()


class RangeSpec(View):
    """What a LimitRange bounds."""

    limits: list[dict[str, Any]] = []


class Range(View):
    """A LimitRange."""

    metadata: Meta = Meta()
    spec: RangeSpec = RangeSpec()

    @property
    def refuses(self) -> bool:
        """Whether it bounds anything: defaults alone refuse nobody."""
        return any(item.get(name) for item in self.spec.limits for name in ("min", "max", "maxLimitRequestRatio"))


class Target(View):
    """What a Command is for."""

    kind: str = ""
    name: str = ""
    uid: str = ""


class Command(View):
    """An order to a job or a queue."""

    metadata: Meta = Meta()
    action: str = ""
    target: Target = Target()


class Reference(View):
    """What an event is about."""

    kind: str = ""
    name: str = ""
    uid: str = ""


class Source(View):
    """Who tells of an event."""

    component: str = ""


class Event(View):
    """Something that happened, told to people."""

    metadata: Meta = Meta()
    involved_object: Reference = Reference()
    reason: str = ""
    message: str = ""
    source: Source = Source()


Seen: TypeAlias = Thing | Pod | Node | Group | Job | Flow | Cron | Queue | Namespace | Quota | Range | Command | Event


def _pod(view: PodView, change: Change) -> Pod:
    metadata, spec, status = view.metadata, view.spec, view.status
    notes = metadata.annotations or NO_NOTES
    phase, node = status.phase or "Pending", spec.node_name
    deleting, ended = bool(metadata.deletion_timestamp), phase in ENDED
    return Pod(
        metadata,
        status,
        ask_of(spec),
        node,
        phase,
        f"{change.namespace}/{notes.group}" if notes.group else "",
        notes.role or (metadata.labels.role if metadata.labels else ""),
        notes.queue or notes.job_queue,
        spec.scheduler_name in OUR_SCHEDULERS,
        deleting,
        bool(node) and not ended,
        phase == "Succeeded" or (not deleting and not ended and (phase == "Running" or bool(node))),
        spec.restart_policy,
        any(each.restart_policy for each in (*spec.containers, *spec.init_containers)),
        spec.active_deadline_seconds,
        spec.priority_class_name,
        b"" if node or ended else change.body,
    )


NO_NOTES = PodNotes()
_VIEWS = {
    PODS: PodView, NODES: Node, GROUPS: Group, JOBS: Job, QUEUES: Queue, NAMESPACES: Namespace,
    QUOTAS: Quota, RANGES: Range, COMMANDS: Command, EVENTS: Event, FLOWS: Flow, CRONS: Cron,
}  # fmt: skip
_decoders: dict[str, Callable[[bytes], PodView | Seen]] = {
    kind: msgspec.json.Decoder(view).decode for kind, view in _VIEWS.items()
}
_thing = msgspec.json.Decoder(Thing).decode


def read(change: Change) -> Seen:
    """Return what a row says of its object; one that cannot be read as its kind is a Thing."""
    decode = _decoders.get(change.resource)
    if decode is None:
        return _thing(change.body)
    try:
        view = decode(change.body)
    except msgspec.ValidationError:
        view = _reread(change.body, decode)
    return _pod(view, change) if isinstance(view, PodView) else view


def _reread(body: bytes, decode: Callable[[bytes], PodView | Seen]) -> PodView | Seen:
    """Read an object again with null for absent, as Kubernetes does."""
    try:
        return decode(msgspec.json.encode(_without_nulls(msgspec.json.decode(body))))
    except msgspec.ValidationError:
        return _thing(body)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(some) for key, some in value.items() if some is not None}
    return [_without_nulls(some) for some in value] if isinstance(value, list) else value


def readable(resource_list: Mapping[str, Any]) -> Amounts:
    """Return the amounts of a resource list, by plain or by quota's names; what is no quantity is left out."""
    found: Amounts = {}
    for name, written in resource_list.items():
        try:
            plain = "cpu" if name.rpartition(".")[2] == "cpu" else name
            found[name] = amounts.of({plain: written})[plain]
        except QuantityError:
            continue
    return found


def key_of(change: Change) -> str:
    """Return how an object is named in messages: `pods/default/a-work-0`, `queues.scheduling.volcano.sh/default`."""
    return "/".join(filter(None, (change.resource, change.namespace, change.name)))
