"""A request as data, who sends it, and what its sender knows of the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from kube.meta import Object
from kube.resources import Resource

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"

# Who there is, and the role that each of them holds in every namespace.
ROLES = {"admin": "administrator", "alice": "submitter", "bob": "submitter", "olga": "operator", "vera": "viewer"}
SUBMITTERS = ("alice", "bob")


class Request(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One HTTP request, as data: what a story of the simulation keeps and replays."""

    actor: str
    method: str
    path: str
    body: Any = None
    content_type: str = "application/json"
    wish: str = ""  # in plain words, for the transcript


class Picture(Protocol):
    """What a client knows of the cluster: what its watch has shown, which may be old."""

    def objects(self, resource: str) -> Mapping[tuple[str, str], Object]:
        """Return the objects of a resource (an id of `kube.resources`) by namespace and name."""

    @property
    def now(self) -> int:
        """Milliseconds since the epoch."""


def path(resource: Resource, namespace: str = "", name: str = "", part: str = "", **query: str) -> str:
    """Return where the API serves a resource's objects, one of them, or a part of it."""
    root = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
    scope = f"namespaces/{namespace}" if resource.namespaced and namespace else ""
    steps = "/".join(step for step in (root, scope, resource.plural, name, part) if step)
    return f"{steps}?{'&'.join(f'{key}={value}' for key, value in query.items())}" if query else steps


def path_of(resource: Resource, obj: Object, part: str = "", **query: str) -> str:
    """Return where the API serves an object that is known."""
    metadata = obj["metadata"]
    return path(resource, metadata.get("namespace", ""), metadata["name"], part, **query)


def create(actor: str, resource: Resource, body: Object, wish: str, **query: str) -> Request:
    """Return the request that creates an object."""
    body = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
    where = path(resource, body["metadata"].get("namespace", ""), **query)
    return Request(actor=actor, method="POST", path=where, body=body, wish=wish)


def replace(actor: str, resource: Resource, obj: Object, wish: str) -> Request:
    """Return the request that replaces an object by what it has become."""
    return Request(actor=actor, method="PUT", path=path_of(resource, obj), body=obj, wish=wish)


def patch(
    actor: str, resource: Resource, obj: Object, change: Any, wish: str, content_type: str = MERGE, **query: str
) -> Request:
    """Return the request that patches an object."""
    where = path_of(resource, obj, **query)
    return Request(actor=actor, method="PATCH", path=where, body=change, content_type=content_type, wish=wish)


def delete(actor: str, resource: Resource, obj: Object, wish: str, **options: Any) -> Request:
    """Return the request that deletes an object; options are those of DeleteOptions."""
    body = {"apiVersion": "v1", "kind": "DeleteOptions", **options} if options else None
    return Request(actor=actor, method="DELETE", path=path_of(resource, obj), body=body, wish=wish)


def name_of(obj: Object) -> str:
    """Return an object's name."""
    return str(obj["metadata"]["name"])


def version_of(obj: Object) -> str:
    """Return the resourceVersion that an object was seen with."""
    return str(obj["metadata"].get("resourceVersion", ""))
