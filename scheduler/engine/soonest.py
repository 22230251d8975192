"""Where a gang fits soonest, when pods leave one after the other.

Halving finds the least number of pods that have to leave: the cluster and the accounts of queues are put into the state in which
so many are gone. Where more room never hurts, as without rules about other pods, that is the first moment at which the gang fits;
otherwise it is a moment at which it does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from scheduler.engine.accounts import Account
from scheduler.engine.arrays import Vector
from scheduler.engine.cluster import Cluster
from scheduler.engine.gang import Attempt, Gang
from scheduler.engine.place import Placer


class Leaver(NamedTuple):
    """A pod that will leave: the number of its node, None if that is gone; what it holds by column, and the account."""

    node: int | None
    amounts: Vector
    account: Account


def soonest(cluster: Cluster, gang: Gang, leavers: Sequence[Leaver], *, pods: int = -1) -> tuple[Attempt, int] | None:
    """Return the minimum of a gang as placed once enough pods have left, in order, and how many have; None where all are too few.

    The cluster and the accounts are left as they were.
    """
    departure = _Departure(cluster, leavers)
    try:
        attempt = departure.attempt(gang, len(leavers), pods)
        if attempt is None:
            return None
        few, enough = -1, len(leavers)
        while enough - few > 1:
            middle = (few + enough) // 2
            found = departure.attempt(gang, middle, pods)
            if found is None:
                few = middle
            else:
                attempt, enough = found, middle
        return attempt, enough
    finally:
        departure.move(0)


class _Departure:
    """The cluster as it is when the first so many pods have left."""

    def __init__(self, cluster: Cluster, leavers: Sequence[Leaver]) -> None:
        self._cluster, self._gone = cluster, 0
        self._nodes = np.array([-1 if each.node is None else each.node for each in leavers], dtype=np.intp)
        columns = cluster.free.shape[1]
        self._amounts = (
            np.stack([each.amounts for each in leavers]) if leavers else np.zeros((0, columns), dtype=np.int64)
        )
        self._accounts = list(dict.fromkeys(each.account for each in leavers))
        numbers = {account: number for number, account in enumerate(self._accounts)}
        self._owners = np.array([numbers[each.account] for each in leavers], dtype=np.intp)

    def attempt(self, gang: Gang, gone: int, pods: int) -> Attempt | None:
        """Return the minimum as placed when so many have left, None where it does not fit."""
        self.move(gone)
        placer = Placer(self._cluster, pods=pods)
        attempt = placer.place_minimum(gang)
        if attempt.short is not None:
            return None
        runs, taken = [list(runs) for runs in attempt.runs], list(attempt.taken)
        placer.undo(gang, attempt)
        attempt.runs, attempt.taken = runs, taken
        return attempt

    def move(self, gone: int) -> None:
        """Have so many gone."""
        first, last, sign = (self._gone, gone, 1) if gone >= self._gone else (gone, self._gone, -1)
        self._gone = gone
        nodes, amounts = self._nodes[first:last], self._amounts[first:last]
        there = nodes >= 0
        np.add.at(self._cluster.free, nodes[there], sign * amounts[there])
        sums = np.zeros((len(self._accounts), amounts.shape[1]), dtype=np.int64)
        np.add.at(sums, self._owners[first:last], amounts)
        for account, total in zip(self._accounts, sums.tolist(), strict=True):
            account.charge(enumerate(total), -sign)
