"""Job of `batch.volcano.sh/v1alpha1` and Command of `bus.volcano.sh/v1alpha1` (reference: volcano-job §1, §3)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from kube.kinds.core import PersistentVolumeClaimSpec, PodTemplateSpec
from kube.kinds.fields import (
    REQUIRED,
    Count,
    DnsLabel,
    DnsSubdomain,
    Duration,
    Int32,
    Positive,
    Text253,
    Time,
    View,
    keywords,
    one_of,
)
from kube.kinds.scheduling import NetworkTopology
from kube.meta import ObjectMeta, OwnerReference


class JobPhase(StrEnum):
    """Where a job is in its life; the ten phases of the Job seed's appendix."""

    PENDING = "Pending"
    ABORTING = "Aborting"
    ABORTED = "Aborted"
    RUNNING = "Running"
    RESTARTING = "Restarting"
    COMPLETING = "Completing"
    COMPLETED = "Completed"
    TERMINATING = "Terminating"
    TERMINATED = "Terminated"
    FAILED = "Failed"


class JobEvent(StrEnum):
    """What happens to a job and may have a policy; OUT_OF_SYNC, COMMAND_ISSUED and POD_RUNNING are internal."""

    ANY = "*"
    POD_PENDING = "PodPending"
    POD_RUNNING = "PodRunning"
    POD_FAILED = "PodFailed"
    POD_EVICTED = "PodEvicted"
    UNKNOWN = "Unknown"
    TASK_COMPLETED = "TaskCompleted"
    OUT_OF_SYNC = "OutOfSync"
    COMMAND_ISSUED = "CommandIssued"
    JOB_UPDATED = "JobUpdated"
    TASK_FAILED = "TaskFailed"


class Action(StrEnum):
    """What a policy or a Command asks of a job or a queue; the Sync and Enqueue ones are internal."""

    ABORT_JOB = "AbortJob"
    RESTART_JOB = "RestartJob"
    RESTART_TASK = "RestartTask"
    RESTART_POD = "RestartPod"
    RESTART_PARTITION = "RestartPartition"
    TERMINATE_JOB = "TerminateJob"
    COMPLETE_JOB = "CompleteJob"
    RESUME_JOB = "ResumeJob"
    SYNC_JOB = "SyncJob"
    ENQUEUE_JOB = "EnqueueJob"
    SYNC_QUEUE = "SyncQueue"
    OPEN_QUEUE = "OpenQueue"
    CLOSE_QUEUE = "CloseQueue"


class LifecyclePolicy(View):
    """What to do when something happens, or when a container ends with an exit code."""

    action: str = ""
    event: Annotated[str, one_of(JobEvent)] = ""
    events: list[Annotated[str, one_of(JobEvent)]] = []
    exit_code: Int32 | None = None
    timeout: Duration | None = None


class VolumeSpec(View):
    """A volume that all pods of a job see."""

    mount_path: Annotated[str, REQUIRED, keywords(minLength=1, pattern="^[^:]*$")] = ""
    volume_claim_name: Text253 = ""
    volume_claim: PersistentVolumeClaimSpec | None = None


class DependsOn(View):
    """Which tasks must be ready before a task starts: `any` of them, or all."""

    name: list[str] = []
    iteration: str = ""


class PartitionPolicy(View):
    """How the pods of a task form smaller gangs."""

    total_partitions: Annotated[Positive, REQUIRED] = 0
    partition_size: Annotated[Positive, REQUIRED] = 0
    min_partitions: Count = 0
    network_topology: NetworkTopology | None = None


class TaskSpec(View):
    """Pods of one kind within a job."""

    name: DnsLabel = ""
    replicas: Count = 0
    min_available: Count | None = None
    template: PodTemplateSpec = PodTemplateSpec()
    policies: list[LifecyclePolicy] = []
    topology_policy: Annotated[str, one_of(("none", "best-effort", "restricted", "single-numa-node"))] = ""
    max_retry: Count = 0
    depends_on: DependsOn | None = None
    partition_policy: PartitionPolicy | None = None


class JobSpec(View):
    """What is wished of a job."""

    scheduler_name: Annotated[str, keywords(maxLength=63)] = ""
    min_available: Count = 0
    volumes: list[VolumeSpec] = []
    tasks: Annotated[list[TaskSpec], keywords(minItems=1)] = []
    policies: list[LifecyclePolicy] = []
    # `svc:` with nothing behind it is how people write a plugin without arguments.
    plugins: dict[str, list[str] | None] = {}
    running_estimate: Duration | None = None
    queue: DnsSubdomain = ""
    max_retry: Count = 0
    ttl_seconds_after_finished: Count | None = None
    priority_class_name: DnsSubdomain = ""
    min_success: Positive | None = None
    network_topology: NetworkTopology | None = None


class JobState(View):
    """The phase of a job, why, and since when."""

    phase: Annotated[str, one_of(JobPhase)] = ""
    reason: str = ""
    message: str = ""
    last_transition_time: Time = ""


class JobCondition(View):
    """A phase that a job was in, and when it came to it."""

    status: Annotated[str, one_of(JobPhase)] = ""
    last_transition_time: Time = ""


class TaskState(View):
    """How many pods of a task are in which phase."""

    phase: dict[str, Int32] = {}


class JobStatus(View):
    """How far a job has come."""

    state: JobState = JobState()
    min_available: Count = 0
    task_status_count: dict[str, TaskState] = {}
    pending: Count = 0
    running: Count = 0
    succeeded: Count = 0
    failed: Count = 0
    terminating: Count = 0
    unknown: Count = 0
    version: Int32 = 0
    retry_count: Int32 = 0
    running_duration: Duration | None = None
    controlled_resources: dict[str, str] = {}
    conditions: list[JobCondition] = []


class Job(View):
    """A Volcano Job: tasks that are scheduled together."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class Command(View):
    """An order to a job or a queue; its fields are at the top level."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    action: str = ""
    target: OwnerReference | None = None
    reason: str = ""
    message: str = ""
