"""Fields that only the server writes, and the check that nobody overwrites what others have changed meanwhile."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from cluster.access.ownership import creator_of
from cluster.api import audit_trail
from cluster.store import Stored
from kube import errors
from kube.errors import BadRequest, Conflict
from kube.meta import Object
from kube.resources import CREATOR_ANNOTATION, Resource


def servers_fields(resource: Resource, new: Object, old: Object, subresource: str) -> None:
    """Put back what only the server writes: who created the object and, outside the subresource, its status."""
    creator = creator_of(old)
    set_creator(new, creator)
    for field in ("name", "namespace", "uid"):
        if field != "uid" or not new["metadata"].get("uid"):
            new["metadata"][field] = old["metadata"].get(field, "")
    if not resource.namespaced:
        new["metadata"].pop("namespace", None)
    if resource.status_subresource and not subresource:
        new.pop("status", None)
        if "status" in old:
            new["status"] = old["status"]


def set_creator(obj: Object, name: str | None) -> None:
    """Note who created an object, in place; None for the system."""
    annotations = obj["metadata"].get("annotations") or {}
    annotations.pop(CREATOR_ANNOTATION, None)
    if name:
        annotations[CREATOR_ANNOTATION] = name
    if annotations:
        obj["metadata"]["annotations"] = annotations
    else:
        obj["metadata"].pop("annotations", None)


def check_fresh(resource: Resource, old: Stored, new: Object) -> None:
    """Raise Conflict when an object was made from another version than the stored one."""
    meta = new.get("metadata")
    version = str((meta.get("resourceVersion") if isinstance(meta, dict) else "") or "")
    if not version or version == old.version:
        return
    if not version.isdecimal():
        raise BadRequest(f"resourceVersion is {errors.quoted(version)}; it is the number that the server gave.")
    who = audit_trail.last_writer(resource, old)
    raise Conflict.of(
        resource.id,
        old.name,
        "the object has been modified; please apply your changes to the latest version and try again."
        f" It was changed{f' by {who}' if who else ''} after you read it"
        f" (you have version {version}, the newest is {old.version}).",
    )


def as_dry(stored: Stored, old: Stored | None) -> Stored:
    """Return the outcome of a dry run with the revision and version that are stored; none for an object that is not."""
    meta = {key: value for key, value in stored.object["metadata"].items() if key != "resourceVersion"}
    if old is not None:
        meta["resourceVersion"] = old.version
    body = msgspec.json.encode({**stored.object, "metadata": meta})
    return replace(stored, revision=old.revision if old else 0, body=body)
