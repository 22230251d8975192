"""Pods that are being deleted: the room that they will leave, reserved for the gangs for which they were evicted.

Volcano's words are Releasing, FutureIdle and Pipelined (reference/volcano-scheduler §1.5). Here the cluster and the accounts of
queues are put, for a while, into the state in which those pods are gone. What is placed meanwhile stays charged
afterwards, so that no other gang gets that room, whether it is free already or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from scheduler.engine.accounts import Account
from scheduler.engine.arrays import Vector
from scheduler.engine.cluster import Cluster
from scheduler.engine.relations import Mark, Marked


class Leaving:
    """What pods that are being deleted hold, by node and by queue, and their marks."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._rooms: dict[int, list[int]] = {}
        self._pods: dict[int, list[tuple[Account, Vector]]] = {}
        self._charges: dict[Account, list[int]] = {}
        self._marks: list[Marked] = []

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._charges)

    def add(self, node: int | None, amounts: Sequence[int], account: Account, marks: Iterable[Mark] = ()) -> None:
        """Note a pod that is being deleted, with its marks; node is None where its node does not exist."""
        if node is not None:
            self._marks += [(mark, node, 1) for mark in marks]
            _add(self._rooms.setdefault(node, [0] * len(amounts)), amounts)
            self._pods.setdefault(node, []).append((account, np.array(amounts, dtype=np.int64)))
        _add(self._charges.setdefault(account, [0] * len(amounts)), amounts)

    def on(self, node: int) -> Sequence[tuple[Account, Vector]]:
        """Return what each such pod holds on a node, with the account of its queue."""
        return self._pods.get(node, ())

    def by_node(self) -> Mapping[int, Vector]:
        """Return what all such pods together hold on each node."""
        return {node: np.array(amounts, dtype=np.int64) for node, amounts in self._rooms.items()}

    @contextmanager
    def gone(self) -> Iterator[None]:
        """Treat them as gone within the block. Pods that are added meanwhile have to be gone already: they are restored at the end."""
        self._move(1)
        try:
            yield
        finally:
            self._move(-1)

    def _move(self, sign: int) -> None:
        if self._rooms:
            nodes = np.fromiter(self._rooms, dtype=np.intp)
            self._cluster.free[nodes] += sign * np.array(list(self._rooms.values()), dtype=np.int64)
        if self._cluster.relations is not None:
            self._cluster.relations.shift(self._marks, -sign)
        for account, amounts in self._charges.items():
            account.charge(enumerate(amounts), -sign)


def _add(total: list[int], amounts: Sequence[int]) -> None:
    for column, amount in enumerate(amounts):
        total[column] += amount
