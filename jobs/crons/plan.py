"""Which writes make a cron job's jobs at their times (reference: volcano-queue-podgroup-cli §7.3).

`reconcile` looks at a cron job and the jobs that were made for it, and returns writes, to be carried out all or none. A
job is created in the transaction that notes its scheduled time, and that time is part of its name: so each time has at
most one job, however often it is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

from cluster.writes import Create, Delete, Update, Write
from jobs.crons import schedule
from jobs.crons.schedule import MINUTE_MS, ScheduleError, Times
from jobs.made import jobs
from jobs.made.jobs import OwnedJob
from jobs.rules.admission import JobRulesView
from kube import events, meta
from kube.kinds.batch import ConcurrencyPolicy, CronJob, JobPhase
from kube.meta import Object
from kube.resources import CRON_JOBS, EVENTS, JOBS

COMPONENT = jobs.COMPONENT
MANY_MISSED = 100  # with more missed times than this, an event says so (Kubernetes' number)
BY_HAND = "cronjob.kubernetes.io/instantiate"  # what `kubectl create job --from` writes
SCHEDULED = "volcano.sh/cronjob-scheduled-timestamp"
_FAILED = (JobPhase.FAILED, JobPhase.TERMINATED)


class Run(NamedTuple):
    """A job to make: its scheduled time (epoch ms), its name, and whether more than MANY_MISSED times were missed before."""

    at: int
    name: str
    is_after_many: bool


class Notice(NamedTuple):
    """Why a job that should be made now is not: the reason and the message of an event."""

    reason: str
    message: str


class Outcome(NamedTuple):
    """The writes, when the next scheduled time is `due` (None: never), and why the job of this time is not made.

    `refused`: try again, since whatever refuses the job may change.
    """

    writes: Sequence[Write]
    due: int | None = None
    notice: Notice | None = None
    refused: bool = False


class ObservedCronJob(NamedTuple):
    """A cron job, the jobs that were made for it, and those of them that were deleted since the last plan."""

    cron: CronJob
    status: Object  # as it is stored
    jobs: Sequence[OwnedJob]
    deleted: Sequence[OwnedJob] = ()


def wanted(cron: CronJob, now: int) -> Run | None:
    """Return the job to make now: for the latest scheduled time that has come, if it has no job yet; None for nothing."""
    times = times_of(cron)
    if times is None or cron.spec.suspend or cron.metadata.deletion_timestamp:
        return None
    # Only times after the last one with a job count, and none before the deadline.
    since = meta.parse_time(cron.status.last_schedule_time or cron.metadata.creation_timestamp)
    if (deadline := cron.spec.starting_deadline_seconds) is not None:
        since = max(since, now - deadline * 1000 - 1)
    at = times.latest(now)
    if at is None or at <= since:
        return None
    missed = sum(each < at for each in islice(times.after(since), MANY_MISSED + 1))
    return Run(at, f"{cron.metadata.name}-{at // MINUTE_MS}", missed > MANY_MISSED)


def reconcile(
    observed: ObservedCronJob, run: Run | None, view: JobRulesView, now: int, *, is_occupied: bool = False
) -> Outcome:
    """Return the outcome for a cron job.

    `run` is what `wanted` returned; `is_occupied` says that another job has its name.
    """
    cron = observed.cron
    if cron.metadata.deletion_timestamp:
        return Outcome(())
    round_ = _Round(observed, now)
    round_.note_ends()
    round_.trim()
    notice = None if run is None else round_.start(run, view, is_occupied=is_occupied)
    round_.write_status()
    refused = notice is not None and notice.reason == "FailedCreate"
    return Outcome(round_.writes, upcoming(cron, now), notice, refused)


def job_for(cron: CronJob, at: int) -> dict[str, Any]:
    """Return the job for a scheduled time, without defaults."""
    template = cron.spec.job_template
    annotations = {**template.metadata.annotations, SCHEDULED: _written(cron, at)}
    name = f"{cron.metadata.name}-{at // MINUTE_MS}"
    labels = template.metadata.labels
    return jobs.make(CRON_JOBS, cron.metadata, name, template.spec, labels=labels, annotations=annotations)


class _Round:
    """One round of work on a cron job: what was observed, the new status, and the writes so far."""

    def __init__(self, observed: ObservedCronJob, now: int) -> None:
        self.cron, self.before, self.now = observed.cron, observed.status, now
        self.jobs, self.deleted = observed.jobs, observed.deleted
        self.active = [job for job in observed.jobs if not job.is_finished]
        self.status: dict[str, Any] = {key: value for key, value in observed.status.items() if key != "active"}
        self.writes: list[Write] = []

    def note_ends(self) -> None:
        """Send events for the active jobs that have ended, and note when one last completed."""
        were_active = {each.get("uid") for each in self.before.get("active") or ()}
        for job in (*self.jobs, *self.deleted):
            if job.is_finished and job.uid in were_active:
                self.tell("SawCompletedJob", f"Saw completed job: {job.name}, status: {job.phase}")
        completed = [job.ended for job in (*self.jobs, *self.deleted) if job.phase is JobPhase.COMPLETED]
        last = max([*completed, self.before.get("lastSuccessfulTime") or ""])
        if last:
            self.status["lastSuccessfulTime"] = last

    def trim(self) -> None:
        """Delete the oldest ended jobs beyond the history limits."""
        spec = self.cron.spec
        completed = [job for job in self.jobs if job.phase is JobPhase.COMPLETED]
        failed = [job for job in self.jobs if job.phase in _FAILED]
        for ended, most in ((completed, spec.successful_jobs_history_limit), (failed, spec.failed_jobs_history_limit)):
            oldest_first = sorted(ended, key=lambda job: (job.metadata.creation_timestamp, job.name))
            for job in oldest_first[: max(len(ended) - most, 0)]:
                self._delete(job)

    def start(self, run: Run, view: JobRulesView, *, is_occupied: bool) -> Notice | None:
        """Make the job of a run, or return why it is not made; None if it is made or exists."""
        names = ", ".join(job.name for job in self.active)
        policy = self.cron.spec.concurrency_policy
        if any(job.name == run.name for job in self.jobs):
            self._note_run(run)
            return None
        if is_occupied:
            self._note_run(run)  # give up this time: the name stays taken
            return Notice("ForeignJob", f"A job named {run.name} exists that is not of this cron job")
        if self.active and policy == ConcurrencyPolicy.FORBID:
            return Notice("ForbidConcurrent", f"Not starting job, because {names} has not ended")
        job = job_for(self.cron, run.at)
        causes = jobs.complete(job, view)
        if causes:
            detail = "; ".join(map(str, causes[:3]))
            return Notice("FailedCreate", f"Error creating job {run.name}: {detail}")
        if policy == ConcurrencyPolicy.REPLACE:
            if self.active:
                self.tell("ReplaceConcurrent", f"Replacing {names}, which has not ended")
            for active in self.active:
                self._delete(active)
            self.active = []
        self.writes.append(Create(JOBS, job))
        self._note_run(run)
        self.tell("SuccessfulCreate", f"Created job {run.name}")
        if run.is_after_many:
            text = (
                f"More than {MANY_MISSED} times were missed before {_written(self.cron, run.at)}; their jobs are not"
                " made. Set startingDeadlineSeconds, or check that the clock is right."
            )
            self.tell("TooManyMissedTimes", text, events.WARNING)
        return None

    def write_status(self) -> None:
        """Write the status if it has changed."""
        if self.active:
            about_jobs = {"apiVersion": JOBS.api_version, "kind": JOBS.kind}
            self.status["active"] = [
                {**about_jobs, "namespace": job.metadata.namespace, "name": job.name, "uid": job.uid}
                for job in self.active
            ]
        if self.status != self.before:
            self.writes.append(Update(CRON_JOBS, {**about(self.cron), "status": self.status}, "status"))

    def tell(self, reason: str, message: str, kind: str = events.NORMAL) -> None:
        """Send an event about the cron job."""
        self.writes.append(
            Create(EVENTS, events.event(about(self.cron), reason, message, self.now, component=COMPONENT, kind=kind))
        )

    def _delete(self, job: OwnedJob) -> None:
        if not job.is_deleted:
            self.writes.append(Delete(JOBS, job.metadata.namespace, job.name, uid=job.uid))
            self.tell("SuccessfulDelete", f"Deleted job {job.name}")

    def _note_run(self, run: Run) -> None:
        self.status["lastScheduleTime"] = meta.timestamp(run.at)


def about(cron: CronJob) -> dict[str, Any]:
    """Return the part of a cron job that events and status writes need."""
    return jobs.about(CRON_JOBS, cron.metadata)


def times_of(cron: CronJob) -> Times | None:
    """Return the times of a cron job; None if they can no longer be read, for example because the time zone is gone."""
    try:
        where = schedule.zone(cron.spec.time_zone)
        return schedule.parse(cron.spec.schedule, where, meta.parse_time(cron.metadata.creation_timestamp))
    except ScheduleError:
        return None


def upcoming(cron: CronJob, now: int) -> int | None:
    """Return the time of the next job (epoch ms); None if the cron job is suspended or has no further time."""
    times = None if cron.spec.suspend else times_of(cron)
    return None if times is None else next(times.after(now), None)


def by_hand(cron: CronJob) -> dict[str, Any]:
    """Return a job made by hand from a cron job, without defaults; the cron job owns it."""
    job = job_for(cron, 0)
    metadata = job["metadata"]
    del metadata["name"], metadata["annotations"][SCHEDULED]
    metadata["annotations"][BY_HAND] = "manual"
    metadata["generateName"] = f"{cron.metadata.name}-"
    return job


def _written(cron: CronJob, at: int) -> str:
    """Return a time in RFC 3339, in the cron job's time zone."""
    local = meta.moment_of(at).astimezone(schedule.zone(cron.spec.time_zone))
    return local.isoformat(timespec="seconds").replace("+00:00", "Z")
