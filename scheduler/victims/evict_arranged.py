"""Which units to evict for an arranged gang: in which HyperNode it gets room, and where each of its parts does.

Rules: reference/volcano-scheduler §2.6 (domains). Places come from `scheduler.victims.evict_places`. Of the first places that work, the one
with the least loss is taken: the lowest tier of units, then the fewest pods, then the lowest tier of HyperNodes, then the youngest. Each
part gets its place in the same way: the cheapest for it, and later parts take what is left. Where hundreds of HyperNodes
promise room and have none, not all of them are tried (EFFORT).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from scheduler.engine import arrange
from scheduler.engine.arrange import Need
from scheduler.engine.gang import Attempt, Part
from scheduler.engine.relations import NodeSet
from scheduler.victims.evict_places import SearchArea, SearchAreas
from scheduler.victims.trial import Lost
from scheduler.victims.units import Drawn
from scheduler.victims.victim_search import Search

Settle = Callable[[NodeSet | None], bool]
Found = list[tuple[Lost, SearchArea]]
"""Places, each with what is lost there."""


EFFORT = 10_000
"""After how many pods placed on trial no further place is looked at; about a second."""
TRY = 30
"""What each try counts besides its pods."""


class Arranger:
    """Settles one arranged gang with the units that were drawn. most: how many places are compared."""

    def __init__(self, search: Search, drawn: Drawn, most: int) -> None:
        self._search, self._gang, self._drawn, self._most = search, search.gang, drawn, most
        self._areas = SearchAreas(search, drawn)
        self._started: set[int] = set()
        self._effort = 0

    def run(self, settle: Settle) -> tuple[list[int], Attempt] | None:
        """Settle the gang where the least is lost, and place it; None where no place works."""
        found: Found = []
        self._effort = 0
        for area in self._of_gang():
            if self._effort > EFFORT:
                break
            self._effort += TRY
            if (lost := self._search.cost(partial(settle, area.nodes))) is not None:
                found.append((lost, area))
                if len(found) >= self._most:
                    break
        for _, area in sorted(found, key=_rank):
            if (done := self._search.run(partial(settle, area.nodes))) is not None:
                return done
        return None

    def settle(self, root: NodeSet | None) -> bool:
        """Give the minimum nodes in root at the least cost, in the order of `arrange.fill`; tell whether all of it got nodes."""
        search, gang = self._search, self._gang
        self._started = {number for number, part in enumerate(gang.parts) if part.need <= 0}
        for step in gang.part_steps:
            have = sum(some in self._started for some in step.parts)
            for some in step.parts:
                if have < step.need and some not in self._started:
                    have += self._start(some, root)
            if have < step.need:
                return False
        for each in gang.steps:
            for some in each.bins:
                missing = each.need - sum(search.taken[other] for other in each.bins)
                if missing > 0:
                    self._bring(some, missing, root, each.bins)
            if sum(search.taken[some] for some in each.bins) < each.need:
                return False
        return True

    def settle_at_any_cost(self, root: NodeSet | None) -> bool:
        """Evict all units on nodes in root, then, if the gang has a queue, all others; tell whether it can be placed as it will be later."""
        everybody = range(len(self._drawn.units))
        near: Sequence[int] = everybody
        if root is not None:
            on_node = self._drawn.on_node
            near = sorted({number for node in np.flatnonzero(root).tolist() for number in on_node.get(node, ())})
        return self._is_placed_without(near, root) or (
            root is not None and self._gang.account is not None and self._is_placed_without(everybody, root)
        )

    def _is_placed_without(self, numbers: Sequence[int], root: NodeSet | None) -> bool:
        gone = self._search.gone
        for number in numbers:
            if number not in gone:
                gone.take([number])
        self._effort += sum(some.count for some in self._gang.bins)
        placer = self._search.placer()
        attempt = placer.start_anywhere(self._gang, partial(arrange.fill, placer, root=root))
        if attempt.short is None:
            self._search.note(attempt)
        return attempt.short is None

    # Parts

    def _start(self, number: int, root: NodeSet | None) -> bool:
        """Give a part the nodes that it needs to start, where the least is lost, or none; tell whether it got them."""
        part, search = self._gang.parts[number], self._search
        if sum(self._gang.bins[some].count - search.taken[some] for some in part.bins) < part.need:
            return False
        before = search.mark()
        found: Found = []
        for area in self._areas.inside(part.topology, [(part.need, part.bins)], part.bins, root):
            works = self._fill_part(part, area.nodes)
            lost = search.gone.lost(before[0].units)
            search.back_to(before)
            if works:
                found.append((lost, area))
                if len(found) >= self._most:
                    break
        if not found:
            return False
        self._started.add(number)
        return self._fill_part(part, min(found, key=_rank)[1].nodes)

    def _fill_part(self, part: Part, nodes: NodeSet | None) -> bool:
        self._effort += TRY + part.need
        missing = part.need
        for some in part.bins:
            missing -= self._search.fill(some, missing, nodes)
        return missing <= 0

    def _bring(self, some: int, wanted: int, root: NodeSet | None, bins: Sequence[int]) -> None:
        """Give nodes to at most `wanted` pods of a bin, together with their part if that has not started."""
        search, number = self._search, self._gang.bins[some].part
        if number is None:
            self._effort += wanted
            search.fill(some, wanted, root)
            return
        before = sum(search.taken[each] for each in bins)
        if number in self._started or self._start(number, root):
            more = wanted - (sum(search.taken[each] for each in bins) - before)
            if more > 0:
                self._join(some, self._gang.parts[number], more, root)

    def _join(self, some: int, part: Part, wanted: int, root: NodeSet | None) -> None:
        """Give at most `wanted` pods of a bin nodes near their part's other pods."""
        while wanted > 0:
            places = self._areas.inside(part.topology, [(1, (some,))], part.bins, root)
            taken = next((got for each in places if (got := self._search.fill(some, wanted, each.nodes))), 0)
            if not taken:
                return
            wanted -= taken

    def _of_gang(self) -> list[SearchArea]:
        gang = self._gang
        needs: list[Need] = [(step.need, step.bins) for step in gang.steps]
        for step in gang.part_steps:
            least = sorted(gang.parts[number].need for number in step.parts)[: step.need]
            bins = [some for number in step.parts for some in gang.parts[number].bins]
            needs.append((sum(least), bins))
        return self._areas.inside(gang.topology, needs, range(len(gang.bins)), None)


def _rank(found: tuple[Lost, SearchArea]) -> tuple[int, int, int, int, int]:
    lost, area = found
    return lost.tier, lost.pods, area.tier, lost.last, area.order
