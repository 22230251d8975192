"""Bulk operations: the forecast, progress and results of one, the list of them, and the actions that tables offer.

Whoever may list the jobs of a namespace may see operations on them. So readers with the same rights see the same,
whoever began an operation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from django.db.models import Count, QuerySet
from django.template.loader import render_to_string
from django.urls import reverse

from cluster import access, clock
from cluster.access import Actor
from cluster.api import bulk
from cluster.store import store
from dashboard import live
from dashboard.live import Parts, TopicRequest
from dashboard.parts import bulk as offers
from dashboard.parts import paging, phases, svg
from dashboard.parts.bulk import Bulk, Choice
from dashboard.parts.filters import Filter
from dashboard.parts.table import Column, Spec, Table, TableView
from jobs.lifecycle.reading import Job
from jobs.models import Operation, OperationItem
from jobs.operations import allowed_actions
from jobs.rules import actions
from jobs.rules.actions import OPEN, Action, Extent, Result
from kube.errors import NotFound
from kube.resources import JOBS

MAX_DIGITS = 18  # of a number in an address
HIGHEST = 2**63 - 1  # that a database can look up
AGAIN_MS = 1000  # until the page of a running operation is refreshed
RESULTS = tuple(str(result) for result in Result)
SPEC = Spec(
    name="jobs:operation",
    columns=(
        Column("Job", sort="name", kind="name"),
        Column("Result"),
        Column("Why", kind="message"),
        Column("Asked", kind="time", priority="low"),
    ),
    filters=(Filter("result", "Result", choices=RESULTS, hidden=True),),
    search="Part of a job's name",
    noun="job",
    plural="jobs",
)
ALL_SPEC = Spec(
    name="jobs:operations",
    columns=(
        Column("Operation", kind="name"),
        Column("Jobs", kind="number"),
        Column("Asked by"),
        Column("When", kind="time"),
        Column("State"),
    ),
    order="-drafted",
    noun="operation",
    plural="operations",
)
EMPTY = {
    "symbol": "layers",
    "title": "No bulk operation yet",
    "text": "Tick jobs in the list of jobs or on a queue's page, or choose all that match the filters, and say what to do with them.",
}


class Forecast(NamedTuple):
    """What an operation would do now: its extent, and how many jobs it would leave alone, by reason."""

    extent: Extent
    skipped: int = 0
    refused: int = 0
    gone: int = 0


@dataclass(frozen=True)
class OperationView:
    """A bulk operation with those of its items that a reader may see."""

    operation: Operation
    items: QuerySet[OperationItem]

    @classmethod
    def of(cls, actor: Actor, number: int) -> OperationView:
        """Read an operation; raise NotFound if there is none, or the actor may see none of its jobs."""
        operation = Operation.objects.filter(pk=min(number, HIGHEST), is_bulk=True).first()
        if operation is not None:
            visible = access.namespaces(actor, JOBS)
            items = operation.items.all()
            if not isinstance(visible, access.Everywhere):
                items = items.filter(namespace__in=visible)
            is_open = not operation.is_draft or operation.actor == actor.name
            if is_open and items.exists():
                return cls(operation, items)
        raise NotFound(f"There is no bulk operation {number} of jobs that you may see.")

    @property
    def action(self) -> Action:
        return actions.BY_NAME[self.operation.action]

    @cached_property
    def counts(self) -> dict[str, int]:
        return dict(self.items.values_list("result").annotate(number=Count("pk")).order_by())

    def forecast(self, actor: Actor) -> Forecast:
        """Say what the operation would do if the actor confirmed it now."""
        total = Forecast(Extent())
        keys = list(self.items.values_list("namespace", "name", "uid"))
        for start in range(0, len(keys), bulk.BATCH):
            chunk = keys[start : start + bulk.BATCH]
            jobs = store.by_keys(JOBS, [f"{namespace}/{name}" for namespace, name, _ in chunk])
            uids = {uid for _, _, uid in chunk}
            there = [stored.read(Job) for stored in jobs.values() if stored.uid in uids]
            fitting = [job for job in there if not actions.problem(self.action, job)]
            mine = [job for job in fitting if allowed_actions.has_right(actor, self.action, job)]
            total = Forecast(
                Extent(*map(sum, zip(total.extent, actions.extent(mine), strict=True))),
                total.skipped + len(there) - len(fitting),
                total.refused + len(fitting) - len(mine),
                total.gone + len(chunk) - len(there),
            )
        return total

    def table(self, view: TableView) -> Table:
        """Return a page of the items, and the progress above them; it is refreshed while the operation runs."""
        items = self.items.filter(name__icontains=view.q) if view.q else self.items
        counts = dict(items.values_list("result").annotate(number=Count("pk")).order_by())
        wanted = view.get("result")
        if wanted:
            items = items.filter(result=wanted)
        page = paging.Page(view.page, view.per, counts.get(wanted, 0) if wanted else sum(counts.values()))
        down = "-" if view.sort == "-name" else ""
        on_page = items.order_by(f"{down}namespace", f"{down}name")[page.offset : page.offset + page.size]
        return Table(
            view=view,
            rows={
                f"item-{item.pk}": render_to_string("jobs/operations/_item_row.html", {"item": item})
                for item in on_page
            },
            page=page,
            counts=counts,
            phases=RESULTS,
            by="result",
            fixed={"number": str(self.operation.pk)},
            again=clock.milliseconds() + AGAIN_MS if self.operation.is_running else None,
            extra={"operation-head": self.head()},
        )

    def head(self) -> str:
        """Return the progress as HTML."""
        settled = sum(number for result, number in self.counts.items() if result not in OPEN)
        context = {
            "operation": self.operation,
            "action": self.action,
            "total": sum(self.counts.values()),
            "settled": settled,
            "left": self.counts.get(Result.WAITING, 0),
            "bar": svg.stack(
                svg.Share(self.counts.get(word, 0), phases.appearance(word).hue, word.lower()) for word in RESULTS
            ),
        }
        return render_to_string("jobs/operations/_head.html", context)


def table(actor: Actor, view: TableView) -> Table:
    """Return a page of the actor's bulk operations; of everybody's if the actor may read the whole audit."""
    operations = Operation.objects.filter(is_bulk=True).exclude(confirmed=0)
    if not access.allowed(actor, "list", "audit", access.EVERYWHERE):
        operations = operations.filter(actor=actor.name)
    page = paging.Page(view.page, view.per, operations.count())
    on_page = operations.order_by("-drafted", "-pk")[page.offset : page.offset + page.size]
    rows = {f"operation-{each.pk}": _row(each) for each in on_page}
    return Table(view=view, rows=rows, page=page, empty=EMPTY, live=False)


def _row(operation: Operation) -> str:
    context = {"operation": operation, "action": actions.BY_NAME[operation.action]}
    return render_to_string("jobs/operations/_row.html", context)


@live.topic(SPEC.name)
def operation(request: TopicRequest) -> Parts:
    """The progress of a bulk operation, and its jobs' results."""
    number = request.params.get("number", "")
    if not number.isascii() or not number.isdigit() or len(number) > MAX_DIGITS:
        raise NotFound(f"There is no bulk operation {number[:40]}.")
    return OperationView.of(request.actor, int(number)).table(SPEC.read(request.params)).parts()


@offers.source(JOBS.id)
def offer(actor: Actor) -> Bulk | None:
    """Return the bulk actions that the actor may take; None if none."""
    choices = [Choice(action.name, action.label) for action in allowed_actions.in_bulk(actor)]
    address = reverse("jobs:operations")
    return Bulk(address, choices, address) if choices else None
