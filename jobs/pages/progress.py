"""How far a gang has come: the numbers that stand beside a job wherever it appears."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jobs.lifecycle.phases import FINISHED
from kube.kinds.batch import JobPhase

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jobs.pages.reading import Job
    from kube.pod_health import Health

STOPPED = FINISHED | {JobPhase.ABORTED}  # no pod runs; an aborted job may be resumed, a finished one not
ENDING = STOPPED | {JobPhase.COMPLETING, JobPhase.TERMINATING, JobPhase.ABORTING}  # no pod is waited for


@dataclass(frozen=True, slots=True)
class Progress:
    """Pods of a job, or of one task, by what they are doing; minimum is how many must start together."""

    total: int
    minimum: int
    running: int
    succeeded: int
    failed: int
    is_finished: bool = False  # or about to be: nothing more starts

    @property
    def waiting(self) -> int:
        """Pods that have not started."""
        return max(self.total - self.running - self.succeeded - self.failed, 0)

    @property
    def is_mixed(self) -> bool:
        """Whether pods differ in what they are doing, so that a bar of them says something."""
        waiting = 0 if self.is_finished else self.waiting
        return sum(number > 0 for number in (self.running, self.succeeded, self.failed, waiting)) > 1

    @property
    def short(self) -> str:
        """`3/4`: running of needed, or succeeded of all once the job is over."""
        if self.is_finished:
            return f"{self.succeeded}/{self.total}"
        return f"{self.running + self.succeeded}/{self.minimum}"

    @property
    def said(self) -> str:
        """The gang in words."""
        if self.is_finished:
            return f"{self.succeeded} of {self.total} {_pods(self.total)} succeeded{self._and_failed}"
        if not self.minimum:
            return f"{self.running} running, no minimum is set"
        started = self.running + self.succeeded
        if started > self.minimum and not self.succeeded:
            return f"{started} are running, {self.minimum} {'is' if self.minimum == 1 else 'are'} needed{self._and_failed}"
        started = min(started, self.minimum)
        verb = "is" if started == 1 else "are"
        doing = "running" if not self.succeeded else "running or have succeeded"
        if self.succeeded and started == 1:
            doing = "running or has succeeded"
        return f"{started} of {self.minimum} needed {verb} {doing}{self._and_failed}"

    @property
    def _and_failed(self) -> str:
        return f", {self.failed} failed" if self.failed else ""


def of_job(job: Job, health: Health | None = None) -> Progress:
    """Return the progress of a whole job; those of its pods run of which its health says so, not all in that phase."""
    status = job.status
    return Progress(
        total=job.replicas,
        minimum=job.spec.min_available,
        running=status.running if health is None else health.running,
        succeeded=status.succeeded,
        failed=status.failed,
        is_finished=job.phase in ENDING,
    )


def of_tasks(job: Job, idle: Sequence[str] = ()) -> list[tuple[str, Progress]]:
    """Return each task's name and progress; idle are the tasks of pods in phase Running that do not run."""
    found = []
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
        found.append((name, progress))
    return found


def of_past_tasks(job: Job, phases: Mapping[str, Sequence[str]]) -> list[tuple[str, Progress]]:
    """Return each task's name and progress in a run that is over; `phases` are those of its pods, by task."""
    found = []
    for name, now in of_tasks(job):
        own = phases.get(name, ())
        ended = Progress(len(own), now.minimum, 0, own.count("Succeeded"), own.count("Failed"), True)
        found.append((name, ended))
    return found


def duration(job: Job) -> tuple[int | None, int | None]:
    """Return when the job began to run and when that ended, in ms; None for what has not happened.

    One whose pods were evicted runs no more while it waits for room.
    """
    if job.phase == JobPhase.PENDING:
        return None, None
    began = job.since("Running")
    ended = job.since(*STOPPED) if job.phase in STOPPED else None
    return began, ended


def _pods(number: int) -> str:
    return "pod" if number == 1 else "pods"
