"""One attempt to give the minimum of a gang nodes by evicting units; `scheduler.victims.evict` describes the order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush

from scheduler.engine.cluster import Cluster
from scheduler.engine.gang import Attempt, Gang
from scheduler.engine.place import Placer
from scheduler.engine.pod_class import PodClass
from scheduler.engine.relations import NodeSet
from scheduler.engine.spared import Spared
from scheduler.victims.conflicts import Conflicts, RuleMarks, marks
from scheduler.victims.offers import Offers
from scheduler.victims.trial import Gone, Lost, TrialState, Yields
from scheduler.victims.units import Drawn

Mark = tuple[TrialState, int, Sequence[int]]
"""The units that were gone at some moment, how many placements there were, and how many pods of each bin had a node."""

FEW = 64
"""Up to this many units are each tested against all nodes whether they can stay; one test takes about 1 ms on thousands of nodes."""


class Search:
    """The drawn units, which of them are gone, and where the gang is meanwhile. taken: how many pods of each bin have a node."""

    def __init__(self, cluster: Cluster, gang: Gang, drawn: Drawn, yields: Yields, pods: int) -> None:
        self.cluster, self.gang = cluster, gang
        self._units, self._pods = drawn.units, pods
        self.gone = Gone(cluster, gang, drawn.units, yields)
        self.taken = [0] * len(gang.bins)
        self.placements: list[tuple[int, int, int]] = []  # bin, node, pods
        self._barred: set[int] = set()
        relations = cluster.relations if cluster.has_rules(gang) else None
        self._conflicts = None if relations is None else Conflicts(relations, drawn.units)
        self._offers = Offers(cluster, drawn, self.gone.units, self.gone.refused, self._conflicts)
        self._rules = RuleMarks.of(cluster, gang) if relations is not None else RuleMarks()

    def run(self, settle: Callable[[], bool]) -> tuple[list[int], Attempt] | None:
        """Settle the gang, spare units that need not go, and place it; undo all and return None if that fails."""
        before = self.mark()
        if self._try(settle):
            self._leave_places(0)
            if len(self.gone.units) <= FEW or self._conflicts is not None:
                self._spare_with_other_places()
            attempt = self.placer().place_minimum(self.gang)
            if attempt.short is None:
                return sorted(self.gone.units), attempt
        self.back_to(before)
        return None

    def cost(self, settle: Callable[[], bool]) -> Lost | None:
        """Return what is lost if the gang is settled by `settle`; None where that does not work. Nothing has changed afterwards."""
        before = self.mark()
        lost = self.gone.lost() if self._try(settle) else None
        self.back_to(before)
        return lost

    def spare_needed(self) -> bool:
        """From now on keep the units whose eviction may do harm; tell whether there are any.

        The gang's pods may have to be beside them, or be spread among them; or something would be spared for devices that they leave idle.
        """
        devices = {each.device for some in range(len(self.taken)) for each in self._class(some).spared}
        self._barred = {
            number
            for number, unit in enumerate(self._units)
            if not self._rules.needed.isdisjoint(marks(unit)) or any(unit.total[each] for each in devices)
        }
        return bool(self._barred)

    def placer(self) -> Placer:
        """Return a placer for the cluster as it is now."""
        return Placer(self.cluster, pods=self._pods)

    def _try(self, settle: Callable[[], bool]) -> bool:
        self.gone.refused |= self._barred
        if not settle() or not self.gone.come_under_ceilings():
            return False
        self._spare()
        return True

    # Nodes for the gang

    def settle(self) -> bool:
        """Give the minimum nodes at the least cost; tell whether all of it got nodes."""
        for step in self.gang.steps:
            missing = step.need - sum(self.taken[some] for some in step.bins)
            for some in step.bins:
                missing -= self.fill(some, missing)
            if missing > 0:
                return False
        return True

    def settle_at_any_cost(self) -> bool:
        """Evict all units that may go, and place the minimum as it will be placed later; tell whether it fits."""
        for number in range(len(self._units)):
            if number not in self.gone:
                self.gone.take([number])
        attempt = self.placer().place_minimum(self.gang)
        if attempt.short is None:
            self.note(attempt)
        return attempt.short is None

    def note(self, attempt: Attempt) -> None:
        """Note the nodes of an attempt that is on the cluster as those of the gang."""
        for some, runs in enumerate(attempt.runs):
            for nodes, counts in runs:
                self.placements += [(some, node, count) for node, count in zip(nodes, counts, strict=True)]
            self.taken[some] += attempt.taken[some]

    def fill(self, some: int, wanted: int, among: NodeSet | None = None) -> int:
        """Give nodes, in `among` or any, to at most `wanted` pods of a bin; return how many got one."""
        wanted = min(wanted, self.gang.bins[some].count - self.taken[some])
        found = 0
        while found < wanted and (more := self._fill_open_nodes(some, wanted - found, among)):
            found += more
            if self._conflicts is None:
                break  # with rules about other pods, one that is placed may open nodes for the next
        return found

    def _fill_open_nodes(self, some: int, wanted: int, among: NodeSet | None) -> int:
        pod_class = self._class(some)
        line = [
            (offer[0], node)
            for node in self._offers.open_nodes(pod_class, among)
            if (offer := self._offers.best(node, pod_class)) is not None
        ]
        heapify(line)
        found = 0
        while line and found < wanted:
            cost, node = heappop(line)
            offer = self._offers.best(node, pod_class)  # it may differ by now, because of what was evicted meanwhile
            if offer is None:
                continue
            if offer[0] == cost and self.gone.take(offer[1]):
                number = min(self._offers.capacity(node, pod_class), wanted - found)
                self._put(some, node, number)
                found += number
                nodes = {node, *(each for unit in offer[1] for each in self._units[unit].holds)}
            else:
                nodes = {node}
            for each in sorted(nodes):
                is_open = pod_class.verdicts[each] == 0 and (among is None or among[each])
                if is_open and (offer := self._offers.best(each, pod_class)) is not None:
                    heappush(line, (offer[0], each))
        return found

    def _put(self, some: int, node: int, number: int) -> None:
        self.cluster.fill([node], [number], self._class(some), self.gang.account)
        self.placements.append((some, node, number))
        self.taken[some] += number

    def _leave_places(self, since: int) -> None:
        """Take the gang off the placements from index `since` on; its victims stay gone."""
        for some, node, number in self.placements[since:]:
            self.cluster.fill([node], [-number], self._class(some), self.gang.account)
            self.taken[some] -= number
        del self.placements[since:]

    def mark(self) -> Mark:
        """Return the present state, for back_to()."""
        return self.gone.state(), len(self.placements), list(self.taken)

    def back_to(self, before: Mark) -> None:
        """Undo all that was done since a mark."""
        self._leave_places(before[1])
        self.gone.back_to(before[0])

    # Units that may stay

    def _spare(self) -> None:
        """Keep units that need not go, the last first; those in another's `before` go if that one does."""
        requested: dict[int, set[int]] = {}
        spared: dict[int, set[Spared]] = {}
        for some, node, _ in self.placements:
            requested.setdefault(node, set()).update(column for column, _ in self._class(some).requests)
            if each := self._class(some).spared:
                spared.setdefault(node, set()).update(each)
        bound: set[int] = set()
        for number in sorted(self.gone.units, reverse=True):
            is_needed = bool(self._rules.all) and not self._rules.all.isdisjoint(marks(self._units[number]))
            if number not in bound and not is_needed:
                self.gone.move(number, -1)
                if self._has_room(number, requested, spared) and self.gone.above_ceiling() is None:
                    continue
                self.gone.move(number, 1)
            bound.update(self._units[number].before)

    def _spare_with_other_places(self) -> None:
        """Keep units if the minimum then fits on other nodes: later victims may have left enough room.

        Where there are more than FEW units, several are tried together.
        """
        bound: set[int] = set()
        left = sorted(self.gone.units, reverse=True)
        together = -(-len(left) // FEW)
        while left:
            some, left = left[:together], left[together:]
            tried = [number for number in some if number not in bound]
            for number in tried:
                self.gone.move(number, -1)
            if self.placer().fits(self.gang):
                continue
            for number in tried:
                self.gone.move(number, 1)
            bound.update(each for number in some for each in self._units[number].before)

    def _has_room(self, number: int, requested: dict[int, set[int]], spared: dict[int, set[Spared]]) -> bool:
        """Tell whether the gang's pods fit beside a unit that came back.

        requested: the columns that they request, by node; spared: what is spared for idle devices, by node.
        """
        free, holds = self.cluster.free, self._units[number].holds
        return all(
            free[node, column] >= 0
            for node, amounts in holds.items()
            for column in requested.get(node, ())
            if amounts[column] > 0
        ) and all(
            free[node, each.column] >= each.each * max(free[node, each.device], 0)
            for node in holds
            for each in spared.get(node, ())
            if each.column in requested[node]
        )

    def _class(self, some: int) -> PodClass:
        return self.cluster.classes[self.gang.bins[some].pod_class]
