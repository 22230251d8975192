"""The page of the scheduler's decisions: which pods were bound or evicted, which groups have to wait, when and why."""

from __future__ import annotations

from dataclasses import replace

from cluster import access
from cluster.access import Actor
from cluster.store import decisions, store
from cluster.store.decisions import Filters
from dashboard.parts import decisions as decision_rows
from dashboard.parts import moments, paging, scope
from dashboard.parts.filters import Filter
from dashboard.parts.table import Column, Spec, Table, TableView
from kube.errors import Forbidden
from kube.resources import POD_GROUPS, PODS, QUEUES
from queues.scheduler import parts

SPEC = Spec(
    name="queues:decisions",
    columns=(
        Column("When", kind="time"),
        Column("Decision"),
        Column("Job", kind="name"),
        Column("Queue"),
        Column("Pods", kind="number"),
        Column("Why", kind="message"),
        Column("Nodes"),
    ),
    filters=(
        Filter("kind", "Decision", choices=tuple(decision_rows.KINDS), hidden=True),
        Filter("namespace", "Namespace"),
        Filter("queue", "Queue"),
        Filter("node", "Node", kind="text", hint="whole name"),
        Filter("from", "From, UTC", kind="moment", problem=moments.problem, more=True),
        Filter("to", "Before, UTC", kind="moment", problem=moments.problem, more=True),
    ),
    order="-created",
    search="Part of a job's name",
    noun="decision",
    plural="decisions",
)
EMPTY = {
    "symbol": "list-start",
    "title": "The scheduler has decided nothing yet",
    "text": "Pods that get a node, pods that are evicted and groups that have to wait are listed here, with the reason. Run a job to see it.",
}


def table(actor: Actor, view: TableView) -> Table:
    """Return a page of the decisions about groups that the actor may see; raise Forbidden if there can be none."""
    parts.require_ours()
    visible = access.namespaces(actor, POD_GROUPS)
    if not visible:
        raise Forbidden(
            "Decisions are about pod groups, and you may see those of no namespace; ask an administrator for a role."
        )
    filters = Filters(
        namespaces=scope.namespaces_of(view.get("namespace"), visible),
        kind=decision_rows.KINDS.get(view.get("kind"), ""),
        queue=view.get("queue"),
        node=view.get("node"),
        text=view.q,
        since=moments.moment(view.get("from")) if view.get("from") else None,
        until=moments.moment(view.get("to")) if view.get("to") else None,
    )
    with store.reading() as head:
        counts = decisions.count(replace(filters, kind=""))
        total = counts.get(filters.kind, 0) if filters.kind else sum(counts.values())
        page = paging.Page(view.page, view.per, total)
        rows = decisions.find(filters, limit=page.size, offset=page.offset)
        all_visible = Filters(namespaces=scope.namespaces_of("", visible))
        choices = {"namespace": decisions.values("namespace", all_visible)}
        choices["queue"] = decisions.values("queue", all_visible) if access.allowed(actor, "list", QUEUES, "") else []
    return Table(
        view=view,
        rows=decision_rows.rows(rows, names_group=True),
        page=page,
        # A decision is written together with the group or the pods that it changes.
        watches=[
            watch for kind in (POD_GROUPS, PODS) for watch in scope.watches(kind.id, view.get("namespace"), visible)
        ],
        counts={word: counts.get(kind, 0) for kind, word in decision_rows.WORDS.items()},
        phases=tuple(decision_rows.KINDS),
        by="kind",
        choices=choices,
        revision=head,
        empty=EMPTY,
    )
