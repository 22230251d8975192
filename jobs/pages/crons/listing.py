"""The list of cron jobs, the details of one, and the topics of their pages."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import tzinfo
from functools import cached_property
from typing import Any

from django.template.loader import render_to_string

from cluster import access, clock
from cluster.access import Actor
from cluster.store import Stored, store
from dashboard import live
from dashboard.live import Parts, TopicRequest, Watch
from dashboard.live.topics import address
from dashboard.parts import phases
from dashboard.parts.buttons import no_buttons
from dashboard.parts.filters import Filter
from dashboard.parts.table import Column, Spec, Table, TableView
from jobs.crons import calendar, plan, schedule
from jobs.crons.schedule import ScheduleError
from jobs.made.jobs import OwnedJob
from jobs.pages import objects
from kube import lenient, meta
from kube.errors import NotFound
from kube.kinds.batch import CronJob, Job
from kube.resources import CREATOR_ANNOTATION, CRON_JOBS, JOBS

SPEC = Spec(
    name="cronjobs:list",
    columns=(
        Column("Cron job", sort="name", kind="name"),
        Column("Namespace"),
        Column("State", sort="phase"),
        Column("Schedule"),
        Column("Last run", kind="time"),
        Column("Next run", kind="time"),
        Column("Running", kind="number"),
        Column("Owner", sort="creator", priority="low"),
    ),
    filters=(Filter("namespace", "Namespace"), Filter("phase", "State", choices=phases.CRON_STATES, hidden=True)),
    search="Part of a cron job's name",
    noun="cron job",
    plural="cron jobs",
)
JOBS_SPEC = Spec(
    name="cronjobs:jobs",
    columns=(
        Column("Job", sort="name", kind="name"),
        Column("Phase", sort="phase"),
        Column("Why", kind="message"),
        Column("Age", sort="created", kind="time"),
    ),
    filters=(Filter("phase", "Phase", choices=phases.JOB_PHASES, hidden=True),),
    order="-created",
    noun="job",
    plural="jobs",
)
EMPTY = {
    "symbol": "calendar-clock",
    "title": "There are no cron jobs yet",
    "text": "A CronJob of batch.volcano.sh/v1alpha1 makes jobs at its times. Write one and give it to kubectl apply.",
}
DAY_MS = 86_400_000
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def table(actor: Actor, view: TableView, now: int) -> Table:
    """Return a page of the cron jobs that the actor may see; it is read again at the next run of one."""
    upcoming: list[int] = []

    def row(stored: Stored) -> str:
        cron = stored.read(CronJob)
        following = plan.upcoming(cron, now)
        upcoming.extend([] if following is None else [following])
        context = {
            "stored": stored,
            "cron": cron,
            "state": state(cron),
            "next": following,
            "running": len(lenient.sequence(stored.object, "status", "active")),
            "owner": cron.metadata.annotations.get(CREATOR_ANNOTATION, ""),
        }
        return render_to_string("crons/_row.html", context)

    found = objects.table(actor, view, CRON_JOBS, row, name="cron", empty=EMPTY, phases=phases.CRON_STATES)
    found.again = min(upcoming, default=None)
    return found


def state(cron: CronJob) -> str:
    """Return the word for whether a cron job makes jobs."""
    return "Suspended" if cron.spec.suspend else "Scheduled"


@dataclass(frozen=True)
class Detail:
    stored: Stored
    now: int
    sees_jobs: bool = True

    @classmethod
    def of(cls, actor: Actor, namespace: str, name: str, now: int) -> Detail:
        """Read a cron job; raise Forbidden or NotFound if there is none to show."""
        cron = objects.read(actor, CRON_JOBS, namespace, name)
        return cls(cron, now, access.allowed(actor, "list", JOBS, namespace))

    @cached_property
    def cron(self) -> CronJob:
        return self.stored.read(CronJob)

    @cached_property
    def jobs(self) -> list[OwnedJob]:
        if not self.sees_jobs:
            return []
        owned = store.find(JOBS, namespace=self.stored.namespace, owner=self.stored.uid, order="created")
        return [stored.read(OwnedJob) for stored in owned]

    @property
    def where(self) -> tzinfo:
        """The zone of the schedule; UTC if that is no longer known."""
        try:
            return schedule.zone(self.cron.spec.time_zone)
        except ScheduleError:
            return schedule.zone("")

    @property
    def watches(self) -> list[Watch]:
        """The changes that make the page stale."""
        namespace, name, uid = self.stored.namespace, self.stored.name, self.stored.uid
        return [Watch(CRON_JOBS.id, namespace, name), Watch(JOBS.id, namespace, owner=uid)]

    @property
    def topic(self) -> str:
        return address("cronjobs:detail", {"namespace": self.stored.namespace, "name": self.stored.name})

    def parts(self, actor: Actor) -> Parts:
        """Return the buttons for what the actor may do, the facts and the calendar."""
        cron, namespace = self.cron, self.stored.namespace
        owner = cron.metadata.annotations.get(CREATOR_ANNOTATION) or None
        times = None if cron.spec.suspend else plan.times_of(cron)
        upcoming = plan.upcoming(cron, self.now)
        context = {
            "stored": self.stored,
            "cron": cron,
            "state": state(cron),
            "next": upcoming,
            "running": [job for job in self.jobs if not job.is_finished],
            "weeks": calendar.weeks(times, self.jobs, self.where, self.now),
            "weekdays": WEEKDAYS,
            "zone": cron.spec.time_zone or "UTC",
            "may_change": access.allowed(actor, "patch", CRON_JOBS, namespace, owner=owner),
            "may_run": access.allowed(actor, "create", JOBS, namespace),
            "may_delete": access.allowed(actor, "delete", CRON_JOBS, namespace, owner=owner),
        }
        html = {
            f"cron-{part}": render_to_string(f"crons/_{part}.html", context) for part in ("actions", "head", "calendar")
        }
        # The calendar changes at midnight, even without a run.
        offset = meta.moment_of(self.now).astimezone(self.where).utcoffset()
        here = self.now + (round(offset.total_seconds() * 1000) if offset else 0)
        midnight = self.now + DAY_MS - here % DAY_MS
        again = midnight if upcoming is None else min(midnight, upcoming)
        return Parts(html, watches=self.watches, again=again)

    def job_table(self, view: TableView) -> Table:
        """Return a page of the jobs that it made."""
        filters: dict[str, Any] = {"namespace": self.stored.namespace, "owner": self.stored.uid}
        if not self.sees_jobs:
            filters["namespace"] = ()
        counts = objects.by_phase(store.count(JOBS, **filters))
        page = objects.page_of(view, counts)
        phase = objects.of_phase(view.get("phase"))
        owned = store.find(JOBS, phase=phase, order=view.sort, **page.span, **filters)
        return Table(
            view=view,
            rows={f"job-{stored.uid}": _job_row(stored) for stored in owned},
            page=page,
            watches=self.watches,
            counts=counts,
            phases=phases.JOB_PHASES,
            fixed={"namespace": self.stored.namespace, "name": self.stored.name},
            empty={
                "symbol": "layers",
                "title": "It has made no job yet"
                if self.sees_jobs
                else f"You may not see the jobs of {self.stored.namespace}",
                "text": "Jobs that have ended are kept as far as its history limits say.",
            },
        )


def _job_row(stored: Stored) -> str:
    context = {"stored": stored, "id": f"job-{stored.uid}", "state": stored.read(Job).status.state}
    return render_to_string("crons/_job_row.html", context)


@live.topic(SPEC.name)
def cron_list(request: TopicRequest) -> Parts:
    """The list of cron jobs."""
    view = SPEC.read(request.params)
    return table(request.actor, view, clock.milliseconds()).parts()


@live.topic("cronjobs:detail")
def cron_detail(request: TopicRequest) -> Parts:
    """One cron job: its buttons, its facts and its calendar."""
    try:
        return _read_detail(request).parts(request.actor)
    except NotFound:
        namespace, name = (request.params.get(each, "") for each in ("namespace", "name"))
        html = render_to_string("crons/_gone.html", {"namespace": namespace, "name": name})
        return Parts(
            {"cron-head": html, "cron-actions": no_buttons("cron-actions")},
            watches=[Watch(CRON_JOBS.id, namespace, name)],
        )


@live.topic(JOBS_SPEC.name)
def cron_jobs(request: TopicRequest) -> Parts:
    """The jobs that one cron job made."""
    return _read_detail(request).job_table(JOBS_SPEC.read(request.params)).parts()


def _read_detail(request: TopicRequest) -> Detail:
    namespace, name = (request.params.get(each, "") for each in ("namespace", "name"))
    return Detail.of(request.actor, namespace, name, clock.milliseconds())
