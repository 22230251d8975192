"""The request to an API server for each write of a plan: pure functions."""

from __future__ import annotations

from typing import Any, NamedTuple

from cluster.remote.dispatch.order import key_of
from cluster.remote.http import paths
from cluster.remote.http.request import JSON, MANAGER, MEDIA_TYPES, delete_options
from cluster.writes import Create, Delete, Mirror, Patch, Update, Write
from kube import patch as patching
from kube.meta import Object
from kube.resources import PODS

SCHEDULED = "PodScheduled"


class Request(NamedTuple):
    """A request: method, path, body and how it is written."""

    method: str
    path: str
    body: Any = None
    media_type: str = JSON

    @property
    def query(self) -> dict[str, str]:
        """Who is noted to manage the fields that change."""
        return {"fieldManager": MANAGER} if self.method != "DELETE" else {}


def of(write: Write) -> Request:
    """Return the request that carries out a write; one of `settled`, so that only pods have patches of their status."""
    match write:
        case Create():
            resource, metadata = write.resource, write.object["metadata"]
            kind = {"apiVersion": resource.api_version, "kind": resource.kind}
            path = paths.collection(resource, metadata.get("namespace") or "")
            return Request("POST", path, {**kind, **write.object})
        case Update():
            return _update(write)
        case Patch(subresource="binding"):
            metadata = {"namespace": write.namespace, "name": write.name, "uid": write.uid}
            target = {"apiVersion": "v1", "kind": "Node", "name": write.patch["spec"]["nodeName"]}
            body = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
            return Request("POST", paths.one(write.resource, write.namespace, write.name, "binding"), body)
        case Patch():
            return _patch(write)
        case Delete():
            options = delete_options(write.uid, write.version, write.grace, write.propagation)
            return Request("DELETE", paths.one(write.resource, write.namespace, write.name), options)
        case Mirror():
            raise TypeError("What is mirrored comes from the cluster, and is not sent to it.")


def get_request(write: Write) -> Request:
    """Return the request that shows the object of a write as it is now."""
    _, namespace, name = key_of(write)
    return Request("GET", paths.one(write.resource, namespace, name))


def settled(write: Write, stored: Object | None) -> Write:
    """Return a write that says the same whenever it is sent: a patch of a status becomes the whole status.

    The controllers here are the only ones who write it, but that of a pod, of which a condition is sent alone.
    A merge patch could not be pinned to the object's uid: a status of a custom kind is taken whoever's it is.
    """
    if not isinstance(write, Patch) or write.subresource != "status" or write.resource == PODS:
        return write
    resource = write.resource
    metadata = {"namespace": write.namespace, "name": write.name, "uid": write.uid}
    if write.version:
        metadata["resourceVersion"] = write.version
    status = patching.merge((stored or {}).get("status") or {}, write.patch.get("status") or {})
    about = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
    return Update(resource, {**about, "status": status}, "status")


def _update(write: Update) -> Request:
    _, namespace, name = key_of(write)
    if write.subresource != "status":
        return Request("PUT", paths.one(write.resource, namespace, name, write.subresource), write.object)
    tests = [
        {"op": "test", "path": f"/metadata/{field}", "value": value}
        for field in ("uid", "resourceVersion")
        if (value := write.object["metadata"].get(field))
    ]
    change = [*tests, {"op": "add", "path": "/status", "value": write.object.get("status") or {}}]
    part = "status" if write.resource.status_subresource else ""
    return Request("PATCH", paths.one(write.resource, namespace, name, part), change, MEDIA_TYPES["json"])


def _patch(write: Patch) -> Request:
    path = paths.one(write.resource, write.namespace, write.name, write.subresource)
    pins = {"uid": write.uid, "resourceVersion": write.version}
    metadata = {**(write.patch.get("metadata") or {}), **{name: pin for name, pin in pins.items() if pin}}
    if write.subresource != "status":
        return Request("PATCH", path, {**write.patch, "metadata": metadata}, MEDIA_TYPES["merge"])
    # Of a pod's status others write the rest, and a list would be replaced whole by a merge patch.
    conditions = [each for each in write.patch["status"]["conditions"] if each.get("type") == SCHEDULED]
    body = {"metadata": metadata, "status": {"conditions": conditions}}
    return Request("PATCH", path, body, MEDIA_TYPES["strategic"])
