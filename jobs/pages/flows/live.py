"""The topics of the pages of flows and job templates."""

from __future__ import annotations

from collections.abc import Callable

from django.template.loader import render_to_string

from cluster.access import Actor
from cluster.store import Stored
from dashboard import live
from dashboard.live import Parts, TopicRequest, Watch
from dashboard.parts.buttons import no_buttons
from jobs.pages.flows import listing
from kube.errors import NotFound
from kube.resources import JOB_FLOWS, JOB_TEMPLATES, Resource


@live.topic(listing.SPEC.name)
def flow_list(request: TopicRequest) -> Parts:
    """The list of flows."""
    return listing.table(request.actor, listing.SPEC.read(request.params)).parts()


@live.topic(listing.TEMPLATES_SPEC.name)
def template_list(request: TopicRequest) -> Parts:
    """The list of job templates."""
    return listing.template_table(request.actor, listing.TEMPLATES_SPEC.read(request.params)).parts()


@live.topic("flows:detail")
def flow_detail(request: TopicRequest) -> Parts:
    """One flow: what may be done with it, its facts, its graph and its jobs."""
    return _shown(request, JOB_FLOWS, listing.parts, "flow-head")


@live.topic("flows:template")
def template_detail(request: TopicRequest) -> Parts:
    """One job template: what may be done with it, its facts and its text."""
    return _shown(request, JOB_TEMPLATES, listing.template_parts, "template-head")


def _shown(request: TopicRequest, resource: Resource, parts: Callable[[Actor, Stored], Parts], head: str) -> Parts:
    """Return the parts of an object, or say that it was deleted while somebody looked at it."""
    place, name = (request.params.get(each, "") for each in ("namespace", "name"))
    try:
        return parts(request.actor, listing.read(request.actor, resource, place, name))
    except NotFound:
        gone = render_to_string("flows/_gone.html", {"id": head, "namespace": place, "name": name})
        actions = head.replace("-head", "-actions")
        return Parts({head: gone, actions: no_buttons(actions)}, watches=[Watch(resource.id, place, name)])
