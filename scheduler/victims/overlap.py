"""Room that is kept for a gang while pods still hold it: on the accounts of queues it counts once.

A node has it once, so what is kept costs others only what of it is idle: at each queue, and at root, what pods of that queue and of those below it
hold there is taken off again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from scheduler.engine.accounts import Account
from scheduler.engine.arrays import Vector

Holders = Mapping[int, Sequence[tuple[Account, Vector]]]
"""By node, what pods hold there, with the account of their queue."""


class Overlap:
    """What is charged twice when room on nodes is kept for a gang of a queue, and whether it is taken off.

    It says what is so while those pods are there: where some are taken for gone it is not to be taken off, so that the queues
    seem to hold too much rather than too little.
    """

    def __init__(self, account: Account, total: Vector, taken: Mapping[int, Vector], holders: Holders) -> None:
        """Find it, before the kept room is charged: total is all of it, taken by node what of it is held still, holders by whom."""
        self._line = account.line
        self.is_off = False
        self._used = [np.zeros_like(total) for _ in self._line]
        for node, amounts in taken.items():
            for depth, each in enumerate(self._line):
                self._used[depth] += _charged_to(each, amounts, holders.get(node, ()))
        self._held = [
            self._held_more(depth, total) - self._held_more(depth, total - used)
            for depth, used in enumerate(self._used)
        ]

    def take_off(self, *, on: bool) -> None:
        """Take off the accounts what is charged twice, or with on=False charge it again."""
        if on == self.is_off:
            return
        self.is_off = on
        sign = -1 if on else 1
        for account, used, held in zip(self._line, self._used, self._held, strict=True):
            for column in np.flatnonzero(used).tolist():
                account.used[column] += sign * int(used[column])
                account.held[column] += sign * int(held[column])

    def charged(self, total: Vector) -> Iterator[tuple[Account, Vector]]:
        """Yield the accounts to which the kept room is charged at present, each with how much of it."""
        for account, used in zip(self._line, self._used, strict=True):
            yield account, total - used if self.is_off else total

    def _held_more(self, depth: int, amounts: Vector) -> Vector:
        """Return how much more an account of the line holds when its queue is charged with amounts: not what is guaranteed below it."""
        for account in self._line[:depth]:
            held, guarantee = np.array(account.held), np.array(account.guarantee)
            amounts = np.maximum(held + amounts, guarantee) - np.maximum(held, guarantee)
        return amounts


def _charged_to(account: Account, taken: Vector, holders: Sequence[tuple[Account, Vector]]) -> Vector:
    """Return what of some room is held by who is charged to an account: to root all, also pods without a queue, and what is kept for others."""
    if account.parent is None:
        return taken
    inside = [vector for holder, vector in holders if account in holder.line]
    return np.minimum(taken, sum(inside, np.zeros_like(taken)))
