"""The accounts of all queues at the beginning of a cycle, charged with what pods use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np

from kube.usage import ROOT_QUEUE
from scheduler.engine.accounts import Account
from scheduler.engine.arrays import Matrix, Vector, times, together
from scheduler.engine.cause import Cause, Reason
from scheduler.records.records import Group
from scheduler.records.shapes import PodShape
from scheduler.shares.deserved import open_accounts
from scheduler.shares.tree import QueueTree
from scheduler.snapshot.snapshot import Snapshot


def queue_accounts(
    snapshot: Snapshot, waiting: Iterable[Group], allocatable: Matrix, free: Matrix
) -> dict[str, Account]:
    """Return the account of each queue by name, each after its parent's.

    waiting are the groups whose pods want nodes. allocatable and free are those of the nodes, as `NodeTable.matrices` has them.
    What pods without a queue hold is charged to root alone.
    """
    nodes = snapshot.nodes
    shapes: dict[str, Counter[PodShape]] = {}
    for (queue, _), some in snapshot.usage.items():
        shapes.setdefault(queue, Counter()).update(some)
    used = {queue: _sum(snapshot, some) for queue, some in shapes.items()}
    # What pods use and what is free on nodes that take pods; a node that shrank under its pods takes from no other.
    taken = allocatable - free
    whole = np.where(nodes.taking_pods()[:, None], np.maximum(allocatable, taken), taken).sum(axis=0)
    foreign = np.maximum(taken.sum(axis=0) - sum(used.values(), nodes.amounts({})), 0)
    demand = _demand(snapshot, waiting, used)
    shared = np.maximum(whole - foreign, 0)
    accounts = open_accounts(QueueTree(snapshot.queues), snapshot.queues, whole, shared, demand, nodes.amounts)
    charges = {**used, ROOT_QUEUE: foreign + used.get(ROOT_QUEUE, nodes.amounts({}))}
    for queue, vector in charges.items():
        accounts.get(queue, accounts[ROOT_QUEUE]).charge(enumerate(vector.tolist()), 1)
    return accounts


def queue_cause(snapshot: Snapshot, group: Group) -> Cause | None:
    """Return the cause if the pods of a group cannot start in its queue, whatever room there is."""
    if group.queue not in snapshot.queues:
        return Cause(Reason.QUEUE_NOT_FOUND, queue=group.queue)
    if snapshot.has_children(group.queue):
        return Cause(Reason.QUEUE_HAS_CHILDREN, queue=group.queue)
    return None


def giving_queues(snapshot: Snapshot, accounts: Mapping[str, Account]) -> set[str]:
    """Return the queues that others may reclaim from: those that use more of something than they deserve, `pods` aside."""
    pods = snapshot.nodes.columns.get("pods", -1)
    return {
        name
        for name, queue in snapshot.queues.items()
        if queue.reclaimable and (account := accounts.get(name)) is not None and not account.below
        for column, used in enumerate(account.used)
        if column != pods and used > account.deserved[column]
    }


def _demand(snapshot: Snapshot, waiting: Iterable[Group], used: dict[str, Vector]) -> dict[str, Vector]:
    """Return by queue what its pods use or request; for a group without pods yet, its minResources."""
    shapes: dict[str, Counter[PodShape]] = {}
    minima: dict[str, Counter[str]] = {}
    for group in waiting:
        if group.pending:
            requested = shapes.setdefault(group.queue, Counter())
            for alike in snapshot.layout_of(group).pod_sets:
                requested[alike.shape] += len(alike.pods)
        elif group.min_resources:
            least = minima.setdefault(group.queue, Counter())
            for name, amount in group.min_resources:
                least[name] += amount
    demand = dict(used)
    nothing = snapshot.nodes.amounts({})
    for queue, some in shapes.items():
        demand[queue] = together(demand.get(queue, nothing), _sum(snapshot, some))
    for queue, amounts in minima.items():
        demand[queue] = together(demand.get(queue, nothing), snapshot.nodes.amounts(amounts))
    return demand


def _sum(snapshot: Snapshot, shapes: Mapping[PodShape, int]) -> Vector:
    """Return what pods of these shapes ask for together."""
    total = snapshot.nodes.amounts({})
    for shape, count in shapes.items():
        total = together(total, times(snapshot.nodes.vector(shape), count))
    return total
