"""Which object controls another one, as its owner references say."""

from __future__ import annotations

from typing import Any

from kube.kinds.meta import OwnerReference
from kube.meta import Object
from kube.resource import Resource


def controller_of(obj: Object) -> OwnerReference | None:
    """Return the owner reference of the object's controller, if it has one."""
    for reference in (obj.get("metadata") or {}).get("ownerReferences") or ():
        if reference.get("controller"):
            return OwnerReference(
                api_version=reference.get("apiVersion") or "",
                kind=reference.get("kind") or "",
                name=reference.get("name") or "",
                uid=reference.get("uid") or "",
                controller=True,
                block_owner_deletion=reference.get("blockOwnerDeletion"),
            )
    return None


def controller_reference(resource: Resource, name: str, uid: str) -> dict[str, Any]:
    """Return the owner reference by which an object names what controls it."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
