"""The page of what the scheduler decided: who was bound, evicted or kept waiting, when and why."""

from __future__ import annotations

from dataclasses import replace

from cluster import access
from cluster.access import Actor
from cluster.store import decisions, store
from cluster.store.decisions import Filters
from dashboard.parts import decisions as shown
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
        Filter("kind", "Decision", choices=tuple(shown.KINDS), hidden=True),
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
    "text": "Whoever gets a node, goes for somebody else or has to wait stands here, with the reason. Run a job to see it.",
}


def table(actor: Actor, view: TableView) -> Table:
    """Return a page of the decisions about groups that the actor may see; Forbidden when these are none."""
    parts.require_ours()
    visible = access.namespaces(actor, POD_GROUPS)
    if not visible:
        raise Forbidden(
            "Decisions are about pod groups, and you may see those of no namespace; ask an administrator for a role."
        )
    wanted = Filters(
        namespaces=scope.namespaces_of(view.get("namespace"), visible),
        kind=shown.KINDS.get(view.get("kind"), ""),
        queue=view.get("queue"),
        node=view.get("node"),
        text=view.q,
        since=moments.moment(view.get("from")) if view.get("from") else None,
        until=moments.moment(view.get("to")) if view.get("to") else None,
    )
    with store.reading() as head:
        counts = decisions.count(replace(wanted, kind=""))
        total = counts.get(wanted.kind, 0) if wanted.kind else sum(counts.values())
        page = paging.Page(view.page, view.per, total)
        found = decisions.find(wanted, limit=page.size, offset=page.offset)
        seen = Filters(namespaces=scope.namespaces_of("", visible))
        choices = {"namespace": decisions.values("namespace", seen)}
        choices["queue"] = decisions.values("queue", seen) if access.allowed(actor, "list", QUEUES, "") else []
    return Table(
        view=view,
        rows=shown.rows(found, names_group=True),
        page=page,
        # A decision is written with what it changes: groups that are let in or told to wait, pods that are bound or go.
        watches=[
            watch for kind in (POD_GROUPS, PODS) for watch in scope.watches(kind.id, view.get("namespace"), visible)
        ],
        counts={word: counts.get(kind, 0) for kind, word in shown.WORDS.items()},
        phases=tuple(shown.KINDS),
        by="kind",
        choices=choices,
        revision=head,
        empty=EMPTY,
    )
