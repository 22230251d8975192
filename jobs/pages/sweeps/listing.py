"""The list of sweeps, the outcomes of one as a grid or in rows, and the topics of their pages."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from django.template.loader import render_to_string
from django.urls import reverse

from cluster import access
from cluster.access import Actor
from cluster.store import Stored, store
from cluster.store.types import decode
from dashboard import live
from dashboard.live import Parts, TopicRequest, Watch
from dashboard.parts import paging, phases, scope
from dashboard.parts.buttons import no_buttons
from dashboard.parts.filters import Filter
from dashboard.parts.table import Column, Spec, Table, TableView
from jobs.lifecycle.reading import Metadata
from jobs.operations import allowed_actions
from jobs.pages import objects
from jobs.pages.sweeps import grid_html
from jobs.sweeps import outcomes, record
from jobs.sweeps.outcomes import Grid, Outcomes
from jobs.sweeps.record import Record
from kube.errors import NotFound
from kube.indexes import HOLDS_SWEEP
from kube.kinds.fields import View
from kube.resources import CONFIGMAPS, CREATOR_ANNOTATION, JOBS

SPEC = Spec(
    name="sweeps:list",
    columns=(
        Column("Sweep", sort="name", kind="name"),
        Column("Namespace"),
        Column("Jobs", kind="number"),
        Column("Outcomes"),
        Column("Owner", sort="creator", priority="low"),
        Column("Age", sort="created", kind="time"),
    ),
    filters=(Filter("namespace", "Namespace"),),
    order="-created",
    search="Part of a sweep's name",
    noun="sweep",
    plural="sweeps",
)
EMPTY = {
    "symbol": "layers",
    "title": "There are no sweeps yet",
    "text": "A sweep is one job's YAML with placeholders, and a table of values that makes many jobs of it.",
}
DETAIL = "sweeps:detail"  # the topic of one sweep's outcomes
VALUE = "value-"  # prefix of the filter by a placeholder's value
MAX_CHOICES = 100  # values that a filter offers


class _Holder(View):
    """What a row needs of a sweep's ConfigMap, without its data, which may be large."""

    metadata: Metadata = Metadata()


def table(actor: Actor, view: TableView) -> Table:
    """Return a page of the sweeps that the actor may see."""
    visible = access.namespaces(actor, CONFIGMAPS)
    filters: dict[str, Any] = {
        "namespace": scope.namespaces_of(view.get("namespace"), visible),
        "text": view.q or None,
        "phase": HOLDS_SWEEP,
    }
    with store.reading() as head:
        total = sum(store.count(CONFIGMAPS, **filters).values())
        page = paging.Page(view.page, view.per, total)
        holders = store.find(CONFIGMAPS, order=view.sort, **page.span, **filters)
        visible_jobs = access.namespaces(actor, JOBS)
        counted_uids = [
            each.uid
            for each in holders
            if isinstance(visible_jobs, access.Everywhere) or each.namespace in visible_jobs
        ]
        counted = store.count_owned(JOBS, counted_uids) if counted_uids else {}
        everywhere = {**filters, "namespace": scope.namespaces_of("", visible)}
        choices = sorted(store.count(CONFIGMAPS, by="namespace", **everywhere))
    empty = EMPTY
    if allowed_actions.home(actor) is not None:
        empty = {**EMPTY, "url": reverse("sweeps:new"), "label": "New sweep"}
    return Table(
        view=view,
        rows={f"sweep-{stored.uid}": _row(stored, counted.get(stored.uid, {})) for stored in holders},
        page=page,
        watches=[
            *scope.watches(CONFIGMAPS.id, view.get("namespace"), visible),
            *(Watch(JOBS.id, stored.namespace, owner=stored.uid) for stored in holders),
        ],
        choices={"namespace": choices},
        revision=head,
        empty=empty,
    )


def _row(stored: Stored, counted: Mapping[str, int]) -> str:
    holder = stored.read(_Holder)
    named = objects.by_phase(counted)
    return render_to_string(
        "sweeps/_row.html",
        {
            "stored": stored,
            "name": record.name_of(stored.name),
            "owner": holder.metadata.annotations.get(CREATOR_ANNOTATION, ""),
            "jobs": sum(counted.values()),
            "counts": [(phase, named[phase]) for phase in phases.JOB_OUTCOMES if named.get(phase)],
        },
    )


def read(actor: Actor, namespace: str, name: str) -> tuple[Stored, Record]:
    """Return a sweep's ConfigMap and its record; raise Forbidden or NotFound if there is none to show."""
    for resource in (CONFIGMAPS, JOBS):
        access.require(actor, "get", resource, namespace, name)
    stored = store.get(CONFIGMAPS, namespace, record.holder_of(name))
    sweep = _read(stored.body)
    if sweep is None:
        raise NotFound.of(CONFIGMAPS.id, stored.name)
    return stored, sweep


@lru_cache(maxsize=8)
def _read(body: bytes) -> Record | None:
    """Read a record once for many renderings of its page: its data never changes."""
    return record.read(decode(body))


def head(actor: Actor, stored: Stored, sweep: Record) -> dict[str, str]:
    """Return the parts above the outcomes by their ids: the buttons and the facts of the sweep."""
    holder = stored.read(_Holder)
    owner = holder.metadata.annotations.get(CREATOR_ANNOTATION, "")
    context = {
        "stored": stored,
        "sweep": sweep,
        "owner": owner,
        "may_delete": access.allowed(actor, "delete", CONFIGMAPS, stored.namespace, owner=owner or None),
        "may_copy": access.allowed(actor, "create", JOBS, stored.namespace),
    }
    return {f"sweep-{piece}": render_to_string(f"sweeps/_{piece}.html", context) for piece in ("actions", "head")}


def outcomes_of(stored: Stored, sweep: Record, params: Mapping[str, str]) -> tuple[Table, Grid | None]:
    """Return the requested jobs of a sweep as a table and, if `outcomes.grid` makes one, as a grid."""
    view = _spec(sweep).read(params)
    results = Outcomes.of(sweep, store.phases(JOBS, namespace=stored.namespace, owner=stored.uid))
    wanted = {name: value for name in sweep.values.names if (value := view.get(f"{VALUE}{name}"))}
    matching = results.chosen(wanted, view.q)
    phase = view.get("phase")
    rows = [row for row in matching if phase in ("", results.phases[row])]
    # The grid keeps its form whichever phase is chosen.
    laid_out = outcomes.grid(sweep, matching)
    page = paging.Page(view.page, view.per, len(rows))
    if laid_out is not None:
        html = grid_html.rows(laid_out, results, stored.namespace, phase)
    else:
        html = {}
        for row in rows[page.offset : page.offset + page.size]:
            context = {
                "id": f"outcome-{row}",
                "namespace": stored.namespace,
                "job": results.record.jobs[row],
                "values": zip(results.record.values.names, results.record.values.rows[row], strict=True),
                "phase": results.phases[row],
            }
            html[f"outcome-{row}"] = render_to_string("sweeps/_outcome_row.html", context)
    return (
        Table(
            view=view,
            rows=html,
            page=page,
            watches=[
                Watch(JOBS.id, stored.namespace, owner=stored.uid),
                Watch(CONFIGMAPS.id, stored.namespace, stored.name),
            ],
            counts=results.counts(matching),
            phases=phases.JOB_OUTCOMES,
            fixed={"namespace": stored.namespace, "name": sweep.name},
            empty={"symbol": "layers", "title": "This sweep has no jobs", "text": ""},
        ),
        laid_out,
    )


def _spec(sweep: Record) -> Spec:
    choices = outcomes.distinct(sweep, range(len(sweep.jobs)))
    offered = [name for name in sweep.values.names if 1 < len(choices[name]) <= MAX_CHOICES]
    return Spec(
        name=DETAIL,
        columns=(Column("Job", kind="name"), *(Column(name) for name in sweep.values.names), Column("Phase")),
        filters=(
            *(Filter(f"{VALUE}{name}", name, choices=choices[name]) for name in offered),
            Filter("phase", "Phase", choices=phases.JOB_OUTCOMES, hidden=True),
        ),
        search="Part of a job's name",
        noun="job",
        plural="jobs",
    )


@live.topic(SPEC.name)
def sweep_list(request: TopicRequest) -> Parts:
    return table(request.actor, SPEC.read(request.params)).parts()


@live.topic(DETAIL)
def sweep_outcomes(request: TopicRequest) -> Parts:
    """The jobs of a sweep, as a grid or in rows, with their counts."""
    try:
        stored, sweep = read(request.actor, *_key(request))
    except NotFound:
        return Parts({}, watches=_watch(request))
    outcomes_table, _ = outcomes_of(stored, sweep, request.params)
    return outcomes_table.parts()


@live.topic("sweeps:head")
def sweep_head(request: TopicRequest) -> Parts:
    """The buttons and the facts of a sweep, or that it was deleted meanwhile."""
    namespace, name = _key(request)
    try:
        parts = head(request.actor, *read(request.actor, namespace, name))
    except NotFound:
        html = render_to_string("sweeps/_gone.html", {"namespace": namespace, "name": name})
        parts = {"sweep-head": html, "sweep-actions": no_buttons("sweep-actions")}
    return Parts(parts, watches=_watch(request))


def _key(request: TopicRequest) -> tuple[str, str]:
    return request.params.get("namespace", ""), request.params.get("name", "")


def _watch(request: TopicRequest) -> list[Watch]:
    namespace, name = _key(request)
    return [Watch(CONFIGMAPS.id, namespace, record.holder_of(name))]
