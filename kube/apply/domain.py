"""Which part of an object a write is about: what managers can manage, and what only the server writes.

The main resource has everything but `status`, where that has a path of its
own; the status subresource has `status` alone (reference: kubernetes-api
§4.5). The server's own metadata belongs to nobody.
"""

from __future__ import annotations

from kube.meta import SERVER_METADATA, Object
from kube.resources import CREATOR_ANNOTATION, Resource

SERVERS = frozenset({"name", "namespace", "managedFields", *SERVER_METADATA})
_TYPE = ("apiVersion", "kind", "metadata")
# Who applies may say which object is meant.
PRECONDITIONS = ("uid", "resourceVersion")


def part(obj: Object, resource: Resource, subresource: str) -> Object:
    """Return the part of an object that managers share in a write; it has metadata unless it is the status."""
    if subresource == "status":
        return {"status": obj["status"]} if "status" in obj else {}
    full = obj.get("metadata")
    metadata = {k: v for k, v in full.items() if k not in SERVERS} if type(full) is dict else {}
    annotations = metadata.get("annotations")
    if type(annotations) is dict and CREATOR_ANNOTATION in annotations:
        metadata["annotations"] = {k: v for k, v in annotations.items() if k != CREATOR_ANNOTATION}
        if not metadata["annotations"]:
            del metadata["annotations"]
    rest = {k: v for k, v in obj.items() if k not in _TYPE}
    if resource.status_subresource:
        rest.pop("status", None)
    return {"metadata": metadata, **rest}


def empty(obj: Object) -> Object:
    """Return the part from which a new object starts: having a spec is nobody's merit."""
    return {key: {} for key in ("metadata", "spec", "status") if type(obj.get(key)) is dict}


def put(obj: Object, new: Object, resource: Resource, subresource: str) -> Object:
    """Return obj with another part in place of its own."""
    if subresource == "status":
        rest = {key: value for key, value in obj.items() if key != "status"}
        return {**rest, **new}
    before = obj.get("metadata") or {}
    metadata = {key: value for key, value in before.items() if key in SERVERS} | new.get("metadata", {})
    creator = (before.get("annotations") or {}).get(CREATOR_ANNOTATION)
    if creator:
        metadata["annotations"] = {**(metadata.get("annotations") or {}), CREATOR_ANNOTATION: creator}
    result = {"apiVersion": resource.api_version, "kind": resource.kind, **new, "metadata": metadata}
    if resource.status_subresource and "status" in obj:
        result["status"] = obj["status"]
    return result


def with_managed(obj: Object, managed: list[Object]) -> Object:
    """Return obj with these managedFields, none when they are empty."""
    metadata = {key: value for key, value in (obj.get("metadata") or {}).items() if key != "managedFields"}
    if managed:
        metadata["managedFields"] = managed
    return {**obj, "metadata": metadata}
