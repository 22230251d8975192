"""Stored objects that a reader may see: one object, or a page of one kind as a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cluster import access
from cluster.access import Actor
from cluster.store import Stored, store
from dashboard.parts import paging, scope
from dashboard.parts.table import Table, TableView
from kube.resources import Resource

PENDING = "Pending"


def read(actor: Actor, resource: Resource, namespace: str, name: str) -> Stored:
    """Return an object; raise Forbidden or NotFound if there is none to show."""
    access.require(actor, "get", resource, namespace, name)
    return store.get(resource, namespace, name)


def by_phase(counted: Mapping[str, int]) -> dict[str, int]:
    """Return counts by displayed phase: objects that no controller has seen yet have none, and are Pending."""
    counts: dict[str, int] = {}
    for phase, number in counted.items():
        counts[phase or PENDING] = counts.get(phase or PENDING, 0) + number
    return counts


def of_phase(phase: str) -> str | tuple[str, str] | None:
    """Return the store's filter for a displayed phase; None for "", which is any."""
    return (PENDING, "") if phase == PENDING else phase or None


def page_of(view: TableView, counts: Mapping[str, int]) -> paging.Page:
    """Return the page that a view requests, of the rows that have its phase."""
    phase = view.get("phase")
    return paging.Page(view.page, view.per, counts.get(phase, 0) if phase else sum(counts.values()))


def table(
    actor: Actor,
    view: TableView,
    resource: Resource,
    row: Callable[[Stored], str],
    *,
    name: str,
    empty: Mapping[str, str],
    phases: Sequence[str] = (),
    **filters: Any,
) -> Table:
    """Return a page of a view; `name` begins the ids of rows, `filters` apply besides namespace, text and phase."""
    visible = access.namespaces(actor, resource)
    chosen = view.get("namespace")
    filters |= {"namespace": scope.namespaces_of(chosen, visible), "text": view.q or None}
    with store.reading() as head:
        counts = by_phase(store.count(resource, **filters))
        page = page_of(view, counts)
        page_objects = store.find(resource, phase=of_phase(view.get("phase")), order=view.order, **page.span, **filters)
        choices = sorted(store.count(resource, by="namespace", namespace=scope.namespaces_of("", visible)))
    return Table(
        view=view,
        rows={f"{name}-{stored.uid}": row(stored) for stored in page_objects},
        page=page,
        watches=scope.watches(resource.id, chosen, visible),
        counts=counts if phases else None,
        phases=phases,
        choices={"namespace": choices},
        revision=head,
        empty=empty,
    )
