"""Whom to evict so that the minimum of a gang fits: as few as possible, those first that may go first.

The cluster is as it will be when all is gone that is going (`scheduler.engine.leaving`). Pods of the gang get nodes one by
one, each the node where the least is lost: first nodes with room, then those where units of the lowest tier make some, of
these where the fewest pods go, then where the youngest go. A unit that goes leaves room on all of its nodes, which the next pods
find there. Then units go whose queues have to use less, if a ceiling is in the way. No unit goes that would take a budget more pods than it allows. In the end it is tried for each unit, the last
first, whether it can stay after all. The answer counts only if `Placer.place_minimum`, which places the gang later, finds room for it then.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

import numpy as np

from scheduler.engine.place import Placer
from scheduler.engine.units import Drawn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from scheduler.engine.accounts import Account
    from scheduler.engine.cluster import Cluster, PodClass
    from scheduler.engine.gang import Attempt, Gang
    from scheduler.engine.units import Allowance, Unit

    Yields = Callable[[Account, Sequence[int]], bool]
    """Whether pods that hold so much may be taken from a queue, as it stands."""

    Cost = tuple[int, int, int]
    """What is lost: the highest tier, the number of pods, the last unit."""

FEW = 64
"""Of so many units each is tried with all nodes anew whether it can stay, which takes about 1 ms on thousands of nodes."""
_NOTHING: Cost = (-1, 0, -1)


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
            return search.run(search.settle_at_any_cost)


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

    def run(self, settle: Callable[[], bool]) -> tuple[list[int], Attempt] | None:
        """Settle the gang, spare what need not go, and have it placed; take all back if that does not work."""
        free = self._cluster.free.copy()
        if settle() and self._come_under_ceilings():
            self._spare()
            self._leave_places()
            if len(self._gone) <= FEW:
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
        self._gone.clear()
        self._refused.clear()
        self._kept.clear()
        self._cluster.free[:] = free
        return None

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
        pod_class = self._class(some)
        line = [
            (offer[0], node)
            for node in self._open_nodes(pod_class)
            if (offer := self._offer(node, pod_class)) is not None
        ]
        heapify(line)
        found = 0
        while line and found < wanted:
            cost, node = heappop(line)
            offer = self._offer(
                node, pod_class
            )  # what others have lost meanwhile may have made it another one
            if offer is None:
                continue
            if offer[0] == cost and self._take(offer[1]):
                number = min(self._capacity(node, pod_class), wanted - found)
                self._put(some, node, number)
                found += number
                nodes = {node, *(each for unit in offer[1] for each in self._units[unit].holds)}
            else:
                nodes = {node}
            for each in sorted(nodes):
                if pod_class.verdicts[each] == 0 and (offer := self._offer(each, pod_class)) is not None:
                    heappush(line, (offer[0], each))
        self._taken[some] += found
        return found

    def _open_nodes(self, pod_class: PodClass) -> list[int]:
        """Return the nodes that pods of a class may use and on which there is room, or something that may go."""
        if pod_class.foreign:
            return []
        asked = [column for column, _ in pod_class.asked]
        hopeful = np.all(self._cluster.free[:, asked] >= pod_class.request[asked], axis=1)
        hopeful[list(self._on_node)] = True
        open_nodes: list[int] = np.flatnonzero(hopeful & (pod_class.verdicts == 0)).tolist()
        return open_nodes

    def _offer(self, node: int, pod_class: PodClass) -> tuple[Cost, list[int]] | None:
        """Return what is lost when a node is to have room for one more pod, and which units go; None if it cannot have it."""
        free = self._cluster.free[node].tolist()
        short = {column: amount - free[column] for column, amount in pod_class.asked if amount > free[column]}
        if not short:
            return _NOTHING, []
        chosen: list[int] = []
        used: dict[Allowance, int] = {}
        tier = lost = 0
        for number in self._on_node.get(node, ()):
            unit = self._units[number]
            holds = unit.holds[node]
            if number in self._gone or number in self._refused or not any(holds[c] > 0 for c in short):
                continue
            if unit.uses and not _spends(unit, used):
                continue
            chosen.append(number)
            tier = max(tier, unit.tier)
            also = (each for each in unit.before if each not in self._gone and each not in chosen)
            lost += unit.pods + sum(self._units[each].pods for each in also)
            short = {column: left - holds[column] for column, left in short.items() if left > holds[column]}
            if not short:
                return (tier, lost, number), chosen
        return None

    def _capacity(self, node: int, pod_class: PodClass) -> int:
        free = self._cluster.free[node].tolist()
        return min((free[column] // amount for column, amount in pod_class.asked if amount > 0), default=1)

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
        return all(budget.left >= pods for budget, pods in unit.uses) and self._yields(
            unit.account, unit.total
        )

    def _move(self, number: int, sign: int) -> None:
        """Have a unit go, or with -1 come back."""
        unit = self._units[number]
        for node, holds in unit.holds.items():
            self._cluster.free[node] += np.multiply(holds, sign)
        unit.account.charge(enumerate(unit.total), -sign)
        for budget, pods in unit.uses:
            budget.left -= pods * sign
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
            if number not in bound:
                self._move(number, -1)
                if self._has_room(number) and self._above_ceiling() is None:
                    continue
                self._move(number, 1)
            bound.update(self._units[number].before)

    def _spare_with_other_places(self) -> None:
        """Let units stay without which the minimum fits on other nodes: those that came later may have left room enough."""
        bound: set[int] = set()
        for number in sorted(self._gone, reverse=True):
            if number not in bound:
                self._move(number, -1)
                placer = Placer(self._cluster, pods=self._pods)
                attempt = placer.place_minimum(self._gang)
                if attempt.short is None:
                    placer.undo(self._gang, attempt)
                    continue
                self._move(number, 1)
            bound.update(self._units[number].before)

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


def _spends(unit: Unit, used: dict[Allowance, int]) -> bool:
    """Tell whether budgets allow a unit to go beside what is used of them already; if so it is used as well."""
    if any(budget.left - used.get(budget, 0) < pods for budget, pods in unit.uses):
        return False
    for budget, pods in unit.uses:
        used[budget] = used.get(budget, 0) + pods
    return True
