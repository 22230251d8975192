"""Whom to evict so that the minimum of a gang fits: as few as possible, those first that may go first.

The cluster is as it will be when all is gone that is going (`scheduler.engine.leaving`). Pods of the gang get nodes one by
one, each the node where the least is lost: first nodes with room, then those where units of the lowest tier make some, of
these where the fewest pods go, then where the youngest go. A unit that goes leaves room on all of its nodes, which the next pods
find there. Then units go whose queues have to use less, if a ceiling is in the way. No unit goes that would take from a budget more pods
than it allows. In the end it is tried for each unit, the last first, whether it can stay after all. The answer counts only if
`Placer.place_minimum`, which places the gang later, finds room for it then.

For pods with rules about other pods a node also costs whoever is in the way of those (`scheduler.engine.conflicts`). Where pods need
others near them, or are spread among them, it may help that these stay: if all else fails everybody goes but those.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

import numpy as np

from scheduler.engine.conflicts import Conflicts, RuleMarks, marks
from scheduler.engine.offers import Offers
from scheduler.engine.place import Placer
from scheduler.engine.units import Drawn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from scheduler.engine.accounts import Account
    from scheduler.engine.cluster import Cluster, PodClass
    from scheduler.engine.gang import Attempt, Gang
    from scheduler.engine.units import Unit

    Yields = Callable[[Account, Sequence[int]], bool]
    """Whether pods that hold so much may be taken from a queue, as it stands."""


FEW = 64
"""Of so many units each is tried with all nodes anew whether it can stay, which takes about 1 ms on thousands of nodes."""


def find_victims(
    cluster: Cluster, gang: Gang, units: Iterable[Unit], yields: Yields, *, pods: int = -1
) -> tuple[list[int], Attempt] | None:
    """Return the numbers of the units to evict and the gang placed in their room, or None when nothing helps.

    units come in the order in which they are to go, numbered from 0. Afterwards the victims are gone from the cluster and from
    the accounts, and the gang is on them; with None nothing has changed.
    """
    drawn = Drawn(units, gang, cluster)
    while True:
        more = drawn.draw()
        search = _Search(cluster, gang, drawn, yields, pods)
        if (found := search.run(search.settle)) is not None:
            return found
        if not more:
            return search.run(search.settle_at_any_cost) or search.run_beside_needed()


class _Search:
    """One try with the units that were drawn."""

    def __init__(self, cluster: Cluster, gang: Gang, drawn: Drawn, yields: Yields, pods: int) -> None:
        self._cluster, self._gang, self._yields, self._pods = cluster, gang, yields, pods
        self._units, self._on_node = drawn.units, drawn.on_node
        self._gone: set[int] = set()
        self._refused: set[int] = set()
        self._asked = sorted({c for some in gang.bins for c, _ in cluster.classes[some.pod_class].asked})
        self._taken = [0] * len(gang.bins)
        self._places: list[tuple[int, int, int]] = []  # bin, node, pods
        self._kept: dict[int, set[int]] = {}  # node → the columns of which pods of the gang ask there
        relations = cluster.relations if cluster.has_rules(gang) else None
        self._conflicts = None if relations is None else Conflicts(relations, drawn.units)
        self._offers = Offers(cluster, drawn, self._gone, self._refused, self._conflicts)
        self._rules = RuleMarks.of(cluster, gang) if relations is not None else RuleMarks()

    def run(self, settle: Callable[[], bool]) -> tuple[list[int], Attempt] | None:
        """Settle the gang, spare what need not go, and have it placed; take all back if that does not work."""
        free = self._cluster.free.copy()
        if settle() and self._come_under_ceilings():
            self._spare()
            self._leave_places()
            if len(self._gone) <= FEW or self._conflicts is not None:
                self._spare_with_other_places()
            attempt = Placer(self._cluster, pods=self._pods).place_minimum(self._gang)
            if attempt.short is None:
                return sorted(self._gone), attempt
        else:
            self._leave_places()
        for number in self._gone:
            unit = self._units[number]
            unit.account.charge(enumerate(unit.total), 1)
            for budget, pods in unit.uses:
                budget.left += pods
            if self._cluster.relations is not None:
                self._cluster.relations.shift(unit.marks)
        self._gone.clear()
        self._refused.clear()
        self._kept.clear()
        self._cluster.free[:] = free
        return None

    def run_beside_needed(self) -> tuple[list[int], Attempt] | None:
        """Have everybody go but those beside whom pods of the gang have to be, or among whom they are spread."""
        needed = [
            number
            for number, unit in enumerate(self._units)
            if not self._rules.needed.isdisjoint(marks(unit))
        ]
        if not needed:
            return None
        self._refused.update(needed)
        return self.run(self.settle_at_any_cost)

    # Nodes for the gang

    def settle(self) -> bool:
        """Give the minimum nodes at the least cost; tell whether all of it has some."""
        self._taken = [0] * len(self._gang.bins)
        for step in self._gang.steps:
            missing = step.need - sum(self._taken[some] for some in step.bins)
            for some in step.bins:
                missing -= self._fill(some, min(missing, self._gang.bins[some].count - self._taken[some]))
            if missing > 0:
                return False
        return True

    def settle_at_any_cost(self) -> bool:
        """Have everybody go who may, and give the minimum nodes as it is placed later; tell whether it fits."""
        for number in range(len(self._units)):
            if number not in self._gone:
                self._take([number])
        attempt = Placer(self._cluster, pods=self._pods).place_minimum(self._gang)
        if attempt.short is not None:
            return False
        for some, runs in enumerate(attempt.runs):
            for nodes, counts in runs:
                for node, count in zip(nodes, counts, strict=True):
                    self._places.append((some, node, count))
                    self._note_asked(some, node)
        return True

    def _fill(self, some: int, wanted: int) -> int:
        """Give up to so many pods of a bin nodes; return how many got one."""
        found = 0
        while found < wanted and (more := self._fill_open_nodes(some, wanted - found)):
            found += more
            if self._conflicts is None:
                break  # with rules about other pods, one that is placed may open nodes for the next
        return found

    def _fill_open_nodes(self, some: int, wanted: int) -> int:
        pod_class = self._class(some)
        line = [
            (offer[0], node)
            for node in self._offers.open_nodes(pod_class)
            if (offer := self._offers.best(node, pod_class)) is not None
        ]
        heapify(line)
        found = 0
        while line and found < wanted:
            cost, node = heappop(line)
            offer = self._offers.best(
                node, pod_class
            )  # what others have lost meanwhile may have made it another one
            if offer is None:
                continue
            if offer[0] == cost and self._take(offer[1]):
                number = min(self._offers.capacity(node, pod_class), wanted - found)
                self._put(some, node, number)
                found += number
                nodes = {node, *(each for unit in offer[1] for each in self._units[unit].holds)}
            else:
                nodes = {node}
            for each in sorted(nodes):
                if (
                    pod_class.verdicts[each] == 0
                    and (offer := self._offers.best(each, pod_class)) is not None
                ):
                    heappush(line, (offer[0], each))
        self._taken[some] += found
        return found

    def _put(self, some: int, node: int, number: int) -> None:
        self._cluster.fill([node], [number], self._class(some), self._gang.account)
        self._places.append((some, node, number))
        self._note_asked(some, node)

    def _note_asked(self, some: int, node: int) -> None:
        self._kept.setdefault(node, set()).update(column for column, _ in self._class(some).asked)

    def _leave_places(self) -> None:
        """Take the gang off its nodes again, but not its victims' room."""
        for some, node, number in self._places:
            self._cluster.fill([node], [-number], self._class(some), self._gang.account)
        self._places.clear()

    # Units that go

    def _take(self, numbers: Iterable[int]) -> bool:
        """Have units go, with those that go before them; if a queue does not yield one, none goes, and that one is not asked again."""
        taken: list[int] = []
        for number in numbers:
            for each in (*self._units[number].before, number):
                if each in self._gone:
                    continue
                unit = self._units[each]
                if each in self._refused or not self._may_go(unit):
                    self._refused |= {each, number}
                    for back in taken:
                        self._move(back, -1)
                    return False
                self._move(each, 1)
                taken.append(each)
        return True

    def _may_go(self, unit: Unit) -> bool:
        if unit.uses and any(budget.left < pods for budget, pods in unit.uses):
            return False
        return self._yields(unit.account, unit.total)

    def _move(self, number: int, sign: int) -> None:
        """Have a unit go, or with -1 come back."""
        unit = self._units[number]
        for node, holds in unit.holds.items():
            self._cluster.free[node] += np.multiply(holds, sign)
        unit.account.charge(enumerate(unit.total), -sign)
        for budget, pods in unit.uses:
            budget.left -= pods * sign
        if self._cluster.relations is not None:
            self._cluster.relations.shift(unit.marks, -sign)
        if sign > 0:
            self._gone.add(number)
        else:
            self._gone.remove(number)

    def _come_under_ceilings(self) -> bool:
        """Have units go until no queue above the gang holds more than its ceiling; tell whether that worked."""
        while (above := self._above_ceiling()) is not None:
            account, column = above
            for number, unit in enumerate(self._units):
                is_left = number not in self._gone and number not in self._refused
                if (
                    is_left
                    and unit.total[column] > 0
                    and account in unit.account.line
                    and self._take([number])
                ):
                    break
            else:
                return False
        return True

    def _above_ceiling(self) -> tuple[Account, int] | None:
        """Return a queue above the gang, or its own, that holds too much of what the gang asks for, and the column."""
        account = self._gang.account
        return next(
            (
                (each, column)
                for each in (account.line if account is not None else ())
                for column in self._asked
                if each.held[column] > each.ceiling[column]
            ),
            None,
        )

    def _spare(self) -> None:
        """Let units stay that need not go, the last first; those that go before another one go with it."""
        bound: set[int] = set()
        for number in sorted(self._gone, reverse=True):
            is_needed = bool(self._rules.all) and not self._rules.all.isdisjoint(marks(self._units[number]))
            if number not in bound and not is_needed:
                self._move(number, -1)
                if self._has_room(number) and self._above_ceiling() is None:
                    continue
                self._move(number, 1)
            bound.update(self._units[number].before)

    def _spare_with_other_places(self) -> None:
        """Let units stay without which the minimum fits on other nodes: those that came later may have left room enough.

        Of more than FEW units some are tried together.
        """
        bound: set[int] = set()
        left = sorted(self._gone, reverse=True)
        together = -(-len(left) // FEW)
        while left:
            some, left = left[:together], left[together:]
            tried = [number for number in some if number not in bound]
            for number in tried:
                self._move(number, -1)
            if Placer(self._cluster, pods=self._pods).fits(self._gang):
                continue
            for number in tried:
                self._move(number, 1)
            bound.update(each for number in some for each in self._units[number].before)

    def _has_room(self, number: int) -> bool:
        """Tell whether the pods of the gang fit beside a unit that came back."""
        return all(
            self._cluster.free[node, column] >= 0
            for node, holds in self._units[number].holds.items()
            for column in self._kept.get(node, ())
            if holds[column] > 0
        )

    def _class(self, some: int) -> PodClass:
        return self._cluster.classes[self._gang.bins[some].pod_class]
