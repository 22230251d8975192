"""Events that people and programs write (§4.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kube import lenient
from kube.errors import Cause, invalid, required

if TYPE_CHECKING:
    from cluster.rules.view import View
    from kube.meta import Object

LONGEST_MESSAGE = 1024


def validate(event: Object, old: Object | None, view: View) -> list[Cause]:
    """Return what is wrong with an event: it lies where the object lies that it is about.

    What is about an object of no namespace lies in `default` (or `kube-system`).
    """
    about = lenient.mapping(event, "involvedObject")
    place, namespace = event["metadata"].get("namespace") or "", about.get("namespace") or ""
    causes: list[Cause] = []
    if not namespace:
        if place not in ("default", "kube-system"):
            causes.append(invalid("involvedObject.namespace", namespace, "does not match event.namespace"))
    elif namespace != place:
        causes.append(invalid("involvedObject.namespace", namespace, "does not match event.namespace"))
    if event.get("eventTime"):
        causes += _check_new_style(event)
    return causes


def _check_new_style(event: Object) -> list[Cause]:
    """An event with an eventTime says who reports it, and what was done."""
    fields = ("reportingComponent", "reportingInstance", "action", "reason")
    causes = [required(field) for field in fields if not event.get(field)]
    message = event.get("message") or ""
    if len(message) > LONGEST_MESSAGE:
        detail = f"can have at most {LONGEST_MESSAGE} characters"
        causes.append(invalid("message", "", detail))
    return causes
