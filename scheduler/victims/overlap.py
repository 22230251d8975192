"""Room that is reserved for a gang while pods still hold it: it counts once on the accounts of queues.

A node has it only once, so a reservation costs others only its idle part: at each queue, and at root, what pods of that
queue and of those below it hold of it is taken off again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from scheduler.engine.accounts import Account
from scheduler.engine.arrays import Vector

Holders = Mapping[int, Sequence[tuple[Account, Vector]]]
"""By node, what each pod holds there, with the account of its queue."""


class Overlap:
    """What is charged twice when room on nodes is reserved for a gang of a queue, and whether it is taken off.

    It holds while those pods are there: where some are treated as gone it must not be taken off, so that the queues
    seem to hold too much rather than too little.
    """

    def __init__(self, account: Account, total: Vector, taken: Mapping[int, Vector], holders: Holders) -> None:
        """Create it before the reservation is charged. total: all of it; taken: the part of it still held, by node; holders: by which pods."""
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
        """Take what is charged twice off the accounts, or with on=False charge it again."""
        if on == self.is_off:
            return
        self.is_off = on
        sign = -1 if on else 1
        for account, used, held in zip(self._line, self._used, self._held, strict=True):
            for column in np.flatnonzero(used).tolist():
                account.used[column] += sign * int(used[column])
                account.held[column] += sign * int(held[column])

    def charged(self, total: Vector) -> Iterator[tuple[Account, Vector]]:
        """Yield the accounts to which the reservation is charged at present, each with how much of it."""
        for account, used in zip(self._line, self._used, strict=True):
            yield account, total - used if self.is_off else total

    def _held_more(self, depth: int, amounts: Vector) -> Vector:
        """Return how much more the account at a depth of the line holds when amounts are charged: less what guarantees below it cover."""
        for account in self._line[:depth]:
            held, guarantee = np.array(account.held), np.array(account.guarantee)
            amounts = np.maximum(held + amounts, guarantee) - np.maximum(held, guarantee)
        return amounts


def _charged_to(account: Account, taken: Vector, holders: Sequence[tuple[Account, Vector]]) -> Vector:
    """Return which part of held room is charged to an account: at root all, including pods without a queue and other reservations."""
    if account.parent is None:
        return taken
    inside = [vector for holder, vector in holders if account in holder.line]
    return np.minimum(taken, sum(inside, np.zeros_like(taken)))
