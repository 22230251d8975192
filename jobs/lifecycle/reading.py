"""The fields of jobs, pods and pod groups that pages read: small views, so that thousands of objects decode fast."""

from __future__ import annotations

from collections.abc import Sequence

from jobs.lifecycle import causes
from jobs.lifecycle.causes import Causes, Failure
from jobs.logs.text import of_lines
from kube import meta, pod_health
from kube.kinds import batch
from kube.kinds import meta as meta_kinds
from kube.kinds.core import PodPhase
from kube.kinds.fields import View
from kube.kinds.pod import ENDED
from kube.kinds.scheduling import PodGroupStatus
from kube.usage import queue_named
from kube.volcano import waiting
from scheduler.engine.cause import Cause
from scheduler.reasons import message

CREATOR = "ui.volcano.sh/created-by"
SIMULATED = "simulated://"  # how the container ids of simulated nodes begin
TASK = "volcano.sh/task-spec"
INDEX = "volcano.sh/task-index"
TARGET = "DisruptionTarget"  # the condition of a pod that is evicted (Kubernetes' PodDisruptionConditions)
BY_NODE = "TerminationByKubelet"  # its reason if the pod's own node ends it, which is a failure of the pod


class Metadata(View):
    """The part of an object's metadata that pages show."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    deletion_grace_period_seconds: int = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class ManagedFields(View):
    """Which program wrote fields of an object, and when it did last."""

    manager: str = ""
    subresource: str = ""
    time: str = ""


class JobMetadata(Metadata):
    """The part of a job's metadata that pages show."""

    managed_fields: list[ManagedFields] = []


class Condition(View):
    """A condition of a pod or a pod group, or a phase that a job was in (then status is the phase)."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""


class TaskSpec(View):
    name: str = ""
    replicas: int = 0
    min_available: int | None = None


class JobSpec(View):
    """The part of a job's spec that pages show."""

    queue: str = ""
    min_available: int = 0
    priority_class_name: str = ""
    max_retry: int = 0
    ttl_seconds_after_finished: int | None = None
    tasks: list[TaskSpec] = []


class JobStatus(batch.JobStatus):
    """A job's status with the causes of failures."""

    causes: Causes = Causes()


class Job(View):
    """A job as pages show it."""

    metadata: JobMetadata = JobMetadata()
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()

    @property
    def phase(self) -> str:
        """The phase; a job that no controller has seen yet is Pending."""
        return self.status.state.phase or "Pending"

    @property
    def queue(self) -> str:
        return queue_named(self.spec.queue)

    @property
    def replicas(self) -> int:
        return sum(task.replicas for task in self.spec.tasks)

    @property
    def creator(self) -> str:
        """Who submitted the job through this server's API; "" if not known."""
        return self.metadata.annotations.get(CREATOR, "")

    @property
    def tool(self) -> str:
        """The program that wrote the job's spec first, such as `kubectl-create`; "" if not known. Where the creator is not, it is the best clue."""
        entries = [each for each in self.metadata.managed_fields if not each.subresource]
        return min(entries, key=lambda each: each.time).manager if entries else ""

    def since(self, *phases: str) -> int | None:
        """Return when the job last entered one of the phases (epoch ms); None if it never did."""
        times = [
            moment(condition.last_transition_time) for condition in self.status.conditions if condition.status in phases
        ]
        return max((time for time in times if time is not None), default=None)


class Running(View):
    started_at: str = ""


class Terminated(View):
    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    message: str = ""
    started_at: str = ""
    finished_at: str = ""


class Waiting(View):
    reason: str = ""
    message: str = ""


class ContainerState(View):
    """The state of a container: one of the three is set."""

    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class Device(View):
    resource_id: str = ""


class Devices(View):
    """The devices of one resource that a container has."""

    resources: list[Device] = []


class ContainerStatus(View):
    name: str = ""
    image: str = ""
    container_id: str = ""
    restart_count: int = 0
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()
    allocated_resources_status: list[Devices] = []


class Container(View):
    name: str = ""


class PodSpec(View):
    node_name: str = ""
    containers: list[Container] = []


class PodStatus(View):
    phase: str = ""
    reason: str = ""
    message: str = ""
    start_time: str = ""
    conditions: list[Condition] = []
    container_statuses: list[ContainerStatus] = []
    init_container_statuses: list[ContainerStatus] = []


class Pod(View):
    """A pod as pages show it."""

    metadata: Metadata = Metadata()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def task(self) -> str:
        return self.metadata.annotations.get(TASK) or self.metadata.labels.get(TASK, "")

    @property
    def index(self) -> int:
        """The pod's number within its task."""
        text = self.metadata.labels.get(INDEX) or self.metadata.annotations.get(INDEX, "")
        return int(text) if text.isdecimal() else 0

    @property
    def restarts(self) -> int:
        """How often containers of the pod were started again."""
        return sum(status.restart_count for status in self.status.container_statuses)

    @property
    def devices(self) -> list[str]:
        """The ids of the devices that the pod's containers have; their health is on the page of the node."""
        allocated = (each for one in self.status.container_statuses for each in one.allocated_resources_status)
        return list(dict.fromkeys(device.resource_id for each in allocated for device in each.resources))

    @property
    def obstacle(self) -> Failure | None:
        """What keeps the pod from running although it is bound to a node; None if nothing does."""
        is_ending = bool(self.metadata.deletion_timestamp)
        return causes.start_obstacle(self.metadata.name, self.task, self.status, is_ending=is_ending)

    @property
    def obstacle_word(self) -> str:
        """The obstacle in a word or two, beside the phase: `crash-looping`; "" if there is none."""
        return pod_health.TEXTS[self.obstacle.obstacle] if self.obstacle else ""

    @property
    def is_ended(self) -> bool:
        return self.status.phase in ENDED

    @property
    def is_stopped(self) -> bool:
        """Whether the pod was deleted before it had ended: only then does it get a grace period (reference: api §2.4)."""
        return bool(self.metadata.deletion_timestamp and self.metadata.deletion_grace_period_seconds)

    @property
    def evicted(self) -> int | None:
        """When the pod was evicted, for other pods or from its node (epoch ms); None if it was not."""
        for condition in self.status.conditions:
            if condition.type == TARGET and condition.status == "True" and condition.reason != BY_NODE:
                return moment(condition.last_transition_time)
        return None

    @property
    def is_simulated(self) -> bool:
        """Whether the pod is on a simulated node, which executes nothing."""
        return any(status.container_id.startswith(SIMULATED) for status in self.status.container_statuses)

    @property
    def trouble(self) -> str:
        """What a row says below the pod's name: `why`, unless that is why the whole job waits."""
        return self.why if self.spec.node_name else ""

    @property
    def scheduled(self) -> int | None:
        """When the pod was bound to its node (epoch ms)."""
        for condition in self.status.conditions:
            if condition.type == "PodScheduled" and condition.status == "True":
                return moment(condition.last_transition_time)
        return None

    @property
    def started(self) -> int | None:
        """When the first container started (epoch ms); if containers were restarted, when the node accepted the pod.

        A pod that its node has accepted may wait long for a container to start, for example for its image, or end before
        that: it has not started, and this is None.
        """
        accepted = moment(self.status.start_time)
        if self.restarts and accepted is not None:
            return accepted
        statuses = self.status.container_statuses
        runs = (status.state.running for status in statuses)
        starts = [*(each.started_at for each in self._ended()), *(each.started_at for each in runs if each)]
        times = [time for text in starts if (time := moment(text)) is not None]
        has_waited = bool(statuses) and all(each.state.waiting is not None for each in statuses)
        if not times and (has_waited or self.status.phase not in (PodPhase.RUNNING, PodPhase.UNKNOWN)):
            return None
        return min(times, default=accepted)

    @property
    def finished(self) -> int | None:
        """When the last container ended (epoch ms); None while the pod has not ended.

        If that is not known, as for a pod that failed before a container started or with its node, it is the last change
        of the pod's conditions.
        """
        if not self.is_ended:
            return None
        ends = [each.finished_at for each in self._ended()]
        if not any(ends) or any(each.state.running for each in self.status.container_statuses):
            ends += [each.last_transition_time for each in self.status.conditions]
        times = [end for text in ends if (end := moment(text)) is not None]
        return max(times, default=moment(self.status.start_time) or moment(self.metadata.creation_timestamp))

    @property
    def bad_exit_codes(self) -> tuple[int, ...]:
        """The nonzero exit codes of the containers that have ended: policies answer them, and jobs are searched by them."""
        init = self._ended(self.status.init_container_statuses)
        return causes.failure("", "", "", "", self._ended(), init).exit_codes

    @property
    def exit_code(self) -> int | None:
        """The first nonzero exit code, else 0; None while no container has ended except init containers that succeeded."""
        codes = self.bad_exit_codes
        return codes[0] if codes else 0 if self._ended() else None

    @property
    def why(self) -> str:
        """Why the pod is in its state, in the words of its node, scheduler or container."""
        if self.status.message:
            return self.status.message
        for status in (*self.status.container_statuses, *self.status.init_container_statuses):
            state = status.state.waiting or status.state.terminated
            if state and (state.message or state.reason not in ("", "Completed", "Error")):
                return of_lines(state.message) or state.reason
        for condition in self.status.conditions:
            if condition.type == "PodScheduled" and condition.status == "False":
                return condition.message
        return self.status.reason

    @property
    def failure(self) -> Failure:
        """How the pod failed, if it did."""
        return causes.of_status(self.metadata.name, self.task, self.status)

    def _ended(self, statuses: Sequence[ContainerStatus] | None = None) -> list[Terminated]:
        return [
            each
            for status in (self.status.container_statuses if statuses is None else statuses)
            if (each := status.state.terminated or status.last_state.terminated)
        ]


class PodGroup(View):
    """A pod group as pages show it."""

    metadata: Metadata = Metadata()
    status: PodGroupStatus = PodGroupStatus()

    @property
    def holding(self) -> meta_kinds.Condition:
        """The condition that says why the group is not placed."""
        return waiting.holding(self.status.conditions)

    @property
    def cause(self) -> Cause | None:
        """What the group, or pods beyond its minimum, wait for, as data; None if nothing waits or for another scheduler."""
        return message.cause_of(self.status.conditions)

    @property
    def why(self) -> str:
        """Why the group is not placed, in a sentence; "" if nothing holds it."""
        return words(self.status.conditions)[0]

    @property
    def volcano_text(self) -> str:
        """The text that Volcano's scheduler would write; "" if another scheduler wrote `why`, or if nothing holds the group."""
        return words(self.status.conditions)[1]


def words(conditions: Sequence[meta_kinds.Condition]) -> tuple[str, str]:
    """Return why a pod group is not placed, in a sentence, and the text that Volcano's scheduler would write, or "" for each."""
    found = waiting.holding(conditions)
    cause = message.cause_of(conditions) if found.type == message.UNSCHEDULABLE else None
    return message.parted(found.message, cause)


def moment(text: str) -> int | None:
    """Return a time of the API in epoch ms; None if it is empty or cannot be read."""
    try:
        return meta.parse_time(text) if text else None
    except ValueError:
        return None
