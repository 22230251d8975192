"""Putting pods of a gang on nodes.

Pods with rules about other pods (`scheduler.engine.relations`) are placed one by one, each on the best node that the rules leave
open. Where pods of a gang need each other, the first one decides the domain for all: it goes where there is room for as many as
must start, and if the gang is still short, the next best domain is tried, up to STARTS of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from scheduler.engine.arrays import Amount, Vector
from scheduler.engine.cluster import Cluster
from scheduler.engine.gang import Attempt, Gang
from scheduler.engine.pod_class import PodClass
from scheduler.engine.ranking import Ranking
from scheduler.engine.relations import NodeSet, Relations
from scheduler.engine.scored_ranking import ScoredRanking

MAX_RANKINGS = 128
"""Rankings kept at a time; each costs about 30 bytes a node."""

STARTS = 8
"""Domains that are tried for a gang whose pods need each other."""


class Filler:
    """Puts pods of gangs on the nodes of one cluster, takes them off again, and remembers the rankings."""

    def __init__(self, cluster: Cluster, *, pods: int = -1) -> None:
        self.cluster = cluster
        self._pods = pods
        self._rankings: dict[int, Ranking] = {}
        # Room only shrinks while placing, so this bound stays true.
        self._most_free = cluster.free.max(axis=0) if len(cluster.free) else None

    def start_anywhere(self, gang: Gang, place: Callable[[Gang, NodeSet | None], Attempt]) -> Attempt:
        """Place a minimum, trying one domain after the other for pods that need each other; if it is short, nothing is placed."""
        avoided: NodeSet | None = None
        for _ in range(STARTS):
            attempt = place(gang, avoided)
            if attempt.short is None:
                break
            self.undo(gang, attempt)
            if attempt.start is None:
                break
            avoided = attempt.start if avoided is None else avoided | attempt.start
        return attempt

    def place_part(self, gang: Gang, avoided: NodeSet | None = None) -> Attempt:
        """Place as much of the minimum as fits, up to the first step that is short.

        Where pods have rules about others, later steps may make room for earlier ones: then all steps are repeated as long as one
        of them places pods.
        """
        attempt = Attempt(gang, avoided)
        has_rules = self.cluster.has_rules(gang)
        while True:
            before, attempt.short = attempt.placed(), None
            for number, step in enumerate(gang.steps):
                missing = step.need - sum(attempt.taken[b] for b in step.bins)
                for bin_number in step.bins:
                    missing -= self.take(attempt, bin_number, missing, together=missing)
                if missing > 0:
                    left = (b for b in step.bins if attempt.taken[b] < gang.bins[b].count)
                    attempt.short = attempt.short or (number, next(left, step.bins[0] if step.bins else 0))
                    if not has_rules:
                        return attempt
            if attempt.short is None or attempt.placed() == before:
                return attempt

    def undo(self, gang: Gang, attempt: Attempt) -> None:
        """Take every pod of the attempt off its node again."""
        self.undo_since(attempt, [0] * len(gang.bins), range(len(gang.bins)))

    def undo_since(self, attempt: Attempt, runs: Sequence[int] | Mapping[int, int], bins: Iterable[int]) -> None:
        """Take off the pods of some bins placed since each bin had so many runs."""
        gang = attempt.gang
        for number in bins:
            pod_class = self._class_of(gang, number)
            for nodes, counts in attempt.runs[number][runs[number] :]:
                self.cluster.fill(nodes, [-count for count in counts], pod_class, gang.account)
                attempt.taken[number] -= sum(counts)
            del attempt.runs[number][runs[number] :]

    def rooms(self, pod_class: int) -> Vector:
        """Return how many pods of the class fit on each node now; to be read only."""
        return self._ranking(pod_class).rooms()

    def redo(self, gang: Gang, attempt: Attempt, runs: Sequence[Sequence[tuple[list[int], list[int]]]]) -> None:
        """Put the pods of an attempt that was undone back on the nodes that they had."""
        for number, (some, had) in enumerate(zip(gang.bins, runs, strict=True)):
            pod_class = self.cluster.classes[some.pod_class]
            for nodes, counts in had:
                self.cluster.fill(nodes, counts, pod_class, gang.account)
            attempt.runs[number] = list(had)
            attempt.taken[number] = sum(sum(counts) for _, counts in had)

    def room(self, pod_class: int) -> int:
        """Return how many pods of the class fit on all nodes together."""
        return self._ranking(pod_class).total()

    def requests_of(self, gang: Gang, number: int) -> tuple[Amount, ...]:
        """Return what each pod of a bin asks for."""
        return self.cluster.classes[gang.bins[number].pod_class].requests

    def take(self, attempt: Attempt, bin_number: int, wanted: int, *, together: int = 1) -> int:
        """Place up to `wanted` pods of a bin; return how many found room.

        Pods that need each other start where there is room for `together` of them, if there is such a place.
        """
        gang = attempt.gang
        some = gang.bins[bin_number]
        wanted = min(wanted, some.count - attempt.taken[bin_number])
        if wanted <= 0:
            return 0
        pod_class = self.cluster.classes[some.pod_class]
        if gang.account is not None:
            wanted = gang.account.allowed(pod_class.requests, wanted)
        if pod_class.ties is not None and pod_class.ties.rules and self.cluster.relations is not None:
            return self._take_tied(attempt, bin_number, wanted, min(together, wanted), self.cluster.relations)
        among = None if attempt.allowed is None else attempt.allowed.get(bin_number)
        if among is None and pod_class.wishes is None:
            return self._put(attempt, bin_number, *self._ranking(some.pod_class).take(wanted))
        if among is None:
            among = np.ones(len(self.cluster.free), dtype=bool)
        taken = 0
        while taken < wanted:  # each goes to the node that is best by then
            nodes, counts = self._ranking(some.pod_class).choose(wanted - taken, among)
            if not nodes:
                break
            taken += self._put(attempt, bin_number, nodes, counts)
        return taken

    def _put(self, attempt: Attempt, bin_number: int, nodes: list[int], counts: list[int]) -> int:
        """Put pods of a bin on nodes; return how many."""
        if not nodes:
            return 0
        gang = attempt.gang
        self.cluster.fill(nodes, counts, self._class_of(gang, bin_number), gang.account)
        taken = sum(counts)
        attempt.runs[bin_number].append((nodes, counts))
        attempt.taken[bin_number] += taken
        return taken

    def _take_tied(self, attempt: Attempt, bin_number: int, wanted: int, together: int, relations: Relations) -> int:
        """Place up to `wanted` pods of a bin that has rules about other pods, each where the rules allow it by then."""
        some = attempt.gang.bins[bin_number]
        ties = self.cluster.classes[some.pod_class].ties
        taken = 0
        while ties is not None and taken < wanted:
            ranking = self._ranking(some.pod_class)
            among = relations.open_nodes(ties)
            if attempt.allowed is not None and bin_number in attempt.allowed:
                among = among & attempt.allowed[bin_number]
            rule = ties.together()
            starts = rule is not None and relations.is_start(rule)
            if rule is not None and starts:
                among = self._places_to_start(attempt, among, relations.regions(rule), ranking, together - taken)
            nodes, counts = ranking.choose(1 if starts or ties.moves_itself else wanted - taken, among)
            if not nodes:
                break
            if rule is not None and starts and attempt.start is None:
                regions = relations.regions(rule)
                attempt.start = regions == regions[nodes[0]]
            taken += self._put(attempt, bin_number, nodes, counts)
        return taken

    def _places_to_start(
        self, attempt: Attempt, among: NodeSet, regions: Vector, ranking: Ranking, together: int
    ) -> NodeSet:
        """Return where the first of pods that need each other may go: where all have room, if there is such a place."""
        if attempt.start is None and attempt.avoided is not None:
            among = among & ~attempt.avoided
        if not among.any():
            return among
        rooms = np.bincount(regions[among], weights=ranking.rooms()[among], minlength=int(regions.max()) + 1)
        roomy = among & (rooms >= together)[regions]
        return roomy if roomy.any() else among

    def _class_of(self, gang: Gang, bin_number: int) -> PodClass:
        return self.cluster.classes[gang.bins[bin_number].pod_class]

    def may_fit(self, gang: Gang) -> bool:
        """Tell whether each step would have room with the cluster to itself; cheap, and never wrongly False."""
        for step in gang.steps:
            bins = [gang.bins[b] for b in step.bins if self._may_fit_one(gang.bins[b].pod_class)]
            if sum(min(some.count, self.room(some.pod_class)) for some in bins) < step.need:
                return False
        return True

    def _may_fit_one(self, pod_class: int) -> bool:
        """Tell whether some node has enough of each resource; saves ranking the nodes for what cannot fit."""
        if self._most_free is None or pod_class in self._rankings:
            return self._most_free is not None
        request = self.cluster.classes[pod_class].request
        return bool(((request <= self._most_free) | (request == 0)).all())

    def _ranking(self, pod_class: int) -> Ranking:
        ranking = self._rankings.pop(pod_class, None)
        if ranking is None:
            some, weights = self.cluster.classes[pod_class], self.cluster.weights
            if weights is None:
                ranking = Ranking(self.cluster, some, self._pods)
            else:
                ranking = ScoredRanking(self.cluster, some, self._pods, weights)
            if len(self._rankings) >= MAX_RANKINGS:
                del self._rankings[next(iter(self._rankings))]
        self._rankings[pod_class] = ranking
        return ranking
