"""Where pods go, by hand: bound to a node, evicted from one. Part of the door (`cluster.api`)."""

from __future__ import annotations

from typing import Unpack

from cluster import clock
from cluster.access import Actor
from cluster.api import transaction
from cluster.api.cluster_view import ClusterView
from cluster.backend import EvictOptions
from cluster.rules import disruption
from cluster.store import Delete, Patch, Stored, store, strategy
from kube import gates, resources
from kube.errors import NotFound
from kube.kinds.pod import UNENDED


def bind(actor: Actor, namespace: str, name: str, node: str, *, uid: str = "", dry_run: bool = False) -> Stored:
    """Give an unscheduled pod its node; Conflict when it has one, or is being deleted, or is another pod than `uid`."""
    with transaction.change(actor, "bind", resources.PODS, namespace, name, dry_run=dry_run) as step:
        old = transaction.stored(actor, "create", resources.PODS, namespace, name)
        if ClusterView().get(resources.NODES, "", node) is None:
            raise NotFound.of(resources.NODES.id, node)
        conditions = gates.scheduled(old.object, clock.milliseconds())
        change = {"spec": {"nodeName": node}, "status": {"conditions": conditions}}
        stored = store.write(Patch(resources.PODS, namespace, name, change, "binding", uid=uid))[0]
        step.done(old, stored)
    return stored


def evict(actor: Actor, namespace: str, name: str, **how: Unpack[EvictOptions]) -> Stored:
    """Delete a pod if its disruption budget lets it go; TooManyRequests when it does not now (§4.7)."""
    pods = resources.PODS
    with transaction.change(actor, "evict", pods, namespace, name, dry_run=how.get("dry_run", False)) as step:
        old = transaction.stored(actor, "create", pods, namespace, name)
        if disruption.counts(old.object):
            budgets = [each.object for each in store.find(resources.DISRUPTION_BUDGETS, namespace=namespace)]
            mates = store.find(pods, namespace=namespace, phase=UNENDED) if budgets else []
            disruption.check(old.object, budgets, [each.object for each in mates])
        strategy.check_preconditions(pods, old.object, how.get("uid", ""), how.get("version", ""))
        marked = disruption.marked(old.object, clock.milliseconds())
        if marked is not None:
            store.write(Patch(pods, namespace, name, {"status": marked}, "status"))
        stored = store.write(Delete(pods, namespace, name, old.uid, grace=how.get("grace")))[0]
        step.done(None, stored)
    return stored
