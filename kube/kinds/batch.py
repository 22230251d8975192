"""Job and CronJob of `batch.volcano.sh/v1alpha1`, Command of `bus.volcano.sh/v1alpha1`.

References: volcano-job §1, §3; volcano-queue-podgroup-cli §7.3.
"""

from __future__ import annotations

from enum import StrEnum

from kube.kinds.core import PodTemplateSpec
from kube.kinds.fields import AnyObject, View
from kube.kinds.meta import ObjectMeta


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
    """What a policy or a Command does to a job or a queue; the Sync and Enqueue ones are internal."""

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


class ConcurrencyPolicy(StrEnum):
    """What a cron job does at a time at which an earlier job has not ended."""

    ALLOW = "Allow"
    FORBID = "Forbid"
    REPLACE = "Replace"


class LifecyclePolicy(View):
    """What to do when something happens, or when a container ends with an exit code."""

    action: str = ""
    event: str = ""
    events: list[str] = []
    exit_code: int | None = None
    timeout: str | None = None


class VolumeSpec(View):
    """A volume that all pods of a job see."""

    mount_path: str = ""


class DependsOn(View):
    """Which tasks must be ready before a task starts: `any` of them, or all."""

    name: list[str] = []
    iteration: str = ""


class TaskSpec(View):
    """Pods of one kind within a job."""

    name: str = ""
    replicas: int = 0
    min_available: int | None = None
    template: PodTemplateSpec = PodTemplateSpec()
    policies: list[LifecyclePolicy] = []
    max_retry: int = 0
    depends_on: DependsOn | None = None


class JobSpec(View):
    """The desired state of a job."""

    scheduler_name: str = ""
    min_available: int = 0
    volumes: list[VolumeSpec] = []
    tasks: list[TaskSpec] = []
    policies: list[LifecyclePolicy] = []
    # `svc:` with nothing behind it is how people write a plugin without arguments.
    plugins: dict[str, list[str] | None] = {}
    queue: str = ""
    max_retry: int = 0
    ttl_seconds_after_finished: int | None = None
    priority_class_name: str = ""
    min_success: int | None = None


class JobState(View):
    """The phase of a job, why, what is still to happen or to be done, and since when."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    summary: str = ""  # the message without the causes, where there are any
    next: str = ""
    last_transition_time: str = ""

    @property
    def text(self) -> str:
        """The message, and what is still to happen or to be done."""
        return f"{self.message} {self.next}".rstrip()


class JobCondition(View):
    """A phase that a job was in, and when it came to it."""

    status: str = ""
    last_transition_time: str = ""


class TaskState(View):
    """How many pods of a task are in which phase."""

    phase: dict[str, int] = {}


class JobStatus(View):
    """How far a job has come."""

    state: JobState = JobState()
    min_available: int = 0
    task_status_count: dict[str, TaskState] = {}
    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int = 0
    unknown: int = 0
    version: int = 0
    retry_count: int = 0
    running_duration: str | None = None
    conditions: list[JobCondition] = []


class Job(View):
    """A Volcano Job: tasks that are scheduled together."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class JobTemplateSpec(View):
    """The jobs of a cron job; their spec as it is written."""

    metadata: ObjectMeta = ObjectMeta()
    spec: AnyObject = {}


class CronJobSpec(View):
    """When jobs are made, and which."""

    schedule: str = ""
    time_zone: str = ""
    starting_deadline_seconds: int | None = None
    concurrency_policy: str = ""
    suspend: bool = False
    job_template: JobTemplateSpec = JobTemplateSpec()
    successful_jobs_history_limit: int = 3
    failed_jobs_history_limit: int = 1


class CronJobStatus(View):
    """What was made of a cron job."""

    last_schedule_time: str = ""
    last_successful_time: str = ""


class CronJob(View):
    """Jobs that are made again and again, at times."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: CronJobSpec = CronJobSpec()
    status: CronJobStatus = CronJobStatus()
