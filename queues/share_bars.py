"""Fair shares of queues, each as a text and a bar; a queue's own page has more (`queues.share_table`)."""

from __future__ import annotations

from typing import NamedTuple

from django.utils.safestring import SafeString

from dashboard.cluster_usage import Picture, QueueFacts, amounts_of, moment
from dashboard.parts import svg
from kube import amounts
from kube.kinds.scheduling import DequeueStrategy
from queues.rules.shares import FairShare, fair_shares
from scheduler.records.records import Queue


class ShareBar(NamedTuple):
    """A bar and its text."""

    text: str
    bar: SafeString


def of_queues(picture: Picture) -> dict[str, FairShare]:
    """Return the fair share of each queue of the picture, by name."""
    used = dict(picture.in_queue)
    foreign = picture.used()
    for held in used.values():
        foreign = amounts.subtract(foreign, held)
    queues = {name: _record(facts) for name, facts in picture.queues.items()}
    return fair_shares(queues, picture.capacity(), foreign, used)


def summary(share: FairShare) -> ShareBar:
    """Return the use of the resource with the largest part of its fair share, for a row of the list."""
    if share.part is None:
        return ShareBar("none", svg.bar(0, 0, "Fair share: none"))
    text = f"{share.part:.0%}"
    borrowed = share.borrowed(share.resource)
    if borrowed:
        text += f", borrows {amounts.about(share.resource, borrowed)}"
    own = share.used.get(share.resource, 0) - borrowed
    pieces = [svg.Share(own, "blue", "within its share"), svg.Share(borrowed, "amber", "borrowed")]
    return ShareBar(text, svg.stack(pieces, share.deserved.get(share.resource, 0), f"Fair share: {text}"))


def _record(facts: QueueFacts) -> Queue:
    spec = facts.queue.spec
    return Queue(
        facts.name,
        facts.state,
        amounts_of(spec.capability),
        spec.parent,
        guarantee=amounts_of(spec.guarantee.resource),
        deserved=amounts_of(spec.deserved),
        weight=max(spec.weight, 1),
        priority=spec.priority,
        created=moment(facts.created),
        strategy=spec.dequeue_strategy or DequeueStrategy.TRAVERSE,
    )
