"""The list of Jobs of `batch/v1`, which are stored and not run here; each has a page that says so."""

from __future__ import annotations

from typing import Any

from django.template.loader import render_to_string

from cluster import access
from cluster.access import Actor
from cluster.store import Stored, store
from dashboard.parts import paging, scope
from dashboard.parts.filters import Filter
from dashboard.parts.table import Column, Spec, Table, TableView
from kube.resources import BATCH_JOBS, CREATOR_ANNOTATION

SPEC = Spec(
    name="jobs:kubernetes",
    columns=(
        Column("Job", sort="name", kind="name"),
        Column("Namespace"),
        Column("State"),
        Column("Owner", sort="creator", priority="low"),
        Column("Age", sort="created", kind="time"),
    ),
    filters=(Filter("namespace", "Namespace"), Filter("owner", "Owner", hidden=True)),
    order="-created",
    search="Part of a job's name",
    noun="Job of batch/v1",
    plural="Jobs of batch/v1",
)
EMPTY = {
    "symbol": "layers",
    "title": "There are no Jobs of batch/v1",
    "text": "What is applied as a Job of batch.volcano.sh/v1alpha1 runs, and is in the list of jobs.",
}


def table(actor: Actor, view: TableView) -> Table:
    """Return a page of those that the actor may see."""
    visible = access.namespaces(actor, BATCH_JOBS)
    filters: dict[str, Any] = {
        "namespace": scope.namespaces_of(view.get("namespace"), visible),
        "text": view.q or None,
        "creator": view.get("owner") or None,
    }
    with store.reading() as head:
        page = paging.Page(view.page, view.per, sum(store.count(BATCH_JOBS, **filters).values()))
        found = store.find(BATCH_JOBS, order=view.order, **page.span, **filters)
        choices = sorted(store.count(BATCH_JOBS, by="namespace", namespace=scope.namespaces_of("", visible)))
    return Table(
        view=view,
        rows={f"batch-{stored.uid}": _row(stored) for stored in found},
        page=page,
        watches=scope.watches(BATCH_JOBS.id, view.get("namespace"), visible),
        choices={"namespace": choices},
        revision=head,
        empty=EMPTY,
    )


def _row(stored: Stored) -> str:
    owner = (stored.object["metadata"].get("annotations") or {}).get(CREATOR_ANNOTATION, "")
    return render_to_string("jobs/_kubernetes_row.html", {"stored": stored, "owner": owner})
