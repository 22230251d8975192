"""Whether who asks may do it: asked before a request is handled, and again while a watch lives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cluster import access
from cluster.access import nodes
from cluster.api import rights
from cluster.api.cluster_view import ClusterView

if TYPE_CHECKING:
    from apiserver.http.request import Request
    from cluster.access import Actor
    from kube.resources import Resource


def require(
    actor: Actor, verb: str, target: str, resource: Resource, place: str, name: str, fields: str = ""
) -> None:
    """Raise Forbidden unless the actor may do it, where need be because the object is the actor's own.

    `fields` is the field selector by which what is asked for is limited.
    """
    if node := access.node_of(actor):
        nodes.require(node, verb, target, place, name, fields)
        return
    if access.allowed(actor, verb, target, place):
        return
    owner = None
    if name and resource.stored:
        owner = rights.owner_named(resource, place, name, ClusterView())
    access.require(actor, verb, target, place, name, owner=owner)


def fields_of(request: Request) -> str:
    """Return the field selector of a request."""
    return request.query.get("fieldSelector", "")
