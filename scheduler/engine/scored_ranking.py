"""The order in which the pods of one class go to nodes that are compared by weights.

Unlike in `Ranking`, a node may be worth less for the next pod than it was for this one. So each pod goes to the node that is best
for it, and that node is measured again before the next: a step costs as much as the nodes' heap is deep. Among equals the lowest
index wins.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappush

from scheduler.engine.arrays import Matrix, Scores
from scheduler.engine.cluster import Cluster
from scheduler.engine.pod_class import PodClass
from scheduler.engine.ranking import Ranking
from scheduler.engine.relations import NodeSet
from scheduler.engine.scoring import Scorer, Weights


class ScoredRanking(Ranking):
    """The nodes that have room for one class, those that are worth most first."""

    def __init__(self, cluster: Cluster, pod_class: PodClass, pods: int, weights: Weights) -> None:
        """pods is the column of the resource `pods`, or -1."""
        self._scorer = Scorer(weights, pod_class)
        super().__init__(cluster, pod_class, pods)

    def take(self, wanted: int) -> tuple[list[int], list[int]]:
        """Choose nodes for up to `wanted` pods, pod after pod: distinct nodes and their counts.

        The caller puts them on the cluster; until then the ranking is wrong.
        """
        self._refresh()
        taken: dict[int, int] = {}
        free: dict[int, list[int]] = {}
        while wanted > 0 and (node := self._pop()) >= 0:
            taken[node] = taken.get(node, 0) + 1
            wanted -= 1
            self._total -= 1
            self._capacity[node] -= 1
            self._moved[node] = True
            if self._capacity[node]:
                left = free.get(node) or self._cluster.free[node].tolist()
                for column, amount in self._requests:
                    left[column] -= amount
                free[node] = left
                score = self._score_one(left, self._cluster.allocatable[node].tolist()) + self._fixed_of(node)
                self._score[node] = score
                heappush(self._heap, (-score, node))
        return list(taken), list(taken.values())

    def choose(self, wanted: int, among: NodeSet) -> tuple[list[int], list[int]]:
        """Choose one node for one pod, since the next may be worth more elsewhere; for more pods the caller asks again."""
        return super().choose(min(wanted, 1), among)

    def _score_one(self, free: Sequence[int], allocatable: Sequence[int]) -> float:
        return self._scorer.one(free, allocatable)

    def _score_many(self, free: Matrix, allocatable: Matrix) -> Scores:
        return self._scorer.many(free, allocatable)
