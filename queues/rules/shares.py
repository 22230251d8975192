"""The fair share of each queue if every queue wanted more, and how much of it pods use: for people.

It is the scheduler's own rule (`scheduler/shares/deserved.py`) without demand: there, what a queue does not ask for
goes to the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from kube import amounts
from kube.amounts import Amounts
from scheduler.engine.accounts import Account
from scheduler.engine.arrays import Vector
from scheduler.records.records import Queue
from scheduler.shares.deserved import open_accounts
from scheduler.shares.tree import QueueTree


class FairShare(NamedTuple):
    """A queue's part of the cluster, by resource, and what pods in it and below it use.

    `part` is the largest part of what it deserves that they use, 1.0 for all of it; None if it deserves nothing.
    `resource` is the one with this part.
    """

    deserved: Amounts
    guaranteed: Amounts
    used: Amounts
    part: float | None
    resource: str

    def borrowed(self, resource: str) -> int:
        """Return how much of a resource pods use beyond what the queue deserves."""
        return max(self.used.get(resource, 0) - self.deserved.get(resource, 0), 0)


def fair_shares(
    queues: Mapping[str, Queue], capacity: Amounts, foreign: Amounts, used: Mapping[str, Amounts]
) -> dict[str, FairShare]:
    """Return the fair share of each queue and of root.

    `capacity` is what the nodes offer, `foreign` what pods without a queue use of it, `used` what the pods of each queue use.
    """
    names = sorted(capacity)

    def vector(some: Mapping[str, int]) -> Vector:
        return np.array([max(some.get(name, 0), 0) for name in names], dtype=np.int64)

    whole = vector(capacity)
    shared = vector(amounts.subtract(capacity, foreign))
    demand = dict.fromkeys(queues, whole)
    accounts = open_accounts(QueueTree(queues), queues, whole, shared, demand, vector)
    for name, held in used.items():
        if name in accounts:
            accounts[name].charge(enumerate(vector(held).tolist()), 1)
    return {name: _fair_share(account, names) for name, account in accounts.items()}


def _fair_share(account: Account, names: list[str]) -> FairShare:
    deserved, guaranteed, used = (
        dict(zip(names, each, strict=True)) for each in (account.deserved, account.guarantee, account.used)
    )
    parts: dict[str, float] = {name: used[name] / due for name, due in deserved.items() if due}
    resource = max(parts, default="", key=lambda name: parts[name])
    return FairShare(deserved, guaranteed, used, parts.get(resource), resource)
