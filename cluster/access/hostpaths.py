"""Who may mount directories of the machine into a pod.

Administrators of everything may mount any that is not the cluster's own;
everybody else those below the directories of VOLCANO_UI_HOST_PATHS, of which
there are none unless it is set. The door refuses what it can tell from the
text of a path. The node asks anew before it starts a container, because roles
change and controllers make pods, and judges the directory that it opened.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib.auth import get_user_model

from cluster import access
from cluster.access.ownership import creator_of, line
from cluster.store import store
from kube import lenient
from kube.errors import Forbidden, NotFound

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.access.authorizer import Actor
    from kube.kinds.core import Pod
    from kube.meta import Object
    from kube.resources import Resource

EVERYTHING = ("/",)


def remedy() -> str:
    """Return in words who may mount what, and what others can do."""
    below = " or ".join(settings.HOST_PATHS)
    rule = f"directories of this machine only below {below}" if below else "no directories of this machine"
    return (
        f"Pods may mount {rule}"
        ", except those of administrators of all namespaces; use a persistentVolumeClaim, "
        "or ask an administrator to add the directory to VOLCANO_UI_HOST_PATHS."
    )


def check_create(actor: Actor, resource: Resource, obj: Object) -> None:
    """Raise Forbidden for a pod, or an object with a pod template, with a path that its creator may not mount."""
    for path in _paths(obj):
        if not _lies_below(path, settings.HOST_PATHS) and not is_administrator(actor):
            name = lenient.text(obj, "metadata", "name")
            raise Forbidden.of(resource.id, name, f'hostPath "{path}" is not allowed. {remedy()}')


def within(pod: Pod) -> tuple[str, ...]:
    """Return the directories below which a pod may mount paths of this machine.

    Everybody who had a hand in it must be allowed: who made it, and who made
    what controls it. A pod that names nobody may mount what everybody may: who
    takes the owner off a pod must not gain by it.
    """
    people = set(_people(pod))
    return EVERYTHING if people and all(map(_may_everything, people)) else tuple(settings.HOST_PATHS)


def is_administrator(actor: Actor) -> bool:
    """Say whether somebody is an administrator of all namespaces."""
    return (
        access.is_system(actor)
        or access.grants(actor).roles.get(access.EVERYWHERE) is access.Role.ADMINISTRATOR
    )


def _paths(obj: Object) -> Iterator[str]:
    spec = lenient.mapping(obj, "spec")
    tasks = [lenient.mapping(task, "template", "spec") for task in lenient.sequence(spec, "tasks")]
    for one in (spec, lenient.mapping(spec, "template", "spec"), *tasks):
        for volume in lenient.sequence(one, "volumes"):
            if lenient.mapping(volume, "hostPath"):
                yield lenient.text(volume, "hostPath", "path")


def _lies_below(path: str, directories: list[str]) -> bool:
    parts = os.path.normpath(path).split("/")
    return any(parts[: len(above)] == above for above in (one.rstrip("/").split("/") for one in directories))


def _people(pod: Pod) -> Iterator[str | None]:
    """Yield the names of who made a pod and what controls it; None for somebody who is not known any more."""
    owners = [
        {
            "apiVersion": one.api_version,
            "kind": one.kind,
            "name": one.name,
            "uid": one.uid,
            "controller": one.controller,
        }
        for one in pod.metadata.owner_references
    ]
    meta = {
        "annotations": pod.metadata.annotations,
        "namespace": pod.metadata.namespace,
        "ownerReferences": owners,
    }
    for each in line({"metadata": meta}, _stored):
        creator = creator_of(each) if each else None
        if creator or each is None:
            yield creator


def _stored(resource: Resource, namespace: str, name: str) -> Object | None:
    try:
        return store.get(resource, namespace, name).object
    except NotFound:
        return None


def _may_everything(name: str | None) -> bool:
    if name is None:
        return False
    user = get_user_model().objects.filter(username=name).values_list("pk", flat=True).first()
    return is_administrator(access.Actor(name, user_id=user))
