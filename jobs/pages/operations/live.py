"""What a bulk operation shows live, and what tables of jobs offer to do with many of them."""

from __future__ import annotations

from django.urls import reverse

from cluster.access import Actor
from dashboard import live
from dashboard.live import Parts, TopicRequest
from dashboard.parts import bulk
from dashboard.parts.bulk import Bulk, Choice
from jobs.operations import allowed_actions
from jobs.pages.operations import listing
from jobs.pages.operations.listing import Shown
from kube.errors import NotFound
from kube.resources import JOBS

MOST_DIGITS = 18


@live.topic(listing.SPEC.name)
def operation(request: TopicRequest) -> Parts:
    """How far a bulk operation is, and the results of its jobs."""
    number = request.params.get("number", "")
    if not number.isascii() or not number.isdigit() or len(number) > MOST_DIGITS:
        raise NotFound(f"There is no bulk operation {number[:40]}.")
    return Shown.of(request.actor, int(number)).table(listing.SPEC.read(request.params)).parts()


@bulk.source(JOBS.id)
def offer(actor: Actor) -> Bulk | None:
    """Return the actions that the actor may do with many jobs."""
    choices = [Choice(action.name, action.label) for action in allowed_actions.in_bulk(actor)]
    address = reverse("jobs:operations")
    return Bulk(address, choices, address) if choices else None
