"""The page of events, and the events about one object."""

from __future__ import annotations

from typing import Any, NamedTuple

from django.template.loader import render_to_string
from django.urls import NoReverseMatch, reverse

from cluster import access
from cluster.access import Actor
from cluster.store import Stored, store
from dashboard import live
from dashboard.live import Parts, TopicRequest, Watch
from dashboard.live.topics import address, parse
from dashboard.parts import paging, phases
from dashboard.parts.filters import Filter
from dashboard.parts.scope import namespaces_of, watches
from dashboard.parts.table import Column, Spec, Table, TableView
from kube.errors import Forbidden
from kube.kinds.core import Event
from kube.resources import EVENTS

SPEC = Spec(
    name="dashboard:events",
    columns=(
        Column("Type", sort="phase"),
        Column("Reason"),
        Column("Object", sort="name", kind="name"),
        Column("Message", kind="message"),
        Column("Times", kind="number", priority="low"),
        Column("Last seen", sort="revision", kind="time"),
    ),
    filters=(Filter("phase", "Type", choices=phases.EVENT_TYPES, hidden=True), Filter("namespace", "Namespace")),
    order="-revision",
    search="Part of the object's name",
    noun="event",
    plural="events",
)
EMPTY = {
    "symbol": "activity",
    "title": "Nothing has happened yet",
    "text": "Controllers, scheduler and nodes report here what they do and what goes wrong. Run a job to see it.",
}


MAX_ABOUT = 20


class EventRow(NamedTuple):
    """An event as lists show it; `url` is the page of its object, "" if that has none."""

    id: str
    type: str
    reason: str
    message: str
    kind: str
    namespace: str
    name: str
    times: int
    seen: str
    source: str
    url: str


@live.topic(SPEC.name)
def event_list_topic(request: TopicRequest) -> Parts:
    """The list of events."""
    return event_table(request.actor, SPEC.read(request.params)).parts()


def event_table(actor: Actor, view: TableView) -> Table:
    """Return a page of the events that the actor may see."""
    visible = access.namespaces(actor, EVENTS)
    namespace = namespaces_of(view.get("namespace"), visible)
    filters: dict[str, Any] = {"namespace": namespace, "text": view.q or None}
    with store.reading() as head:
        counts = store.count(EVENTS, **filters)
        kind = view.get("phase")
        page = paging.Page(view.page, view.per, counts.get(kind, 0) if kind else sum(counts.values()))
        events = store.find(EVENTS, phase=kind or None, order=view.sort, **page.span, **filters)
        choices = sorted(store.count(EVENTS, by="namespace", namespace=namespaces_of("", visible)))
    return Table(
        view=view,
        rows={f"event-{s.uid}": render_to_string("dashboard/_event_row.html", {"event": event_row(s)}) for s in events},
        page=page,
        watches=watches(EVENTS.id, view.get("namespace"), visible),
        counts=counts,
        phases=phases.EVENT_TYPES,
        choices={"namespace": choices},
        revision=head,
        empty=EMPTY,
    )


@live.topic("dashboard:events-about")
def events_about_topic(request: TopicRequest) -> Parts:
    """The newest events about one object, for readers who may list events in their namespace."""
    namespace, uid = (request.params.get(each, "") for each in ("namespace", "uid"))
    access.require(request.actor, "list", EVENTS, namespace)
    events = store.find(EVENTS, namespace=namespace, owner=uid, order="-revision", limit=MAX_ABOUT)
    html = render_to_string("dashboard/_event_list.html", {"events": [event_row(stored) for stored in events]})
    return Parts({"events-about": html}, watches=[Watch(EVENTS.id, namespace, owner=uid)])


def about(actor: Actor, uid: str, namespace: str = "default") -> dict[str, Any]:
    """Return the context of "dashboard/_events_about.html"; events about cluster-scoped objects are in `default`."""
    topic = address("dashboard:events-about", {"namespace": namespace, "uid": uid})
    try:
        parts = events_about_topic(TopicRequest(actor, parse(topic)[1]))
    except Forbidden:
        return {"events": render_to_string("dashboard/_event_list.html")}
    return {"events": parts.html(parts.parts), "events_topic": topic}


def event_row(stored: Stored) -> EventRow:
    """Return an event as lists show it."""
    event = stored.read(Event)
    about = event.involved_object
    return EventRow(
        id=f"event-{stored.uid}",
        type=event.type or "Normal",
        reason=event.reason,
        message=event.message,
        kind=about.kind,
        namespace=about.namespace,
        name=about.name,
        times=event.times,
        seen=event.last_seen,
        source=event.source.get("component", "") or event.reporting_component,
        url=_address(about.kind, about.namespace, about.name),
    )


_PAGES = {
    "Job": ("jobs:detail", True),
    "CronJob": ("cronjobs:detail", True),
    "JobFlow": ("flows:detail", True),
    "Queue": ("queues:detail", False),
    "Node": ("dashboard:node", False),
}


def _address(kind: str, namespace: str, name: str) -> str:
    page, namespaced = _PAGES.get(kind, ("", False))
    try:
        return reverse(page, args=[namespace, name] if namespaced else [name]) if page else ""
    except NoReverseMatch:
        return ""
