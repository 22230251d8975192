"""Which owners of an object the table of owners keeps: all but the controller, who has a column of the object's row."""

from __future__ import annotations

from kube.meta import Object
from kube.resources import EVENTS, Resource

NONE: frozenset[str] = frozenset()


def beyond_controller(resource: Resource, obj: Object) -> frozenset[str]:
    """Return the uids of the owners that the column does not say; an event's column says what it is about."""
    references = obj["metadata"].get("ownerReferences")
    if not references:
        return NONE
    is_event = resource.id == EVENTS.id
    if len(references) == 1 and references[0].get("controller") and not is_event:
        return NONE  # nearly all of them
    uids = frozenset(reference["uid"] for reference in references if reference.get("uid"))
    return uids if is_event else uids - {resource.index(obj).owner}
