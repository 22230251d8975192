"""The topics of the pages of sweeps."""

from __future__ import annotations

from django.template.loader import render_to_string

from dashboard import live
from dashboard.live import Parts, TopicRequest, Watch
from dashboard.parts.buttons import no_buttons
from jobs.pages.sweeps import listing
from jobs.sweeps import record
from kube.errors import NotFound
from kube.resources import CONFIGMAPS


@live.topic(listing.SPEC.name)
def sweep_list(request: TopicRequest) -> Parts:
    return listing.table(request.actor, listing.SPEC.read(request.params)).parts()


@live.topic(listing.DETAIL)
def sweep_outcomes(request: TopicRequest) -> Parts:
    """The jobs of a sweep, as a grid or in rows, with their counts."""
    try:
        stored, found = listing.read(request.actor, *_key(request))
    except NotFound:
        return Parts({}, watches=_watch(request))
    table, _ = listing.outcomes_of(stored, found, request.params)
    return table.parts()


@live.topic("sweeps:head")
def sweep_head(request: TopicRequest) -> Parts:
    """What may be done with a sweep, and its facts; or that it was deleted while somebody looked at it."""
    namespace, name = _key(request)
    try:
        parts = listing.head(request.actor, *listing.read(request.actor, namespace, name))
    except NotFound:
        gone = render_to_string("sweeps/_gone.html", {"namespace": namespace, "name": name})
        parts = {"sweep-head": gone, "sweep-actions": no_buttons("sweep-actions")}
    return Parts(parts, watches=_watch(request))


def _key(request: TopicRequest) -> tuple[str, str]:
    return request.params.get("namespace", ""), request.params.get("name", "")


def _watch(request: TopicRequest) -> list[Watch]:
    namespace, name = _key(request)
    return [Watch(CONFIGMAPS.id, namespace, record.holder_of(name))]
