"""The list of jobs: one page of it costs seven queries, however many jobs there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.template.loader import render_to_string
from django.urls import reverse

from cluster import access, clock
from cluster.store import Stored, records, store
from dashboard.live import Watch
from dashboard.parts import bulk, paging, phases
from dashboard.parts.table import Column, Filter, Spec, Table, TableView
from jobs.pages import past, progress
from jobs.pages.reading import CRASH_LOOP, Job
from jobs.rules import allowed_actions
from jobs.sweeps import record
from kube.indexes import HOLDS_SWEEP
from kube.resources import CONFIGMAPS, JOBS, PODS

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
    gone = _count_deleted(chosen)
    is_past = wanted == DELETED
    page = paging.Page(view.page, view.per, gone if is_past else total)
    offer = None if is_past else bulk.offered(JOBS.id, actor)
    return Table(
        view=view,
        rows=_deleted_rows(view, page, chosen)
        if is_past
        else _rows(view, page, chosen, selectable=offer is not None),
        page=page,
        watches=_watches(view, allowed),
        counts={**named, DELETED: gone},
        phases=phases.JOB_PHASES,
        apart=(DELETED,),
        again=clock.milliseconds() + LOOK_AGAIN_MS,
        choices={**_choices(allowed), "owner": [actor.name]},
        empty=_empty(actor),
        bulk=offer,
    )


def _rows(view: TableView, page: paging.Page, chosen: dict[str, Any], *, selectable: bool) -> dict[str, str]:
    found = store.find(JOBS, order=view.sort, limit=page.size, offset=page.offset, **chosen)
    looping = store.count(PODS, by="owner", trouble=CRASH_LOOP, owner=[stored.uid for stored in found])
    return {
        row_id(stored): row(stored, selectable=selectable, looping=looping.get(stored.uid, 0))
        for stored in found
    }


def _deleted_rows(view: TableView, page: paging.Page, chosen: dict[str, Any]) -> dict[str, str]:
    if chosen["owner"] is not None:
        return {}
    found = records.find(
        JOBS, order=view.sort, limit=page.size, offset=page.offset, **{**chosen, "phase": None}
    )
    return {f"job-{each.uid}": row(past.stored_of(each), deleted=each.deleted) for each in found}


def _count_deleted(chosen: dict[str, Any]) -> int:
    """Return how many deleted jobs match; what owned them is not recorded, so of a sweep's there is none."""
    return 0 if chosen["owner"] is not None else records.count(JOBS, **{**chosen, "phase": None})


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


def row(stored: Stored, *, selectable: bool = False, deleted: int = 0, looping: int = 0) -> str:
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
            "selectable": selectable,
            "created": stored.created,
            "deleted": deleted,
            "looping": looping,
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
