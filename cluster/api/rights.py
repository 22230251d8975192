"""Which right a change needs: that depends on whose object it is, and on what is changed.

Rules beyond the table of `cluster.access.roles`:

* What a job's controller made (pods, the pod group, claims) belongs to who
  created the job. The controller notes that name on it, for when the job is gone.
* A Command counts as a change of its target, which must exist: for a job it
  needs the right on that job, for a queue the right to open and close queues.
* An update of a queue that changes at most `spec.state` is opening or closing
  it, which operators may do.
* A new pod that names its node asks for the right to bind pods.
* Who decides what runs in a pod, by exec, attach, port-forward or a change of what it is made from, has a hand in it
  (`cluster.access.makers`): he must be allowed to make it himself, with the paths that it mounts, and on a node
  without a wall.
* The ConfigMap that configures the scheduler decides about everybody's jobs, so it asks for more than other
  ConfigMaps of its namespace, whoever made it.
* Priority classes of the system's own are for administrators of all namespaces (`cluster.access.system_priorities`).
* A node may do what `cluster.access.nodes` says, and has no roles.
* Naming an owner makes an object part of it, so it needs the right to update
  the owner (Kubernetes: OwnerReferencesPermissionEnforcement). A Command may
  name its target without it. Where the cluster decides about the owner, its own
  admission sees to that.
"""

from __future__ import annotations

from collections.abc import Sequence

from cluster import access
from cluster.access import Actor, hostpaths, makers, nodes, system_priorities
from cluster.access.ownership import creator_of, line, referred
from cluster.api import metadata, walls
from cluster.api.cluster_view import ClusterView
from cluster.rules.node import node_walls
from cluster.rules.node.node_walls import NodeWall
from kube import lenient, resources
from kube.errors import Forbidden, Invalid, NotFound, forbidden
from kube.meta import Object
from kube.resources import Resource
from kube.volcano import scheduler_configuration

QUEUE_STATE = f"{resources.QUEUES.id}/state"
BINDING = f"{resources.PODS.id}/binding"
SCHEDULER = f"{resources.CONFIGMAPS.id}/scheduler"
JOINING = frozenset(f"{resources.PODS.id}/{each}" for each in ("exec", "attach", "portforward"))


def owner_of(obj: Object, view: ClusterView) -> str | None:
    """Return the owner of an object: who created the topmost of its controllers that exists."""
    return creator_of([each for each in line(obj, view.get) if each is not None][-1])


def owner_of_name(resource: Resource, namespace: str, name: str, view: ClusterView) -> str | None:
    """Return the owner of the object of a name; None also where there is no such object."""
    obj = view.get(resource, namespace if resource.namespaced else "", name)
    return owner_of(obj, view) if obj else None


def right_namespace(resource: Resource, namespace: str, name: str) -> str:
    """Return the namespace in which a right on the object of a name is looked up: a Namespace lies in itself."""
    if resource is resources.NAMESPACES:
        return name
    return namespace if resource.namespaced else ""


def right_namespace_of(resource: Resource, obj: Object) -> str:
    """Return the namespace in which a right on an object is looked up, as `right_namespace`."""
    return right_namespace(resource, obj["metadata"].get("namespace") or "", metadata.name_of(obj))


def check_create(actor: Actor, resource: Resource, obj: Object, view: ClusterView) -> None:
    """Raise Forbidden unless the actor may create a well-shaped object, Invalid where that goes for one field."""
    if access.is_system(actor):
        return
    if node := access.node_of(actor):
        nodes.check_create(node, resource, obj)
        _check_owners(actor, obj, (), view)
        return
    namespace, name = right_namespace_of(resource, obj), metadata.name_of(obj)
    target = None
    if resource is resources.COMMANDS:
        target = _check_command(actor, obj, namespace, view)
    else:
        access.require(actor, "create", resource, namespace, name, owner=actor.name)
        hostpaths.check_create(actor, resource, obj)
        system_priorities.check_create(actor, resource, obj)
    _check_configuration(actor, "create", resource, namespace, name)
    # Choosing a pod's node past the scheduler is binding it.
    is_bound = resource is resources.PODS and lenient.text(obj, "spec", "nodeName")
    if is_bound and not access.allowed(actor, "create", BINDING, namespace):
        detail = "the scheduler sets it when there is room; choose nodes with nodeSelector."
        raise Invalid.of(resources.PODS.group_kind, name, [forbidden("spec.nodeName", detail)])
    _check_owners(actor, obj, (), view, free=target)


def _check_command(actor: Actor, obj: Object, namespace: str, view: ClusterView) -> Object | None:
    """Return the target, None for one of a kind that is not served; NotFound when there is none, for who may know."""
    target = obj.get("target") or {}
    name = target.get("name") or ""
    resource = resources.by_kind(target.get("apiVersion") or "", target.get("kind") or "")
    existing = referred(target, namespace, view.get)
    gone = resource if existing is None else None
    if gone is None or not access.allowed(actor, "get", gone, namespace if gone.namespaced else ""):
        if resource is resources.QUEUES:
            access.require(actor, "update", QUEUE_STATE, "", name)
        else:
            owner = owner_of(existing, view) if existing else None
            access.require(actor, "create", resources.COMMANDS, namespace, metadata.name_of(obj), owner=owner)
    if gone is not None:
        raise NotFound.of(gone.id, name)
    return existing


def check_change(
    actor: Actor, verb: str, resource: Resource, old: Object, new: Object | None, subresource: str, view: ClusterView
) -> None:
    """Raise Forbidden unless the actor may turn old into new, which is None for what has no good shape."""
    if access.is_system(actor):
        return
    old_references = old["metadata"].get("ownerReferences") or ()
    if node := access.node_of(actor):
        nodes.check_change(node, verb, resource, old, new, subresource)
        _check_owners(actor, new or {"metadata": {}}, old_references, view)
        return
    target = f"{resource.id}/{subresource}" if subresource else resource.id
    if resource is resources.QUEUES and not subresource and new and _at_most_state_differs(old, new):
        target = QUEUE_STATE
    namespace, name = right_namespace_of(resource, old), metadata.name_of(old)
    access.require(actor, verb, target, namespace, name, owner=owner_of(old, view))
    _check_configuration(actor, verb, resource, namespace, name)
    if new is not None:
        if makers.has_a_hand(old, new):
            hostpaths.check_create(actor, resource, new)
            if resource in walls.RUNNING:
                _check_walls(actor, resource, old, walls.reported(), view)
        system_priorities.check_change(actor, resource, old, new)
        _check_owners(actor, new, old_references, view)


def check_joining(actor: Actor, namespace: str, name: str, view: ClusterView) -> None:
    """Raise Forbidden for exec, attach and port-forward in a pod that the actor might not have made."""
    if (pod := view.get(resources.PODS, namespace, name)) is None:
        return
    hostpaths.check_create(actor, resources.PODS, pod)
    node = view.get(resources.NODES, "", lenient.text(pod, "spec", "nodeName"))
    if node is not None and (wall := node_walls.read(node)) is not None:
        _check_walls(actor, resources.PODS, pod, [wall], view)


def _check_walls(
    actor: Actor, resource: Resource, obj: Object, reported: Sequence[NodeWall], view: ClusterView
) -> None:
    """Raise Forbidden for a hand in what may run on a node without a wall because an administrator made it."""
    bare = next(filter(walls.is_for_administrators, reported), None)
    if bare and not makers.is_administrator(actor) and makers.is_administrators(owner_of(obj, view)):
        detail = f"the node {bare.node} has no wall round pods. {walls.who_may(bare)}"
        raise Forbidden.of(resource.id, metadata.name_of(obj), detail)


def check_delete(actor: Actor, verb: str, resource: Resource, old: Object, view: ClusterView) -> None:
    """Raise Forbidden unless the actor may delete a stored object."""
    if node := access.node_of(actor):
        nodes.check_delete(node, verb, resource, old)
        return
    namespace, name = right_namespace_of(resource, old), metadata.name_of(old)
    access.require(actor, verb, resource, namespace, name, owner=owner_of(old, view))
    _check_configuration(actor, verb, resource, namespace, name)


def configuring() -> Resource | str:
    """Return on what the scheduler's configuration takes a right, beside that on ConfigMaps; nothing more where the cluster decides."""
    return resources.CONFIGMAPS if access.decides_elsewhere(resources.CONFIGMAPS) else SCHEDULER


def _check_configuration(actor: Actor, verb: str, resource: Resource, namespace: str, name: str) -> None:
    """Raise Forbidden where the object configures the scheduler and that takes a right of its own."""
    if scheduler_configuration.is_configuration(resource, namespace, name):
        access.require(actor, verb, configuring(), namespace, name)


def _at_most_state_differs(old: Object, new: Object) -> bool:
    """Whether a queue is opened, closed, or left as it is: saying the same again takes no other right."""
    before, after = ({**(queue.get("spec") or {}), "state": None} for queue in (old, new))
    was, now = old["metadata"], new.get("metadata") or {}
    fields = ("labels", "annotations", "finalizers", "ownerReferences")  # of which a client may change something
    return before == after and all((was.get(field) or None) == (now.get(field) or None) for field in fields)


def _check_owners(
    actor: Actor, obj: Object, old_references: Sequence[Object], view: ClusterView, free: Object | None = None
) -> None:
    """Raise Forbidden unless the actor may change every owner that is new; `free` may be named by anybody."""
    namespace = obj["metadata"].get("namespace") or ""
    uids = {reference.get("uid") for reference in old_references}
    if free is not None:
        uids.add(free["metadata"]["uid"])
    for reference in obj["metadata"].get("ownerReferences") or ():
        if reference.get("uid") in uids:
            continue
        resource = resources.by_kind(reference.get("apiVersion") or "", reference.get("kind") or "")
        owner = referred(reference, namespace, view.get)
        if resource is not None and access.decides_elsewhere(resource):
            continue
        if resource is None or owner is None:
            continue  # Nothing that could be harmed; the garbage collector sees to references that dangle.
        owner_namespace = right_namespace_of(resource, owner)
        access.require(actor, "update", resource, owner_namespace, metadata.name_of(owner), owner=owner_of(owner, view))
