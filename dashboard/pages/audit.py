"""The audit page: who changed what, and with which outcome."""

from __future__ import annotations

from django.template.loader import render_to_string

from cluster import access
from cluster.access import Actor, audit
from dashboard.parts import paging, phases
from dashboard.parts.filters import Filter
from dashboard.parts.table import Column, Spec, Table, TableView
from kube import resources
from kube.errors import Forbidden

KINDS = tuple(sorted({"users", "roles", *(each.id for each in resources.ALL)}))
SPEC = Spec(
    name="dashboard:audit",
    columns=(
        Column("When", kind="time"),
        Column("Who"),
        Column("Did"),
        Column("To", kind="name"),
        Column("Outcome"),
        Column("Details", kind="message"),
    ),
    filters=(
        Filter("actor", "Who", everything="Everybody"),
        Filter("namespace", "Namespace"),
        Filter("resource", "Kind", choices=KINDS),
        Filter("outcome", "Outcome", choices=phases.OUTCOMES),
    ),
    order="-at",
    search="Part of the object's name",
    noun="entry",
    plural="entries",
)
EMPTY = {
    "symbol": "scroll-text",
    "title": "Nobody has changed anything yet",
    "text": "Every change that a person makes or tries to make is written down here, with what it changed.",
}


def audit_table(actor: Actor, view: TableView) -> Table:
    """Return a page of the audit in the namespaces where the actor may read it; raise Forbidden if there are none."""
    visible = access.namespaces(actor, "audit")
    if not visible:
        raise Forbidden("The audit is for operators and administrators; ask an administrator for the role operator.")
    filters = audit.Filters(
        namespaces=visible,
        namespace=view.get("namespace") or None,
        actor=view.get("actor"),
        resource=view.get("resource"),
        outcome=view.get("outcome"),
        text=view.q,
    )
    # The first query counts as well; for a page beyond the last one the last page is queried then.
    result = audit.entries(filters, view.page, view.per)
    page = paging.Page(view.page, view.per, result.total)
    if page.number != result.number:
        result = audit.entries(filters, page.number, view.per)
    rows = {
        f"audit-{entry.pk}": render_to_string("dashboard/_audit_row.html", {"entry": entry}) for entry in result.entries
    }
    return Table(
        view=view, rows=rows, page=page, choices=audit.names(audit.Filters(namespaces=visible)), empty=EMPTY, live=False
    )
