"""The list of Jobs of `batch/v1`, which are stored but not run here; each has a page that says so."""

from __future__ import annotations

from django.template.loader import render_to_string

from cluster.access import Actor
from cluster.store import Stored
from dashboard.parts.filters import Filter
from dashboard.parts.table import Column, Spec, Table, TableView
from jobs.pages import objects
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
    """Return a page of the Jobs that the actor may see."""

    def row(stored: Stored) -> str:
        owner = (stored.object["metadata"].get("annotations") or {}).get(CREATOR_ANNOTATION, "")
        return render_to_string("jobs/_kubernetes_row.html", {"stored": stored, "owner": owner})

    owner = view.get("owner") or None
    return objects.table(actor, view, BATCH_JOBS, row, name="batch", empty=EMPTY, creator=owner)
