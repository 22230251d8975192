"""How far a gang has come: the numbers shown beside a job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from jobs.lifecycle.phases import DELETED, FINISHED
from jobs.lifecycle.reading import Job, moment
from kube.kinds.batch import JobPhase, TaskState
from kube.kinds.core import PodPhase
from kube.kinds.meta import Condition
from kube.pod_health import Health

STOPPED = FINISHED | {JobPhase.ABORTED}  # no pod runs; an aborted job may be resumed, a finished one not
ENDING = STOPPED | {JobPhase.COMPLETING, JobPhase.TERMINATING, JobPhase.ABORTING}  # no pod starts any more
# The phases in which a job that ran no longer runs.
_LEFT = STOPPED | {JobPhase.PENDING, JobPhase.RESTARTING}
_BEFORE_A_RUN = (JobPhase.RESTARTING, JobPhase.ABORTED)  # Pending after one of these begins another run
FIRST_WAIT_MS = 2000  # a new job becomes Pending within this time of its creation, when the controller has seen it


@dataclass(frozen=True, slots=True)
class Progress:
    """How many pods of a job, or of one task, are in which state; `minimum` is how many must start together."""

    total: int
    minimum: int
    running: int
    succeeded: int
    failed: int
    is_finished: bool = False  # or about to be: nothing more starts

    @property
    def waiting(self) -> int:
        return max(self.total - self.running - self.succeeded - self.failed, 0)

    @property
    def is_mixed(self) -> bool:
        """Whether pods are in different states, so that a bar of them is informative."""
        waiting = 0 if self.is_finished else self.waiting
        return sum(number > 0 for number in (self.running, self.succeeded, self.failed, waiting)) > 1

    @property
    def short(self) -> str:
        """`3/4`: running or succeeded of the minimum, or succeeded of all once the job is over."""
        if self.is_finished:
            return f"{self.succeeded}/{self.total}"
        return f"{self.running + self.succeeded}/{self.minimum}"

    @property
    def sentence(self) -> str:
        """The gang in words."""
        if self.is_finished:
            return (
                f"{self.succeeded} of {self.total} {'pod' if self.total == 1 else 'pods'} succeeded{self._and_failed}"
            )
        if not self.minimum:
            return f"{self.running} running, no minimum is set"
        started = self.running + self.succeeded
        if started > self.minimum and not self.succeeded:
            return (
                f"{started} are running, {self.minimum} {'is' if self.minimum == 1 else 'are'} needed{self._and_failed}"
            )
        started = min(started, self.minimum)
        verb = "is" if started == 1 else "are"
        doing = "running" if not self.succeeded else "running or have succeeded"
        if self.succeeded and started == 1:
            doing = "running or has succeeded"
        return f"{started} of {self.minimum} needed {verb} {doing}{self._and_failed}"

    @property
    def _and_failed(self) -> str:
        return f", {self.failed} failed" if self.failed else ""


def of_job(job: Job, deleted: int = 0, health: Health | None = None) -> Progress:
    """Return the progress of a whole job; `health`, if given, says how many pods really run of those in phase Running.

    No pod of a deleted job (at `deleted`, in ms; 0: not deleted) runs.
    """
    status = job.status
    return Progress(
        total=job.replicas,
        minimum=job.spec.min_available,
        running=0 if deleted else status.running if health is None else health.running,
        succeeded=status.succeeded,
        failed=status.failed,
        is_finished=bool(deleted) or job.phase in ENDING,
    )


def recounted(job: Job, tasks: Mapping[str, Mapping[str, int]]) -> Job:
    """Return a job with the counters of its pods: by task, how many are in which phase, "" for one that is not reported yet.

    A job whose status counts any pod keeps its own counters, which leave out pods that are being deleted; so does one without pods, as
    they may be gone.
    """
    status = job.status
    counted = status.pending + status.running + status.succeeded + status.failed + status.unknown + status.terminating
    if counted or not tasks:
        return job
    counts = {task: {phase or PodPhase.PENDING: n for phase, n in phases.items()} for task, phases in tasks.items()}
    total = Counter[str]()
    for phases in counts.values():
        total.update(phases)
    status = msgspec.structs.replace(
        status,
        pending=total[PodPhase.PENDING],
        running=total[PodPhase.RUNNING],
        succeeded=total[PodPhase.SUCCEEDED],
        failed=total[PodPhase.FAILED],
        task_status_count={task: TaskState(phase=phases) for task, phases in counts.items()},
    )
    return msgspec.structs.replace(job, status=status)


def explained(job: Job, condition: Condition) -> Job:
    """Return a job with the reason and the message of a condition of its pod group in its state."""
    state = msgspec.structs.replace(job.status.state, reason=condition.reason, message=condition.message)
    return msgspec.structs.replace(job, status=msgspec.structs.replace(job.status, state=state))


def of_tasks(job: Job, idle: Sequence[str] = ()) -> list[tuple[str, Progress]]:
    """Return each task's name and progress; `idle` has the task of each pod in phase Running that does not run."""
    progresses = []
    for index, task in enumerate(job.spec.tasks):
        name = task.name or f"default{index}"
        counts = job.status.task_status_count.get(name)
        phases = counts.phase if counts else {}
        progress = Progress(
            total=task.replicas,
            minimum=task.replicas if task.min_available is None else task.min_available,
            running=max(phases.get("Running", 0) - idle.count(name), 0),
            succeeded=phases.get("Succeeded", 0),
            failed=phases.get("Failed", 0),
            is_finished=job.phase in ENDING,
        )
        progresses.append((name, progress))
    return progresses


def of_past_tasks(job: Job, phases: Mapping[str, Sequence[str]]) -> list[tuple[str, Progress]]:
    """Return each task's name and progress in a run that is over; `phases` are the last phases of its pods, by task."""
    progresses = []
    for name, now in of_tasks(job):
        own = phases.get(name, ())
        ended = Progress(len(own), now.minimum, 0, own.count("Succeeded"), own.count("Failed"), True)
        progresses.append((name, ended))
    return progresses


def of_past(tasks: Sequence[tuple[str, Progress]], minimum: int) -> Progress:
    """Return the progress of a whole job in a run that is over, from that of its tasks."""
    every = [each for _, each in tasks]
    return Progress(
        total=sum(each.total for each in every),
        minimum=minimum,
        running=0,
        succeeded=sum(each.succeeded for each in every),
        failed=sum(each.failed for each in every),
        is_finished=True,
    )


def display_phase(job: Job, deleted: int = 0) -> str:
    """Return the phase to show: Deleted for a job that was deleted (at `deleted`, in ms) before it stopped."""
    return job.phase if not deleted or job.phase in STOPPED else DELETED


class Ran(NamedTuple):
    """How long a run has run: the time that is over (ms), and since when it runs now (epoch ms); None for neither."""

    before: int | None = None
    since: int | None = None


def ran(phases: Sequence[tuple[str, int]], begun: int = 0, ended: int | None = None) -> Ran:
    """Return how long a run has run that began and ended at these times (epoch ms), by the phases that its job entered.

    Time before an eviction counts; a job whose pods are being ended runs until they have.
    """
    total, since = None, None
    for phase, at in phases:
        if at < begun or (ended is not None and at > ended):
            continue
        if phase == JobPhase.RUNNING:
            since = at if since is None else since
        elif phase in _LEFT and since is not None:
            total, since = (total or 0) + at - since, None
    if since is not None and ended is not None:
        total, since = (total or 0) + max(ended - since, 0), None
    return Ran(total, since)


def phases_of(job: Job) -> list[tuple[str, int]]:
    """Return the phases that a job has been in, with the last time it entered each (epoch ms), from its status."""
    transitions = ((each.status, moment(each.last_transition_time)) for each in job.status.conditions)
    return [(phase, at) for phase, at in transitions if at is not None]


def came_back(job: Job, created: int) -> bool:
    """Tell whether a job that ran may have become Pending again: its status only keeps the last time of each phase."""
    waited = job.since(JobPhase.PENDING)
    return job.since(JobPhase.RUNNING) is not None and waited is not None and waited > created + FIRST_WAIT_MS


def last_ran(phases: Sequence[tuple[str, int]], deleted: int = 0) -> Ran:
    """Return how long the newest run of a job has run; a run that still waits has not run."""
    waited = max((at for phase, at in phases if phase == JobPhase.PENDING), default=0)
    begun = max((at for phase, at in phases if phase in _BEFORE_A_RUN and at <= waited), default=0)
    return ran(phases, begun, deleted or None)
