"""The order in which the pods of one class fill the nodes.

The score is bin packing: the sum, over the resources that the class asks for, of the share of the node that would be in use after
placing one more pod (`pods` counts only for classes that ask for nothing else). The fullest node wins, so that large holes stay
large and whole nodes stay empty for gangs that need them; among equals the lowest index wins. Nodes that the class avoids come
after all others. What a class prefers (`scheduler.engine.wishes`) is asked node by node. Where the policy has weights for nodes,
`scheduler.engine.scored_ranking` is used instead.

The score of a node only grows while pods are placed on it. So the best node stays the best until it is full, and placing n pods
walks down the order and fills each node to its capacity. The result is that of placing pod after pod, at one step per node
instead of one pass over all nodes per pod.

A ranking is kept between gangs. Others fill nodes too; each change is in Cluster.touched, and a ranking measures again only what
it has not seen. A touched node leaves the sorted order for a heap; only after many changes are all nodes sorted again.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

import numpy as np

from scheduler.engine.arrays import Matrix, Scores, Vector
from scheduler.engine.cluster import Cluster
from scheduler.engine.pod_class import PodClass
from scheduler.engine.relations import NodeSet
from scheduler.engine.spared import left as left_for
from scheduler.engine.spared import left_of

MOST = 1 << 31
"""Capacity of a node for pods that ask for nothing at all; keeps sums in range."""

AVOIDANCE = 1e9
"""What each reason to avoid a node takes off its score: more than any fullness or sensible weight adds."""

FEW = 12
"""Up to so many changed nodes are measured one by one."""


class Ranking:
    """The nodes that have room for one class, fullest first."""

    def __init__(self, cluster: Cluster, pod_class: PodClass, pods: int) -> None:
        """pods is the column of the resource `pods`, or -1."""
        columns = np.flatnonzero(pod_class.request)
        self._cluster = cluster
        self._class = pod_class
        self._requests = [(c, int(pod_class.request[c])) for c in columns.tolist()]
        self._fixed = _fixed(pod_class)
        self._weights = [(c, q) for c, q in self._requests if c != pods] or self._requests
        self._sort()

    def total(self) -> int:
        """Return how many pods of the class fit now."""
        self._refresh()
        return self._total

    def take(self, wanted: int) -> tuple[list[int], list[int]]:
        """Choose nodes for up to `wanted` pods: distinct nodes and their counts.

        The caller puts them on the cluster; until then the ranking is wrong.
        """
        self._refresh()
        nodes: list[int] = []
        counts: list[int] = []
        while wanted > 0 and (node := self._pop()) >= 0:
            room = int(self._capacity[node])
            self._capacity[node] = 0
            self._total -= room
            nodes.append(node)
            counts.append(min(room, wanted))
            wanted -= counts[-1]
        return nodes, counts

    def rooms(self) -> Vector:
        """Return how many pods of the class fit on each node now; to be read only."""
        self._refresh()
        return self._capacity

    def choose(self, wanted: int, among: NodeSet) -> tuple[list[int], list[int]]:
        """Choose as `take` does, but among some nodes only; the ranking stays right even if nothing is placed."""
        self._refresh()
        nodes = np.flatnonzero(among & (self._capacity > 0))
        if not len(nodes):
            return [], []
        if (wishes := self._class.wishes) is not None:
            node = wishes.best(nodes, self._score[nodes], self._cluster.relations, self._cluster.free)
            return [node], [1 if wishes.moves_itself else min(int(self._capacity[node]), wanted)]
        if wanted == 1:
            return [int(nodes[np.argmax(self._score[nodes])])], [1]
        nodes = nodes[np.argsort(-self._score[nodes], kind="stable")]
        filled = np.cumsum(self._capacity[nodes])
        last = min(int(np.searchsorted(filled, wanted)), len(nodes) - 1)
        counts: list[int] = self._capacity[nodes[: last + 1]].tolist()
        counts[-1] -= max(int(filled[last]) - wanted, 0)
        return nodes[: last + 1].tolist(), counts

    def _sort(self) -> None:
        """Measure every node and sort those that have room."""
        self._seen = len(self._cluster.touched)
        self._capacity, self._score = self._measure(None)
        self._total = int(self._capacity.sum())
        open_nodes = np.flatnonzero(self._capacity)
        best_first = open_nodes[np.argsort(-self._score[open_nodes], kind="stable")]
        self._order = best_first.astype(np.int32)
        self._next = 0
        self._moved = np.zeros(len(self._capacity), dtype=bool)
        self._heap: list[tuple[float, int]] = []

    def _refresh(self) -> None:
        """Measure again the nodes that changed since the last look."""
        touched = self._cluster.touched
        changed = len(touched) - self._seen
        if not changed:
            return
        if changed > 64 + len(self._capacity) // 4:
            self._sort()
            return
        nodes = sorted(set(touched[self._seen :]))
        self._seen = len(touched)
        if len(nodes) <= FEW:
            for node in nodes:
                self._settle(node, *self._measure_one(node))
            return
        capacity, score = self._measure(np.array(nodes, dtype=np.int64))
        for node, room, fullness in zip(nodes, capacity.tolist(), score.tolist(), strict=True):
            self._settle(node, room, fullness)

    def _settle(self, node: int, capacity: int, score: float) -> None:
        """Record a new measurement: the node leaves the sorted order for the heap."""
        self._total += capacity - int(self._capacity[node])
        self._capacity[node] = capacity
        self._score[node] = score
        self._moved[node] = True
        if capacity:
            heappush(self._heap, (-score, node))

    def _measure_one(self, node: int) -> tuple[int, float]:
        """Measure one node as _measure does; for a few nodes this is ten times faster."""
        if self._class.verdicts[node] or self._class.foreign:
            return 0, 0.0
        free = self._cluster.free[node].tolist()
        allocatable = self._cluster.allocatable[node].tolist()
        left = left_of(free, self._class.spared)
        capacity = min((left[c] // q for c, q in self._requests), default=MOST)
        return max(capacity, 0), self._score_one(free, allocatable) + self._fixed_of(node)

    def _score_one(self, free: Sequence[int], allocatable: Sequence[int]) -> float:
        score = 0.0
        for c, q in self._weights:
            whole = max(allocatable[c], 1)
            score += float(whole - free[c] + q) / float(whole)
        return score

    def _measure(self, nodes: Vector | None) -> tuple[Vector, Scores]:
        """Return capacity and score of the given nodes, or of all."""
        rows = slice(None) if nodes is None else nodes
        free, allocatable = self._cluster.free[rows], self._cluster.allocatable[rows]
        capacity = np.full(len(free), MOST, dtype=np.int64)
        left = left_for(free, self._class.spared)
        for c, q in self._requests:
            np.minimum(capacity, left[:, c] // q, out=capacity)
        shut = self._class.verdicts[rows] != 0
        capacity[shut | (capacity < 0)] = 0
        if self._class.foreign:
            capacity[:] = 0
        score = self._score_many(free, allocatable)
        if self._fixed is not None:
            score += self._fixed[rows]
        return capacity, score

    def _fixed_of(self, node: int) -> float:
        return 0.0 if self._fixed is None else float(self._fixed[node])

    def _score_many(self, free: Matrix, allocatable: Matrix) -> Scores:
        score = np.zeros(len(free))
        for c, q in self._weights:
            whole = np.maximum(allocatable[:, c], 1)
            score += (whole - free[:, c] + q) / whole
        return score

    def _pop(self) -> int:
        """Remove the best node that has room and return it, or -1."""
        heap = self._heap
        while heap and not self._is_current(*heap[0]):
            heappop(heap)
        while self._next < len(self._order) and self._moved[self._order[self._next]]:
            self._next += 1
        if self._next == len(self._order):
            return heappop(heap)[1] if heap else -1
        node = int(self._order[self._next])
        if heap and heap[0] < (-float(self._score[node]), node):
            return heappop(heap)[1]
        self._next += 1
        return node

    def _is_current(self, negative_score: float, node: int) -> bool:
        return bool(self._capacity[node] and self._score[node] == -negative_score)


def _fixed(pod_class: PodClass) -> Scores | None:
    """Return the part of scores that does not depend on what is on nodes; None where there is none."""
    if pod_class.avoided is None:
        return pod_class.worth
    aversion = np.float64(-AVOIDANCE) * pod_class.avoided
    worth: Scores = aversion if pod_class.worth is None else pod_class.worth + aversion
    return worth
