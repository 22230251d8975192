"""Placing gangs: the minimum of each gets nodes together, or nobody of it does."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from scheduler.engine.gang import Attempt, Gang
from scheduler.engine.ranking import Ranking

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scheduler.engine.cluster import Cluster

KEPT_RANKINGS = 128
"""Rankings kept at a time; each costs about 30 bytes a node."""


def place(cluster: Cluster, gangs: Iterable[Gang], *, pods: int = -1) -> list[Attempt]:
    """Place gangs in the given order and return one attempt for each.

    Strict order, first fit with skipping: a gang whose minimum does not fit
    holds nothing and the next one is tried. Within a run of gangs of the same
    level all minima are tried before any pod beyond a minimum (the order of
    Volcano's gang plugin, reference/volcano-scheduler §3.1). All nodes are
    scored as scheduler.engine.ranking says, with the same result as placing
    pod after pod; the same input always gives the same answer. cluster.free
    and cluster.rooms are left as after placing. pods is the column of `pods`.
    """
    placer = Placer(cluster, pods=pods)
    attempts: list[Attempt] = []
    for _, equals in groupby(gangs, key=lambda gang: gang.level):
        run = [(gang, placer.place_minimum(gang)) for gang in equals]
        for gang, attempt in run:
            if attempt.short is None:
                placer.place_rest(gang, attempt)
        attempts.extend(attempt for _, attempt in run)
    return attempts


class Placer:
    """Places gangs one by one on one cluster and remembers the rankings."""

    def __init__(self, cluster: Cluster, *, pods: int = -1) -> None:
        self.cluster = cluster
        self._pods = pods
        self._rankings: dict[int, Ranking] = {}
        # Room only shrinks while placing, so this bound stays true.
        self._most_free = cluster.free.max(axis=0) if len(cluster.free) else None

    def place_minimum(self, gang: Gang) -> Attempt:
        """Place what must start together; if it is short, nothing is placed."""
        if not self._may_fit(gang):
            attempt = Attempt(gang)
            attempt.short = (0, 0)
            return attempt
        attempt = self.place_part(gang)
        if attempt.short is not None:
            self.undo(gang, attempt)
        return attempt

    def place_part(self, gang: Gang) -> Attempt:
        """Place as much of the minimum as fits, up to the first step that is short."""
        attempt = Attempt(gang)
        for number, step in enumerate(gang.steps):
            missing = step.need - sum(attempt.taken[b] for b in step.bins)
            for bin_number in step.bins:
                missing -= self._take(gang, attempt, bin_number, missing)
            if missing > 0:
                attempt.short = (number, self._first_left(gang, attempt, step.bins))
                break
        return attempt

    def place_rest(self, gang: Gang, attempt: Attempt) -> None:
        """Place as many of the pods beyond the minimum as fit, in task order."""
        for number, some in enumerate(gang.bins):
            self._take(gang, attempt, number, some.count)

    def undo(self, gang: Gang, attempt: Attempt) -> None:
        """Take every pod of the attempt off its node again."""
        for number, some in enumerate(gang.bins):
            request = self.cluster.classes[some.pod_class].request
            for nodes, counts in attempt.runs[number]:
                self.cluster.fill(nodes, [-count for count in counts], request, gang.queues)
            attempt.runs[number] = []
            attempt.taken[number] = 0

    def room(self, pod_class: int) -> int:
        """Return how many pods of the class fit on all nodes together."""
        return self._ranking(pod_class).total()

    def _take(self, gang: Gang, attempt: Attempt, bin_number: int, wanted: int) -> int:
        some = gang.bins[bin_number]
        wanted = min(wanted, some.count - attempt.taken[bin_number])
        if wanted <= 0:
            return 0
        request = self.cluster.classes[some.pod_class].request
        if gang.queues:
            wanted = self.cluster.allowed(request, wanted, gang.queues)
        nodes, counts = self._ranking(some.pod_class).take(wanted)
        if not nodes:
            return 0
        self.cluster.fill(nodes, counts, request, gang.queues)
        taken = sum(counts)
        attempt.runs[bin_number].append((nodes, counts))
        attempt.taken[bin_number] += taken
        return taken

    def _may_fit(self, gang: Gang) -> bool:
        """Whether each step has room if it had the cluster to itself; cheap and never wrongly no."""
        for step in gang.steps:
            bins = [gang.bins[b] for b in step.bins if self._may_fit_one(gang.bins[b].pod_class)]
            if sum(min(some.count, self.room(some.pod_class)) for some in bins) < step.need:
                return False
        return True

    def _may_fit_one(self, pod_class: int) -> bool:
        """Whether some node has enough of each resource; spares ranking the nodes for what cannot fit."""
        if self._most_free is None or pod_class in self._rankings:
            return self._most_free is not None
        request = self.cluster.classes[pod_class].request
        return bool(((request <= self._most_free) | (request == 0)).all())

    def _first_left(self, gang: Gang, attempt: Attempt, bins: tuple[int, ...]) -> int:
        left = (b for b in bins if attempt.taken[b] < gang.bins[b].count)
        return next(left, bins[0] if bins else 0)

    def _ranking(self, pod_class: int) -> Ranking:
        ranking = self._rankings.pop(pod_class, None)
        if ranking is None:
            ranking = Ranking(self.cluster, self.cluster.classes[pod_class], self._pods)
            if len(self._rankings) >= KEPT_RANKINGS:
                del self._rankings[next(iter(self._rankings))]
        self._rankings[pod_class] = ranking
        return ranking
