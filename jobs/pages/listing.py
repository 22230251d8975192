"""The list of jobs: one page of it costs seven queries, however many jobs there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.template.loader import render_to_string
from django.urls import reverse

from cluster import access, clock
from cluster.store import Stored, records, store
from dashboard.live import Watch
from dashboard.parts import paging, phases
from dashboard.parts.table import Column, Filter, Spec, Table, TableView
from jobs.pages import past, progress
from jobs.pages.reading import CRASH_LOOP, Job
from jobs.rules import allowed_actions
from kube.resources import JOBS, PODS

if TYPE_CHECKING:
    from cluster.access import Actor

DELETED = "Deleted"  # stands among the phases for the jobs that are no more
# A deleted job appears once it is recorded, and pods crash-loop, without a change of what the page watches.
LOOK_AGAIN_MS = 5000
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
        Filter("phase", "Phase", choices=(*phases.JOB_PHASES, DELETED)),
        Filter("owner", "Owner", everything="Everybody"),
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
    chosen = _filters(view, allowed)
    counts = store.count(JOBS, by="phase", **{**chosen, "phase": None})
    named = {phase or "Pending": 0 for phase in counts}
    for phase, count in counts.items():
        named[phase or "Pending"] += count
    wanted = view.get("phase")
    total = named.get(wanted, 0) if wanted else sum(named.values())
    gone = records.count(JOBS, **{**chosen, "phase": None})
    is_past = wanted == DELETED
    page = paging.Page(view.page, view.per, gone if is_past else total)
    return Table(
        view=view,
        rows=_deleted_rows(view, page, chosen) if is_past else _rows(view, page, chosen),
        page=page,
        watches=_watches(view, allowed),
        counts={**named, DELETED: gone},
        phases=phases.JOB_PHASES,
        apart=(DELETED,),
        again=clock.milliseconds() + LOOK_AGAIN_MS if is_past or named.get("Running") else None,
        choices={**_choices(allowed), "owner": [actor.name]},
        empty=_empty(actor),
    )


def _rows(view: TableView, page: paging.Page, chosen: dict[str, Any]) -> dict[str, str]:
    found = store.find(JOBS, order=view.sort, limit=page.size, offset=page.offset, **chosen)
    looping = store.count(PODS, by="owner", trouble=CRASH_LOOP, owner=[stored.uid for stored in found])
    return {row_id(stored): row(stored, looping=looping.get(stored.uid, 0)) for stored in found}


def _deleted_rows(view: TableView, page: paging.Page, chosen: dict[str, Any]) -> dict[str, str]:
    filters = {**chosen, "phase": None}
    found = records.find(JOBS, order=view.sort, limit=page.size, offset=page.offset, **filters)
    return {f"job-{each.uid}": row(past.stored_of(each), each.deleted) for each in found}


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


def row(stored: Stored, deleted: int = 0, looping: int = 0) -> str:
    """Return a job's row; it depends on the job alone, so that it is the same for every reader.

    `deleted` is when the job was deleted, in ms, and 0 while it lives; `looping` is how many of its pods are
    crash-looping.
    """
    job = stored.read(Job)
    began, ended = progress.duration(job)
    return render_to_string(
        "jobs/_row.html",
        {
            "id": row_id(stored),
            "job": job,
            "created": stored.created,
            "deleted": deleted,
            "looping": looping,
            "progress": progress.of_job(job),
            "began": began,
            "ran": None if began is None or ended is None else max(ended - began, 0),
            "why": "" if job.phase in UNTROUBLED else job.status.state.message,
        },
    )


def _filters(view: TableView, allowed: frozenset[str] | access.Everywhere) -> dict[str, Any]:
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
        "text": view.q or None,
    }


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
