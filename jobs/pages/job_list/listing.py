"""The list of jobs: one page costs nine queries, and three more if it has waiting jobs that ran before, however many there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.urls import reverse

from cluster import access, clock
from cluster.access import Actor
from cluster.api import backend
from cluster.store import Stored, records, store
from dashboard.parts import bulk, not_run, phases, scope
from dashboard.parts.filters import Filter
from dashboard.parts.table import Column, Spec, Table, TableView
from jobs.lifecycle import progress
from jobs.lifecycle.phases import DELETED
from jobs.lifecycle.progress import Ran
from jobs.lifecycle.reading import Job
from jobs.operations import allowed_actions
from jobs.pages import objects
from jobs.pages.job import mirrored, past_runs, pods
from jobs.pages.job_list import job_filters
from jobs.pages.job_list.job_row import row, row_id
from jobs.rules import reasons
from jobs.sweeps import record
from kube.indexes import HOLDS_SWEEP
from kube.resources import CONFIGMAPS, JOBS, QUEUES

MAX_OWNERS = 200  # offered as choices; the address, or a click on a name, can select any other
# Recording a deleted job, and pods that start to crash-loop, change the page but nothing that it watches.
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
    every = {**chosen, "phase": None}
    counts = objects.by_phase(store.count(JOBS, by="phase", **every))
    # The owner of a deleted job is not recorded, so a sweep has no deleted ones.
    counts[DELETED] = 0 if chosen["owner"] is not None else records.count(JOBS, **every)
    is_past = view.get("phase") == DELETED
    living = {phase: number for phase, number in counts.items() if phase != DELETED}
    page = objects.page_of(view, counts if is_past else living)
    offer = None if is_past else bulk.offered(JOBS.id, actor)
    if not is_past:
        found = store.find(JOBS, order=view.order, **page.span, **chosen)
        jobs, stuck, ran = mirrored.of_many(found), pods.stuck_pods(found), _ran_before(found, {})
        rows = {
            row_id(each): row(
                each, jobs[each.uid], selectable=offer is not None, stuck=stuck.get(each.uid), ran=ran.get(each.uid)
            )
            for each in found
        }
    elif counts[DELETED]:
        recorded = records.find(JOBS, order=view.order, limit=page.size, offset=page.offset, **every)
        past, deleted = [past_runs.stored_of(each) for each in recorded], {each.uid: each.deleted for each in recorded}
        ran = _ran_before(past, deleted)
        rows = {
            row_id(each): row(each, each.read(Job), deleted=deleted[each.uid], ran=ran.get(each.uid)) for each in past
        }
    else:
        rows = {}
    return Table(
        view=view,
        rows=rows,
        page=page,
        watches=[
            *scope.watches(JOBS.id, view.get("namespace"), allowed),
            *not_run.watches(actor, view.get("namespace")),
        ],
        counts=counts,
        phases=phases.JOB_PHASES,
        apart=(DELETED,),
        again=clock.milliseconds() + LOOK_AGAIN_MS,
        choices=_choices(actor, allowed, is_past=is_past),
        empty=_empty(actor),
        bulk=offer,
        above={"jobs-not-run": not_run.line(actor, "jobs-not-run", **view.values)},
    )


def _ran_before(jobs: Sequence[Stored], deleted: Mapping[str, int]) -> dict[str, Ran]:
    """Return how long jobs ran that wait again, for example because their pods were evicted."""
    came_back = [stored for stored in jobs if progress.came_back(stored.read(Job), stored.created)]
    phases_by_uid = past_runs.phases(came_back)
    return {uid: progress.last_ran(phases, deleted.get(uid, 0)) for uid, phases in phases_by_uid.items() if phases}


def _empty(actor: Actor) -> dict[str, str]:
    """Return what to show while there are no jobs."""
    if allowed_actions.home(actor) is not None:
        return {**EMPTY, "url": reverse("jobs:new")}
    if access.somewhere(actor, "list", JOBS):
        to_submit = backend.refusal("create", JOBS.id) or f"To do it yourself: {access.remedy('create', JOBS)}"
        text = f"They appear here as soon as somebody submits one. {to_submit}"
    else:
        text = f"You may not see jobs anywhere. {access.remedy('list', JOBS)}"
    return {**EMPTY, "text": text, "label": ""}


def _choices(actor: Actor, allowed: frozenset[str] | access.Everywhere, *, is_past: bool) -> dict[str, list[str]]:
    """Return the filters' choices: values of jobs the reader may see, the first owners and the reader, queues they may list."""
    if is_past:  # living jobs may have none of the deleted ones' values
        recorded = records.values(JOBS, namespace=scope.namespaces_of("", allowed))
        namespaces, queues, owners = recorded["namespace"], recorded["queue"], recorded["creator"]
    else:
        namespaces = store.values(JOBS, "namespace")
        if isinstance(allowed, access.Everywhere):
            owners = store.values(JOBS, "creator", limit=MAX_OWNERS + 1)  # jobs without one come first
        else:
            namespaces = [name for name in namespaces if name in allowed]
            owners = [*store.count(JOBS, by="creator", namespace=namespaces)]
        if access.allowed(actor, "list", QUEUES, ""):
            queues = store.values(JOBS, "queue")
        else:
            queues = sorted(store.count(JOBS, by="queue", namespace=namespaces))
    offered = sorted({actor.name, *sorted({*owners} - {""})[:MAX_OWNERS]})
    return {"namespace": namespaces, "queue": [name for name in queues if name], "owner": offered}


def filters(view: TableView, allowed: frozenset[str] | access.Everywhere, now: int) -> dict[str, Any]:
    """Return the store's filters at a time in ms, within the namespaces that a reader may list."""
    namespace: str | list[str] | None = view.get("namespace") or None
    if not isinstance(allowed, access.Everywhere):
        namespace = [name for name in sorted(allowed) if namespace in (None, name)]
    sweeps = None  # the uids of the ConfigMaps of the sweeps of a name, if one is requested
    if name := view.get("sweep"):
        sweeps = [*store.names(CONFIGMAPS, namespace=namespace, name=record.holder_of(name), phase=HOLDS_SWEEP)]
    return {
        "namespace": namespace,
        "queue": view.get("queue") or None,
        "phase": objects.of_phase(view.get("phase")),
        "creator": view.get("owner") or None,
        "owner": sweeps,
        "text": view.q or None,
        **job_filters.searched(view.values, now),
    }
