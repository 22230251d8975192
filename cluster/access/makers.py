"""Who had a hand in a pod: who made it, and who made what controls it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.auth import get_user_model

from cluster import access
from cluster.access.ownership import creator_of, line
from cluster.store import store
from kube.errors import NotFound
from kube.resources import JOB_FLOWS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.access.authorizer import Actor
    from kube.kinds.core import Pod
    from kube.meta import Object
    from kube.resources import Resource


def is_administrator(actor: Actor) -> bool:
    """Say whether somebody is an administrator of all namespaces."""
    return (
        access.is_system(actor)
        or access.grants(actor).roles.get(access.EVERYWHERE) is access.Role.ADMINISTRATOR
    )


def all_administrators(pod: Pod) -> bool:
    """Say whether everybody who had a hand in a pod is an administrator of all namespaces.

    A pod that names nobody is nobody's: who takes the owner off a pod must not
    gain by it. So is a pod of a flow, in which several people have a hand.
    """
    people = set(_people(pod))
    return bool(people) and all(map(_is_administrator, people))


def _people(pod: Pod) -> Iterator[str | None]:
    """Yield the names of who made a pod and what controls it; None for somebody who is not known."""
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
        if each is None or each.get("kind") == JOB_FLOWS.kind:
            yield None
        elif creator := creator_of(each):
            yield creator


def _stored(resource: Resource, namespace: str, name: str) -> Object | None:
    try:
        return store.get(resource, namespace, name).object
    except NotFound:
        return None


def _is_administrator(name: str | None) -> bool:
    if name is None:
        return False
    user = get_user_model().objects.filter(username=name).values_list("pk", flat=True).first()
    return is_administrator(access.Actor(name, user_id=user))
