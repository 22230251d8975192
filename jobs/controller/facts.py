"""What the job controller remembers of jobs, pods and pod groups: a few fields, and no decoded object.

A fact is read from the bytes of one stored version. A job fact keeps those bytes, since the pod templates are needed only
when pods are made; a pod fact is about a dozen words, so that a job of 10,000 pods stays small.
"""

from __future__ import annotations

from collections.abc import Collection
from operator import attrgetter
from sys import intern
from typing import Any

import msgspec
from msgspec import Struct

from jobs.lifecycle import causes, policies, reading
from jobs.lifecycle.causes import START_ERROR, Failure
from jobs.lifecycle.dependencies import Dependency
from jobs.lifecycle.phases import FINISHED, RUNS, phase_of
from jobs.lifecycle.situation import Task
from jobs.plugins.table import PLUGINS
from kube import meta
from kube.kinds.batch import Action, DependsOn, JobEvent, JobPhase, LifecyclePolicy
from kube.kinds.core import PodPhase
from kube.kinds.fields import View
from kube.kinds.meta import OwnerReference
from kube.kinds.pod import ENDED, OUT_OF_SYNC
from kube.kinds.scheduling import PodGroupStatus
from kube.meta import Object
from kube.resources import JOBS
from kube.usage import queue_named
from kube.volcano import waiting
from kube.volcano.evictions import FIRST_EVICTED

_COUNTED = attrgetter("phase", "uid", "owner", "deleting", "out_of_sync", "ready", "obstacle")
_MEANT = attrgetter("is_admitted", "waiting", "waiting_reason", "uid", "owner", "spec")
JOB_NAME = "volcano.sh/job-name"
JOB_VERSION = "volcano.sh/job-version"
TASK_SPEC = "volcano.sh/task-spec"
TASK_INDEX = "volcano.sh/task-index"


class JobFact(Struct, frozen=True, kw_only=True):
    """A stored version of a job."""

    namespace: str
    name: str
    uid: str
    generation: int
    created: int
    deleting: bool
    queue: str
    tasks: tuple[Task, ...]
    dependencies: dict[str, Dependency]
    plugins: tuple[str, ...]  # names of known plugins, in the order in which they are applied
    job_policies: tuple[policies.Policy, ...] = ()
    task_policies: dict[str, tuple[policies.Policy, ...]] = {}
    task_retries: dict[str, int] = {}  # task → restarts of its containers after which it counts as failed; -1: never
    min_available: int
    min_success: int | None
    max_retry: int
    ttl_s: int | None
    status: dict[str, Any]
    phase: JobPhase
    is_new: bool  # no controller has seen the job: its phase is empty
    body: bytes

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def is_finished(self) -> bool:
        return self.phase in FINISHED

    @property
    def replicas(self) -> int:
        return sum(task.replicas for task in self.tasks)

    @property
    def retry_count(self) -> int:
        return int(self.status.get("retryCount") or 0)

    @property
    def version(self) -> int:
        """How many times all pods of the job were ended."""
        return int(self.status.get("version") or 0)

    @property
    def runs_on(self) -> bool:
        """Whether the job is to go on by itself, with retries left: then it keeps no pod of an earlier run."""
        return self.phase in RUNS and self.retry_count < self.max_retry

    @property
    def heeds_policies(self) -> bool:
        """Whether policies may still act on the job: not once its pods are being ended for good."""
        return self.phase in RUNS and not self.deleting

    @property
    def answered(self) -> frozenset[JobEvent]:
        """The events that a policy of the job or of one of its tasks answers."""
        lists = (self.job_policies, *self.task_policies.values())
        return frozenset().union(*(policy.answers for one in lists for policy in one))

    def policy_for(self, event: JobEvent, task: str = "", exit_codes: Collection[int] = ()) -> policies.Policy | None:
        """Return the policy that answers an event of a task's pod, or of the job if no task is named; None if none does."""
        return policies.choose(self.task_policies.get(task, ()), self.job_policies, event, exit_codes)

    @property
    def group_name(self) -> str:
        """The name of the job's pod group (reference: volcano-job §4.4)."""
        return f"{self.name}-{self.uid}"

    def partition_of(self, pod: PodFact) -> int | None:
        """Return the index of the partition of its task that a pod belongs to; None if the task has no partitions."""
        size = next((task.partition_size for task in self.tasks if task.name == pod.task), 0)
        return pod.index // size if size > 0 else None

    def whole(self) -> Object:
        """Return the job as it is stored."""
        decoded: Object = msgspec.json.decode(self.body)
        return decoded


class PodFact(Struct, gc=False, frozen=True, kw_only=True):
    """A stored version of a pod."""

    name: str
    uid: str
    owner: str  # the uid of the job that made it
    task: str
    index: int
    phase: str
    deleting: bool
    out_of_sync: bool
    version: int  # the job's version when the pod was made; -1 if the pod does not say
    created: str = ""  # the creation timestamp, as written
    ready: bool
    restarts: int
    exit_codes: tuple[int, ...] = ()  # of the containers that failed: policies answer them, and messages name them
    reason: str
    message: str = ""
    obstacle: Failure | None = None  # what keeps it from running although it is bound to a node

    @property
    def has_ended(self) -> bool:
        return self.phase in ENDED

    @property
    def is_ready_for_others(self) -> bool:
        """Whether it counts as ready for the tasks that depend on its own."""
        return self.phase == PodPhase.SUCCEEDED or (self.phase == PodPhase.RUNNING and self.ready)

    @property
    def is_in_run(self) -> bool:
        """Whether the pod is neither being deleted nor marked by the controller for deletion."""
        return not (self.deleting or self.out_of_sync)

    def counts_like(self, other: PodFact) -> bool:
        """Tell whether two versions of a pod make no difference to its job."""
        return _COUNTED(self) == _COUNTED(other)

    @property
    def how_failed(self) -> Failure:
        """How the pod failed, for a message about several pods."""
        return Failure(self.name, self.task, self.exit_codes, self.reason, self.message)

    def failed_with(self, exit_code: int | None = None) -> str:
        """Say how the pod failed: `tf-job-ps-0 exited with code 3`, `… could not start: no such file or directory`.

        `exit_code` names the only one that matters; None names all. Reason and message belong to the first exit code.
        """
        if exit_code is not None and exit_code not in self.exit_codes[:1]:
            return f"{self.name} exited with code {exit_code}"
        reason = f" ({self.reason})" if self.reason not in ("", "Error") else ""
        detail = f": {self.message}" if self.message else ""
        if self.reason == START_ERROR:
            return f"{self.name} could not start{detail}"
        codes = self.exit_codes if exit_code is None else (exit_code,)
        if codes:
            many = "code" if len(codes) == 1 else "codes"
            return f"{self.name} exited with {many} {causes.listed(codes)}{reason}{detail}"
        return f"{self.name} failed{reason}{detail}"


class GroupFact(Struct, frozen=True, kw_only=True):
    """A stored version of a pod group."""

    name: str
    uid: str
    job: str  # namespace/name of the job that controls it, "" for none
    owner: str
    phase: str
    deleting: bool
    waiting: str
    waiting_reason: str
    first_evicted: str  # when its pods were first evicted for others, as written (`kube.volcano.evictions`)
    spec: dict[str, Any]

    @property
    def is_admitted(self) -> bool:
        """Whether the scheduler has admitted the group, so that its pods may be created (reference: volcano-job §2.4, step 5)."""
        return self.phase not in ("", "Pending")

    def means_like(self, other: GroupFact) -> bool:
        """Tell whether two versions of a pod group make no difference to its job."""
        return _MEANT(self) == _MEANT(other)


def job_key_of(body: bytes) -> str:
    """Return `namespace/name` of the job that controls a pod or a pod group, "" if none does."""
    return _job_key(_decode_labelled(body).metadata)


def read_job(body: bytes) -> JobFact:
    """Read what matters of a job; raise msgspec.ValidationError if it cannot be read as one."""
    job = _decode_job(body)
    spec, metadata = job.spec, job.metadata
    dependencies = {}
    for task in spec.tasks:
        if (needed := task.depends_on) and needed.name:
            # With one name, any is the same as all (reference: volcano-job §4.2).
            is_any = needed.iteration == "any" and len(needed.name) > 1
            dependencies[task.name] = Dependency(tuple(needed.name), any=is_any)
    phase = (job.status.get("state") or {}).get("phase") or ""
    return JobFact(
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        generation=metadata.generation,
        created=meta.parse_time(metadata.creation_timestamp) if metadata.creation_timestamp else 0,
        deleting=bool(metadata.deletion_timestamp),
        queue=queue_named(spec.queue),
        tasks=tuple(
            Task(task.name, task.replicas, task.min_available, task.partition_policy.partition_size)
            for task in spec.tasks
        ),
        dependencies=dependencies,
        plugins=tuple(name for name in PLUGINS if name in spec.plugins),
        job_policies=_policies(spec.policies),
        task_policies={task.name: _policies(task.policies) for task in spec.tasks if task.policies},
        task_retries={task.name: task.max_retry for task in spec.tasks},
        min_available=spec.min_available,
        min_success=spec.min_success,
        max_retry=spec.max_retry,
        ttl_s=spec.ttl_seconds_after_finished,
        status=job.status,
        phase=phase_of(phase),
        is_new=not phase,
        body=body,
    )


def read_pod(body: bytes) -> tuple[str, PodFact]:
    """Return `namespace/name` of the job that controls a pod ("" for none), and what matters of the pod."""
    pod = _decode_pod(body)
    metadata, status = pod.metadata, pod.status
    notes = metadata.annotations
    statuses = status.container_statuses
    first = statuses[0].state.terminated if statuses else None
    task = intern(notes.get(TASK_SPEC, ""))
    failed = causes.of_status(metadata.name, task, status)
    fact = PodFact(
        name=metadata.name,
        uid=metadata.uid,
        owner=intern(_controller(metadata.owner_references)),
        task=task,
        index=_index(notes.get(TASK_INDEX, "")),
        phase=intern(status.phase or PodPhase.PENDING.value),
        deleting=bool(metadata.deletion_timestamp),
        out_of_sync=notes.get(OUT_OF_SYNC) == "true",
        version=_index(notes.get(JOB_VERSION, "")),
        created=intern(metadata.creation_timestamp),
        ready=bool(statuses) and all(each.ready for each in statuses),
        restarts=sum(each.restart_count for each in (*statuses, *status.init_container_statuses)),
        exit_codes=failed.exit_codes,
        reason=intern(failed.reason or (first.reason if first else "")),
        message=failed.message or causes.one_line(first.message if first else ""),
        obstacle=causes.start_obstacle(metadata.name, task, status, is_ending=bool(metadata.deletion_timestamp)),
    )
    return _job_key(metadata), fact


def read_group(body: bytes) -> GroupFact:
    """Read what matters of a pod group."""
    group = _decode_group(body)
    holding = waiting.holding(group.status.conditions)
    return GroupFact(
        name=group.metadata.name,
        uid=group.metadata.uid,
        job=_job_key(group.metadata),
        owner=_controller(group.metadata.owner_references),
        phase=group.status.phase,
        deleting=bool(group.metadata.deletion_timestamp),
        waiting=reading.words(group.status.conditions)[0],
        waiting_reason=holding.reason,
        first_evicted=group.metadata.annotations.get(FIRST_EVICTED, ""),
        spec=group.spec,
    )


def _job_key(metadata: _Metadata) -> str:
    for owner in metadata.owner_references:
        if owner.controller and owner.kind == JOBS.kind and owner.api_version == JOBS.api_version:
            return f"{metadata.namespace}/{owner.name}"
    return ""


class _Metadata(View):
    namespace: str = ""
    name: str = ""
    uid: str = ""
    generation: int = 0
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    annotations: dict[str, str] = {}
    owner_references: list[OwnerReference] = []


class _Labelled(View):
    metadata: _Metadata = _Metadata()


class _PartitionPolicy(View):
    partition_size: int = 0


class _Task(View):
    name: str = ""
    replicas: int = 0
    min_available: int | None = None
    max_retry: int = 3
    depends_on: DependsOn | None = None
    policies: list[LifecyclePolicy] = []
    partition_policy: _PartitionPolicy = _PartitionPolicy()


class _JobSpec(View):
    queue: str = ""
    tasks: list[_Task] = []
    plugins: dict[str, Any] = {}
    policies: list[LifecyclePolicy] = []
    min_available: int = 0
    min_success: int | None = None
    max_retry: int = 3
    ttl_seconds_after_finished: int | None = None


class _Job(View):
    metadata: _Metadata = _Metadata()
    spec: _JobSpec = _JobSpec()
    status: dict[str, Any] = {}


class _Terminated(View):
    exit_code: int = 0
    reason: str = ""
    message: str = ""


class _Running(View):
    pass


class _ContainerState(View):
    running: _Running | None = None
    waiting: reading.Waiting | None = None
    terminated: _Terminated | None = None


class _ContainerStatus(View):
    image: str = ""
    ready: bool = False
    restart_count: int = 0
    state: _ContainerState = _ContainerState()
    last_state: _ContainerState = _ContainerState()


class _PodStatus(View):
    phase: str = ""
    reason: str = ""
    message: str = ""
    container_statuses: list[_ContainerStatus] = []
    init_container_statuses: list[_ContainerStatus] = []


class _Pod(View):
    metadata: _Metadata = _Metadata()
    status: _PodStatus = _PodStatus()


class _Group(View):
    metadata: _Metadata = _Metadata()
    spec: dict[str, Any] = {}
    status: PodGroupStatus = PodGroupStatus()


_decode_labelled = msgspec.json.Decoder(_Labelled).decode
_decode_job = msgspec.json.Decoder(_Job).decode
_decode_pod = msgspec.json.Decoder(_Pod).decode
_decode_group = msgspec.json.Decoder(_Group).decode


def _policies(written: list[LifecyclePolicy]) -> tuple[policies.Policy, ...]:
    """Read policies; leave out those that cannot be read, which admission would refuse."""
    valid = []
    for each in written:
        try:
            events = frozenset(JobEvent(event) for event in (each.event, *each.events) if event)
            delay = max(meta.parse_duration(each.timeout), 0) if each.timeout else 0
            action = Action(each.action)
        except ValueError:
            continue
        valid.append(policies.Policy(action, events, each.exit_code, delay))
    return tuple(valid)


def _controller(owners: list[OwnerReference]) -> str:
    return next((owner.uid for owner in owners if owner.controller), "")


def _index(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1
