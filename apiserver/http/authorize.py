"""Authorization of requests: before they are handled, and again while a connection that they opened lasts."""

from __future__ import annotations

from cluster import access
from cluster.access import Actor, nodes
from cluster.api import rights
from cluster.api.cluster_view import ClusterView
from kube.resources import Resource


def require(
    actor: Actor, verb: str, target: str, resource: Resource, namespace: str, name: str, fields: str = ""
) -> None:
    """Raise Forbidden unless the actor may do it, where need be because the object is the actor's own.

    `fields` is the field selector of the request.
    """
    if node := access.node_of(actor):
        nodes.require(node, verb, target, namespace, name, fields)
        return
    view = ClusterView()
    if not access.allowed(actor, verb, target, namespace):
        owner = rights.owner_of_name(resource, namespace, name, view) if name and resource.stored else None
        access.require(actor, verb, target, namespace, name, owner=owner)
    if target in rights.JOINING:
        rights.check_joining(actor, namespace, name, view)
