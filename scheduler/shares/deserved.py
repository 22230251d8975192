"""What each queue deserves, and its ceiling: the rules of the plugins capacity and proportion combined.

A queue deserves what its spec.deserved says (capacity, reference/volcano-scheduler
§3.6). Of a resource not named there it deserves a part by its weight, at most what
it requests (proportion, §3.5): a part of what its parent deserves, less what its
siblings state for that resource and request. So both rules cover the whole tree,
even proportion, which has no levels in Volcano.

deserved decides which queue is served first; it is not a limit. What no other queue
can use may be borrowed (reference §11.13), up to the ceilings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from kube.amounts import Amounts
from kube.kinds.scheduling import DequeueStrategy
from kube.usage import ROOT_QUEUE
from scheduler.engine.accounts import Account
from scheduler.engine.arrays import UNLIMITED, Vector, together
from scheduler.records.records import Queue
from scheduler.shares.filling import fill
from scheduler.shares.tree import QueueTree


def open_accounts(
    tree: QueueTree,
    queues: Mapping[str, Queue],
    whole: Vector,
    shared: Vector,
    demand: Mapping[str, Vector],
    vector: Callable[[Amounts], Vector],
) -> dict[str, Account]:
    """Return an account for each queue and for root, parents first, with nothing charged yet.

    whole is what the cluster offers, shared the part of it that is there for queues, demand what each queue's own
    pods use or request, all by column; vector turns amounts into columns.
    """
    guarantees = _guarantees(tree, queues, vector)
    wanted = _demand_of_subtrees(tree, demand, len(whole))
    some_guarantee = any(each.any() for each in guarantees.values())
    accounts: dict[str, Account] = {}
    deserved: dict[str, Vector] = {ROOT_QUEUE: shared}
    for name in tree.downwards():
        queue = queues.get(name)
        most = ceiling(queue, vector, len(whole)) if queue else _unlimited(len(whole))
        if name == ROOT_QUEUE and some_guarantee:
            most = np.minimum(most, whole)
        accounts[name] = Account(
            name,
            most.tolist(),
            guarantees[name].tolist(),
            deserved[name].tolist(),
            accounts.get(tree.parent(name)),
            rank=(queue.priority, queue.created) if queue else (0, 0),
            fifo=queue is not None and queue.strategy == DequeueStrategy.FIFO,
        )
        if below := tree.children(name):
            deserved |= _parts(deserved[name], [queues[each] for each in below], guarantees, wanted, vector)
    return accounts


def _parts(
    whole: Vector,
    queues: list[Queue],
    guarantees: Mapping[str, Vector],
    wanted: Mapping[str, Vector],
    vector: Callable[[Amounts], Vector],
) -> dict[str, Vector]:
    """Return each queue's part of what their parent deserves: what it states, and a part of the rest by weight."""
    weights = np.array([max(queue.weight, 1) for queue in queues], dtype=np.int64)
    least = np.array([guarantees[queue.name] for queue in queues])
    ceilings = np.array([ceiling(queue, vector, len(whole)) for queue in queues])
    most = np.minimum(np.array([wanted[queue.name] for queue in queues]), ceilings)
    is_stated = np.array([_named(queue.deserved, vector) for queue in queues])
    parts = np.maximum(np.array([vector(queue.deserved) for queue in queues]), least)
    for column, amount in enumerate(whole.tolist()):
        stated = is_stated[:, column]
        if not stated.all():
            taken = np.clip(most[:, column], least[:, column], parts[:, column])[stated].sum()
            others = ~stated
            parts[others, column] = fill(
                max(amount - int(taken), 0), weights[others], least[others, column], most[others, column]
            )
    return {queue.name: part for queue, part in zip(queues, parts, strict=True)}


def ceiling(queue: Queue, vector: Callable[[Amounts], Vector], columns: int) -> Vector:
    """Return a queue's capability by column, UNLIMITED for resources that it does not name."""
    most = _unlimited(columns)
    named = _named(queue.capability, vector)
    most[named] = vector(queue.capability)[named]
    return most


def _unlimited(columns: int) -> Vector:
    return np.full(columns, UNLIMITED, dtype=np.int64)


def _named(some: Amounts, vector: Callable[[Amounts], Vector]) -> NDArray[np.bool_]:
    """Return which columns are named in amounts, even with 0."""
    named: NDArray[np.bool_] = vector(dict.fromkeys(some, 1)) > 0
    return named


def _guarantees(tree: QueueTree, queues: Mapping[str, Queue], vector: Callable[[Amounts], Vector]) -> dict[str, Vector]:
    """Return each queue's guarantee: its own, or the sum of those below it where that is more."""
    guarantees: dict[str, Vector] = {}
    for name in tree.upwards():
        below = sum((guarantees[each] for each in tree.children(name)), vector({}))
        guarantees[name] = np.maximum(vector(queues[name].guarantee if name in queues else {}), below)
    return guarantees


def _demand_of_subtrees(tree: QueueTree, demand: Mapping[str, Vector], columns: int) -> dict[str, Vector]:
    nothing = np.zeros(columns, dtype=np.int64)
    wanted: dict[str, Vector] = {}
    for name in tree.upwards():
        below = (wanted[each] for each in tree.children(name))
        wanted[name] = reduce(together, below, demand.get(name, nothing))
    return wanted
