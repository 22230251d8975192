"""Where a waiting job stands in its queue, and who is before it, for its page."""

from __future__ import annotations

from typing import NamedTuple

from cluster import access
from cluster.api import backend
from cluster.runtime import registry
from cluster.store import Stored, store
from kube.volcano.pod_groups import job_of
from scheduler import waiting_lines


class Before(NamedTuple):
    """A job, or another pod group, that is before one: job is "" for a group without, priority the value of its class."""

    namespace: str
    name: str
    job: str
    priority: int


class Place(NamedTuple):
    """The number of a job among those that wait in its queue, of how many, and the nearest before it.

    others are those before it that are not named, be they further off or not for the reader's eyes.
    """

    queue: str
    number: int
    of: int
    before: list[Before]
    others: int


def of_group(group: Stored | None, visible: frozenset[str] | access.Everywhere) -> Place | None:
    """Return where a pod group stands; None when it does not wait, or another scheduler decides.

    visible are the namespaces whose jobs the reader may see.
    """
    if group is None or not backend.runs(registry.get("scheduler")):
        return None
    with store.reading() as head, waiting_lines.current(head) as lines:
        found = lines.place(group.key)
        queue = lines.queue_of(group.key)
    if found is None:
        return None
    named = [
        Before(each.namespace, each.name, job_of(each.name), priority)
        for each, priority in found.before
        if isinstance(visible, access.Everywhere) or each.namespace in visible
    ]
    return Place(queue, found.number, found.of, named, found.number - 1 - len(named))
