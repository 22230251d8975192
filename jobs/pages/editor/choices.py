"""What a reader may choose for a job: namespaces, queues with their room, priority classes; and saved templates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from django.urls import reverse

from cluster import access
from cluster.access import Actor, system_priorities
from cluster.store import store
from dashboard import cluster_usage, queue_room
from dashboard.parts import scope
from jobs.parameterized.declaration import ANNOTATION
from kube import lenient
from kube.resources import JOB_TEMPLATES, JOBS, NAMESPACES, PRIORITY_CLASSES, QUEUES

MOST = 500  # of each; others are typed
MAX_TEMPLATES = 5  # named on the page of a new job
NEWEST = 50  # of the templates, from which those are taken


class Choice(NamedTuple):
    """A value, its description, and why it cannot be chosen, "" if it can."""

    value: str
    description: str = ""
    refusal: str = ""


class SavedTemplate(NamedTuple):
    """A saved template, and the URL that begins a job with it."""

    namespace: str
    name: str
    url: str


def of(actor: Actor) -> dict[str, list[dict[str, str]]]:
    """Return the choices for the actor by the path of the job's field; those with a refusal come last."""
    with store.reading() as head:
        by_path = {
            "metadata.namespace": _namespaces(actor),
            "spec.queue": _queues(actor, head),
            "spec.priorityClassName": _priorities(actor),
        }
        ordered = {path: sorted(each, key=lambda choice: bool(choice.refusal)) for path, each in by_path.items()}
    return {path: [choice._asdict() for choice in choices[:MOST]] for path, choices in ordered.items()}


def _namespaces(actor: Actor) -> Iterator[Choice]:
    allowed = access.namespaces(actor, JOBS, "create")
    for stored in store.find(NAMESPACES):
        if isinstance(allowed, access.Everywhere) or stored.name in allowed:
            leaving = lenient.text(stored.object, "status", "phase") == "Terminating"
            yield Choice(stored.name, refusal="being deleted" if leaving else "")


def _queues(actor: Actor, head: int) -> Iterator[Choice]:
    if not access.allowed(actor, "list", QUEUES, ""):
        return
    waiting = queue_room.jobs_by_queue(access.namespaces(actor, JOBS), queue_room.WAITING)
    with cluster_usage.current(head) as picture:
        rooms = list(queue_room.rooms(picture, waiting))
    for room in rooms:
        yield Choice(room.name, str(room), room.refusal)


def _priorities(actor: Actor) -> Iterator[Choice]:
    if not access.allowed(actor, "list", PRIORITY_CLASSES, ""):
        return
    stored_classes = store.find(PRIORITY_CLASSES)
    classes = [stored.object for stored in stored_classes if system_priorities.may_use(actor, stored.name)]
    for each in sorted(classes, key=lambda each: -(lenient.whole(each, "value") or 0)):
        description = [f"priority {lenient.whole(each, 'value') or 0:,}", lenient.text(each, "description")]
        yield Choice(each["metadata"]["name"], " · ".join(filter(None, description)))


def saved_templates(actor: Actor) -> list[SavedTemplate]:
    """Return the newest templates whose jobs the actor may submit; one with parameters leads to their form."""
    visible = scope.namespaces_of("", access.namespaces(actor, JOB_TEMPLATES))
    newest = store.find(JOB_TEMPLATES, namespace=visible, order="-created", limit=NEWEST)
    allowed = access.namespaces(actor, JOBS, "create")
    usable = [each for each in newest if isinstance(allowed, access.Everywhere) or each.namespace in allowed]
    templates = []
    for each in usable[:MAX_TEMPLATES]:
        if lenient.text(each.object, "metadata", "annotations", ANNOTATION):
            url = reverse("jobs:template-kept", args=[each.namespace, each.name])
        else:
            url = f"{reverse('jobs:new')}?kept={each.namespace}/{each.name}"
        templates.append(SavedTemplate(each.namespace, each.name, url))
    return templates
