"""Who created an object, and what controls it: up the controllers, as far as they are there."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kube import resources
from kube.meta import Object
from kube.resources import CREATOR_ANNOTATION, Resource

OWNERS_MOST = 8  # from a pod up to who asked for it
Get = Callable[["Resource", str, str], "Object | None"]  # kind, namespace and name → the object


def creator_of(obj: Object) -> str | None:
    """Return who created an object, as the server noted it; None for the system."""
    annotations = obj["metadata"].get("annotations") or {}
    return annotations.get(CREATOR_ANNOTATION) or None


def line(obj: Object, get: Get) -> Iterator[Object | None]:
    """Yield an object, its controller, and so on up; None at the end where a controller does not exist any more."""
    yield obj
    for _ in range(OWNERS_MOST):
        meta = obj["metadata"]
        reference = next((one for one in meta.get("ownerReferences") or () if one.get("controller")), None)
        if reference is None:
            return
        owner = referred(reference, meta.get("namespace") or "", get)
        yield owner
        if owner is None:
            return
        obj = owner
    yield None


def referred(reference: Object, namespace: str, get: Get) -> Object | None:
    """Return the object that a reference names, None when there is none with that uid."""
    resource = resources.by_kind(reference.get("apiVersion") or "", reference.get("kind") or "")
    if resource is None:
        return None
    obj = get(resource, namespace if resource.namespaced else "", reference.get("name") or "")
    uid = reference.get("uid")
    return obj if obj and uid in (None, "", obj["metadata"]["uid"]) else None
