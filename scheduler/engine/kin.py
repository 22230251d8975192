"""What nodes are worth to pods because of others of their gang: those of their bucket there, and those that may follow.

Semantics are those of Volcano's plugin task-topology (reference/volcano-scheduler §3.11): a node scores the pods of the bucket
that are on it, less those that the pod avoids, plus the pods of the bucket that still wait and would find room there as well. So
the first of a bucket goes where the others can follow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scheduler.engine.arrays import Matrix, Vector
from scheduler.engine.relations import OWN_NODE, Mark, Relations

Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Following:
    """Pods that go to the same node if they can: `pods` less those that have the mark by now, each asking for `request`."""

    mark: Mark
    pods: int
    request: Vector


@dataclass(frozen=True, slots=True, eq=False)
class Kin:
    """The others of a gang, as seen by a pod that asks for `request`.

    bucket    the mark of the pods with which it is to share a node; None where there are none
    parted    the marks of the pods with which it is not to
    following the pods of the bucket that waited when the cycle began, without the pod itself
    weight    how much all that counts
    """

    request: Vector
    bucket: Mark | None
    parted: tuple[Mark, ...]
    following: tuple[Following, ...]
    weight: int = 1

    def raw(self, nodes: Indices, relations: Relations, free: Matrix) -> Vector:
        """Return the raw score of each of these nodes. Among equals, those with pods of the bucket come first."""
        there = np.zeros(len(nodes), dtype=np.int64)
        if self.bucket is not None:
            there += relations.tally(self.bucket, OWN_NODE).counts[nodes]
        for mark in self.parted:
            there -= relations.tally(mark, OWN_NODE).counts[nodes]
        return 2 * (there + self._expected(nodes, relations, free)) + (there > 0)

    def _expected(self, nodes: Indices, relations: Relations, free: Matrix) -> Vector:
        """Return how many of the following pods, in order, find room on each node after the pod."""
        found = np.zeros(len(nodes), dtype=np.int64)
        left = free[nodes] - self.request if self.following else free[:0]
        for each in self.following:
            waiting = each.pods - int(relations.tally(each.mark, OWN_NODE).counts.sum())
            if waiting <= 0:
                continue
            room = np.full(len(nodes), waiting, dtype=np.int64)
            for column in np.flatnonzero(each.request).tolist():
                np.minimum(room, np.maximum(left[:, column], 0) // each.request[column], out=room)
            left -= np.multiply.outer(room, each.request)
            found += room
        return found
