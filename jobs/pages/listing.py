"""The list of jobs: one page of it costs four queries, however many jobs there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.template.loader import render_to_string
from django.urls import reverse

from cluster import access
from cluster.store import Stored, store
from dashboard.live import Watch
from dashboard.parts import bulk, paging, phases
from dashboard.parts.table import Column, Filter, Spec, Table, TableView
from jobs.pages import progress
from jobs.pages.reading import Job
from jobs.rules import allowed_actions
from jobs.sweeps import record
from kube.indexes import HOLDS_SWEEP
from kube.resources import CONFIGMAPS, JOBS

if TYPE_CHECKING:
    from cluster.access import Actor

SPEC = Spec(
    name="jobs:list",
    columns=(
        Column("Job", sort="name", kind="name"),
        Column("Namespace"),
        Column("Phase", sort="phase"),
        Column("Gang", kind="bar"),
        Column("Queue", sort="queue"),
        Column("Owner", sort="creator", priority="low"),
        Column("Age", sort="created", kind="time"),
        Column("Ran", kind="number"),
        Column("Why", kind="cut"),
    ),
    filters=(
        Filter("namespace", "Namespace"),
        Filter("queue", "Queue"),
        Filter("phase", "Phase", choices=phases.JOB_PHASES),
        Filter("owner", "Owner", everything="Everybody"),
        Filter("sweep", "Sweep", hidden=True),
    ),
    order="-created",
    search="Part of a job's name",
    noun="job",
    plural="jobs",
)
UNTROUBLED = ("Running", "Completed")  # phases that need no reason in a list
EMPTY = {
    "symbol": "layers",
    "title": "There are no jobs yet",
    "text": "Write one in the editor, or run a sample from the overview: it does real work on this machine.",
    "label": "New job",
}


def table(actor: Actor, view: TableView) -> Table:
    """Return a page of the jobs that the actor may see."""
    allowed = access.namespaces(actor, JOBS)
    chosen = filters(view, allowed)
    counts = store.count(JOBS, by="phase", **{**chosen, "phase": None})
    named = {phase or "Pending": 0 for phase in counts}
    for phase, count in counts.items():
        named[phase or "Pending"] += count
    wanted = view.get("phase")
    total = named.get(wanted, 0) if wanted else sum(named.values())
    page = paging.Page(view.page, view.per, total)
    found = store.find(JOBS, order=view.sort, limit=page.size, offset=page.offset, **chosen)
    offer = bulk.offered(JOBS.id, actor)
    return Table(
        view=view,
        rows={row_id(stored): row(stored, selectable=offer is not None) for stored in found},
        page=page,
        watches=_watches(view, allowed),
        counts=named,
        phases=phases.JOB_PHASES,
        choices={**_choices(allowed), "owner": [actor.name]},
        empty=_empty(actor),
        bulk=offer,
    )


def _empty(actor: Actor) -> dict[str, str]:
    """Say what to do while there are no jobs."""
    if allowed_actions.home(actor) is not None:
        return {**EMPTY, "url": reverse("jobs:new")}
    if not access.grants(actor).roles:
        return {
            **EMPTY,
            "text": "You have no role yet, so there is nothing to see. Ask an administrator for one.",
            "label": "",
        }
    return {
        **EMPTY,
        "text": "They appear here as soon as somebody submits one. To do it yourself takes the role submitter.",
        "label": "",
    }


def row_id(stored: Stored) -> str:
    """Return the id of a job's row."""
    return f"job-{stored.uid}"


def row(stored: Stored, *, selectable: bool) -> str:
    """Return a job's row; it depends on the job alone, so that it is the same for every reader."""
    job = stored.read(Job)
    began, ended = progress.duration(job)
    return render_to_string(
        "jobs/_row.html",
        {
            "id": row_id(stored),
            "job": job,
            "selectable": selectable,
            "created": stored.created,
            "progress": progress.of_job(job),
            "began": began,
            "ran": None if began is None or ended is None else max(ended - began, 0),
            "why": "" if job.phase in UNTROUBLED else job.status.state.message,
        },
    )


def filters(view: TableView, allowed: frozenset[str] | access.Everywhere) -> dict[str, Any]:
    """Return what the store has to look for, among the namespaces that a reader may list."""
    namespace: str | list[str] | None = view.get("namespace") or None
    if not isinstance(allowed, access.Everywhere):
        namespace = [name for name in sorted(allowed) if namespace in (None, name)]
    phase: str | list[str] | None = view.get("phase") or None
    return {
        "namespace": namespace,
        "queue": view.get("queue") or None,
        # A job that no controller has seen yet has no phase, and is shown as Pending.
        "phase": ["Pending", ""] if phase == "Pending" else phase,
        "creator": view.get("owner") or None,
        "owner": _sweeps(view.get("sweep"), namespace),
        "text": view.q or None,
    }


def _sweeps(name: str, namespace: str | list[str] | None) -> list[str] | None:
    """Return the uids of what owns the jobs of the sweeps of a name; None where no sweep is asked for."""
    if not name:
        return None
    return [*store.names(CONFIGMAPS, namespace=namespace, name=record.holder_of(name), phase=HOLDS_SWEEP)]


def _choices(allowed: frozenset[str] | access.Everywhere) -> dict[str, list[str]]:
    filters: dict[str, Any] = {}
    if not isinstance(allowed, access.Everywhere):
        filters["namespace"] = sorted(allowed)
    return {
        name: sorted(filter(None, store.count(JOBS, by=name, **filters))) for name in ("namespace", "queue")
    }


def _watches(view: TableView, allowed: frozenset[str] | access.Everywhere) -> list[Watch]:
    namespace = view.get("namespace")
    if isinstance(allowed, access.Everywhere):
        return [Watch(JOBS.id, namespace=namespace or None)]
    return [Watch(JOBS.id, namespace=name) for name in sorted(allowed) if namespace in ("", name)]
