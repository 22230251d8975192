"""The list of jobs: one page of it costs nine queries, and three more where jobs of it wait that had run, however many there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.urls import reverse

from cluster import access, clock
from cluster.access import Actor
from cluster.api import backend
from cluster.store import Stored, records, store
from dashboard.live import Watch
from dashboard.parts import bulk, not_run, paging, phases, scope
from dashboard.parts.filters import Filter
from dashboard.parts.table import Column, Spec, Table, TableView
from jobs.lifecycle import progress
from jobs.lifecycle.phases import DELETED
from jobs.lifecycle.progress import Ran
from jobs.lifecycle.reading import Job
from jobs.operations import allowed_actions
from jobs.pages.job import past, pods
from jobs.pages.job_list import job_filters
from jobs.pages.job_list.job_row import row, row_id
from jobs.rules import reasons
from jobs.sweeps import record
from kube.indexes import HOLDS_SWEEP
from kube.resources import CONFIGMAPS, JOBS, QUEUES

MOST_OWNERS = 200  # that are offered; any other may be asked for in the address, and by a click on it
# A deleted job appears once it is recorded, and pods begin to crash-loop, without a change of what the page watches.
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
        Filter("owner", "Owner", everything="Everybody", more=True),
        Filter(
            "label",
            "Label",
            kind="text",
            hint="team=vision, !gpu",
            problem=job_filters.label_problem,
            longest=1000,
            more=True,
        ),
        Filter("cause", "Cause", choices=tuple(reasons.WORDS), words=reasons.WORDS, everything="Any", more=True),
        Filter("exit", "Exit code", kind="text", hint="137", problem=job_filters.exit_code_problem, more=True),
        Filter(
            "created",
            "Created",
            choices=tuple(job_filters.LATELY),
            words=job_filters.LATELY_WORDS,
            everything="At any time",
            more=True,
        ),
        Filter("from", "Created from, UTC", kind="moment", problem=job_filters.moment_problem, more=True),
        Filter("to", "Created before, UTC", kind="moment", problem=job_filters.moment_problem, more=True),
        Filter("sweep", "Sweep", hidden=True),
    ),
    order="-created",
    search="Part of a job's name",
    noun="job",
    plural="jobs",
)
EMPTY = {
    "symbol": "layers",
    "title": "There are no jobs yet",
    "text": "Write one in the editor, or begin with a sample.",
    "label": "New job",
}


def table(actor: Actor, view: TableView) -> Table:
    """Return a page of the jobs that the actor may see."""
    allowed = access.namespaces(actor, JOBS)
    chosen = filters(view, allowed, clock.milliseconds())
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
        rows=_deleted_rows(view, page, chosen) if is_past else _rows(view, page, chosen, selectable=offer is not None),
        page=page,
        watches=[*_watches(view, allowed), *not_run.watches(actor, view.get("namespace"))],
        counts={**named, DELETED: gone},
        phases=phases.JOB_PHASES,
        apart=(DELETED,),
        again=clock.milliseconds() + LOOK_AGAIN_MS,
        choices=_choices_of_deleted(actor, allowed) if is_past else _choices(actor, allowed),
        empty=_empty(actor),
        bulk=offer,
        above={"jobs-not-run": not_run.line(actor, "jobs-not-run", **view.values)},
    )


def _rows(view: TableView, page: paging.Page, chosen: dict[str, Any], *, selectable: bool) -> dict[str, str]:
    found = store.find(JOBS, order=view.order, **page.span, **chosen)
    kept, ran = pods.kept(found), _ran_before(found, {})
    return {
        row_id(stored): row(stored, selectable=selectable, kept=kept.get(stored.uid), ran=ran.get(stored.uid))
        for stored in found
    }


def _ran_before(found: Sequence[Stored], deleted: Mapping[str, int]) -> dict[str, Ran]:
    """Return how long jobs have run that came back to wait, as when their pods were evicted."""
    came_back = [stored for stored in found if progress.came_back(stored.read(Job), stored.created)]
    told = past.phases(came_back)
    return {uid: progress.last_ran(phases, deleted.get(uid, 0)) for uid, phases in told.items() if phases}


def _deleted_rows(view: TableView, page: paging.Page, chosen: dict[str, Any]) -> dict[str, str]:
    if chosen["owner"] is not None:
        return {}
    found = records.find(JOBS, order=view.order, limit=page.size, offset=page.offset, **{**chosen, "phase": None})
    jobs = {each.uid: past.stored_of(each) for each in found}
    ran = _ran_before([*jobs.values()], {each.uid: each.deleted for each in found})
    return {f"job-{each.uid}": row(jobs[each.uid], deleted=each.deleted, ran=ran.get(each.uid)) for each in found}


def _count_deleted(chosen: dict[str, Any]) -> int:
    """Return how many deleted jobs match; what owned them is not recorded, so of a sweep's there is none."""
    return 0 if chosen["owner"] is not None else records.count(JOBS, **{**chosen, "phase": None})


def _empty(actor: Actor) -> dict[str, str]:
    """Say what to do while there are no jobs."""
    if allowed_actions.home(actor) is not None:
        return {**EMPTY, "url": reverse("jobs:new")}
    if not access.somewhere(actor, "list", JOBS):
        text = f"You may not see jobs anywhere. {access.remedy('list', JOBS)}"
        return {**EMPTY, "text": text, "label": ""}
    text = f"They appear here as soon as somebody submits one. {_to_submit()}"
    return {**EMPTY, "text": text, "label": ""}


def _to_submit() -> str:
    return backend.refusal("create", JOBS.id) or f"To do it yourself: {access.remedy('create', JOBS)}"


def filters(view: TableView, allowed: frozenset[str] | access.Everywhere, now: int) -> dict[str, Any]:
    """Return what the store has to look for at a time in ms, among the namespaces that a reader may list."""
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
        **job_filters.searched(view.values, now),
    }


def _sweeps(name: str, namespace: str | list[str] | None) -> list[str] | None:
    """Return the uids of what owns the jobs of the sweeps of a name; None where no sweep is asked for."""
    if not name:
        return None
    return [*store.names(CONFIGMAPS, namespace=namespace, name=record.holder_of(name), phase=HOLDS_SWEEP)]


def _choices(actor: Actor, allowed: frozenset[str] | access.Everywhere) -> dict[str, list[str]]:
    """Offer what the living jobs have that the reader may see, and the queues that he may list."""
    namespaces = store.values(JOBS, "namespace")
    if isinstance(allowed, access.Everywhere):
        owners = store.values(JOBS, "creator", limit=MOST_OWNERS + 1)  # jobs without one come first
    else:
        namespaces = [name for name in namespaces if name in allowed]
        owners = [*store.count(JOBS, by="creator", namespace=namespaces)]
    if access.allowed(actor, "list", QUEUES, ""):
        queues = store.values(JOBS, "queue")
    else:
        queues = sorted(store.count(JOBS, by="queue", namespace=namespaces))
    return {"namespace": namespaces, "queue": [name for name in queues if name], "owner": _owners(actor, owners)}


def _choices_of_deleted(actor: Actor, allowed: frozenset[str] | access.Everywhere) -> dict[str, list[str]]:
    """Offer what the deleted jobs have that the reader may see: living ones may have nothing of it."""
    found = records.values(JOBS, namespace=scope.namespaces_of("", allowed))
    return {"namespace": found["namespace"], "queue": found["queue"], "owner": _owners(actor, found["creator"])}


def _owners(actor: Actor, found: Sequence[str]) -> list[str]:
    """Return the owners to offer, the reader among them; of very many the first."""
    return sorted({actor.name, *sorted({*found} - {""})[:MOST_OWNERS]})


def _watches(view: TableView, allowed: frozenset[str] | access.Everywhere) -> list[Watch]:
    namespace = view.get("namespace")
    if isinstance(allowed, access.Everywhere):
        return [Watch(JOBS.id, namespace=namespace or None)]
    return [Watch(JOBS.id, namespace=name) for name in sorted(allowed) if namespace in ("", name)]
