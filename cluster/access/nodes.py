"""Whether a node may do something: the conditions of `cluster.rules.node.node_rights`, looked up in the store.

Every request of a node comes by here, and by nothing else: it has no roles.
"""

from __future__ import annotations

from cluster import access
from cluster.access.authorizer import NODE, cannot, refused
from cluster.rules.node import node_rights
from cluster.rules.node.node_rights import If
from cluster.store import store
from kube.errors import Forbidden
from kube.meta import Object
from kube.resources import NODES, PODS, Resource


def may(node: str, verb: str, target: str, namespace: str, name: str, fields: str = "") -> bool:
    """Say whether a node may do a verb to what has a name, or lies in a selection by fields; events are judged whole."""
    match node_rights.condition(verb, target):
        case If.OWN:
            return node_rights.is_own(node, target, namespace, name)
        case If.BOUND:
            return is_bound(node, namespace, name)
        case If.SELECTED:
            return node_rights.selects_own(node, fields)
        case If.MENTIONED:
            pods = store.find(PODS, node=node, namespace=namespace) if name else ()
            return any((target, name) in node_rights.mentions(pod.object) for pod in pods)
    return False


def require(node: str, verb: str, target: str, namespace: str, name: str, fields: str = "") -> None:
    """Raise Forbidden unless `may`, or the question is one that every authenticated user may ask."""
    if access.allowed(access.Actor(NODE + node), verb, target, namespace):
        return
    if not may(node, verb, target, namespace, name, fields):
        raise _forbidden(node, verb, target, namespace, name)


def check_create(node: str, resource: Resource, obj: Object) -> None:
    """Raise Forbidden unless a node may create an object."""
    _check(node, "create", resource.id, obj)
    if resource is NODES:
        _check_node(node, {}, obj)


def check_change(node: str, verb: str, resource: Resource, old: Object, new: Object | None, part: str) -> None:
    """Raise Forbidden unless a node may turn old into new, which is None for what has no good shape."""
    target = f"{resource.id}/{part}" if part else resource.id
    for each in (old, new):
        if each is not None:
            _check(node, verb, target, each)
    if resource is NODES and new is not None:
        _check_node(node, old, new)


def check_delete(node: str, verb: str, resource: Resource, old: Object) -> None:
    """Raise Forbidden unless a node may delete an object."""
    _check(node, verb, resource.id, old)


def is_bound(node: str, namespace: str, name: str, uid: str = "") -> bool:
    """Whether there is a pod of a name that is bound to a node, and has a uid where one is given."""
    pod = store.get_or_none(PODS, namespace, name)
    return pod is not None and uid in ("", pod.uid) and node_rights.is_bound(node, pod.object)


def _check(node: str, verb: str, target: str, obj: Object) -> None:
    """Raise Forbidden unless a node may do a verb to an object that is at hand."""
    meta = obj["metadata"]
    namespace, name = meta.get("namespace") or "", meta.get("name") or ""
    match node_rights.condition(verb, target):
        case If.ABOUT:
            is_free = is_bound(node, *node_rights.about(obj))
        case If.BOUND:
            is_free = node_rights.is_bound(node, obj)
        case _:
            is_free = may(node, verb, target, namespace, name)
    if not is_free:
        raise _forbidden(node, verb, target, namespace, name)


def _check_node(node: str, old: Object, new: Object) -> None:
    if why := node_rights.refusal(node, old, new):
        raise Forbidden.of(NODES.id, node, why)


def _forbidden(node: str, verb: str, target: str, namespace: str, name: str) -> Forbidden:
    text = cannot(NODE + node, verb, target, namespace, name)
    return refused(f"{text}: the node {node} is not responsible for it.", target, name)
