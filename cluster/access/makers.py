"""Who had a hand in a pod: who made it, and who made what controls it.

Who changes what runs in it, or runs commands in it, would have one, too. They
are let do so only if they might have made it (`cluster.api.rights`), and are not noted.
"""

from __future__ import annotations

import msgspec
from django.contrib.auth import get_user_model

from cluster import access
from cluster.access.authorizer import Actor
from cluster.access.ownership import creator_of, line
from cluster.store import store
from kube.kinds.core import Pod
from kube.meta import Object
from kube.resources import JOB_FLOWS, Resource

# How many, for how long, when and how urgently: an operator's work, which decides nothing about what runs.
AMOUNTS = frozenset(
    [
        *("replicas", "minAvailable", "minSuccess", "parallelism", "completions", "maxRetry", "backoffLimit"),
        *("suspend", "schedule", "timeZone", "concurrencyPolicy", "startingDeadlineSeconds", "activeDeadlineSeconds"),
        *("ttlSecondsAfterFinished", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"),
        *("queue", "priorityClassName"),
    ]
)


def is_administrator(actor: Actor) -> bool:
    """Say whether somebody is an administrator of all namespaces."""
    return access.is_system(actor) or access.grants(actor).roles.get(access.EVERYWHERE) is access.Role.ADMINISTRATOR


def all_administrators(pod: Pod) -> bool:
    """Say whether everybody who had a hand in a pod is an administrator of all namespaces.

    A pod that names nobody is nobody's: who takes the owner off a pod must not
    gain by it. So is a pod of a flow, in which several people have a hand.
    """
    owners = msgspec.to_builtins(pod.metadata.owner_references)
    meta = {"annotations": pod.metadata.annotations, "namespace": pod.metadata.namespace, "ownerReferences": owners}
    people: set[str | None] = set()  # who made it and what controls it, None for somebody who is not known
    for each in line({"metadata": meta}, _stored):
        if each is None or each.get("kind") == JOB_FLOWS.kind:
            people.add(None)
        elif creator := creator_of(each):
            people.add(creator)
    return bool(people) and all(map(is_administrators, people))


def has_a_hand(old: Object, new: Object) -> bool:
    """Say whether who makes a change decides what runs in pods: all of a spec does, but AMOUNTS."""
    return _work(new.get("spec")) != _work(old.get("spec"))


def _work(value: object) -> object:
    if isinstance(value, list):
        return [_work(each) for each in value]
    if not isinstance(value, dict):
        return value
    # In a template of pods all counts.
    return {key: each if key == "template" else _work(each) for key, each in value.items() if key not in AMOUNTS}


def _stored(resource: Resource, namespace: str, name: str) -> Object | None:
    stored = store.get_or_none(resource, namespace, name)
    return stored.object if stored else None


def is_administrators(name: str | None) -> bool:
    """Say whether what somebody of this name made is an administrator's of all namespaces."""
    if name is None:
        return False
    user = get_user_model().objects.filter(username=name).values_list("pk", flat=True).first()
    return is_administrator(access.Actor(name, user_id=user))
