"""Units that are gone while it is tried whom to evict: who may go, and the cluster, the queues and the budgets without them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from scheduler.engine.accounts import Account
from scheduler.engine.cluster import Cluster
from scheduler.engine.gang import Gang
from scheduler.victims.units import Unit

Yields = Callable[[Account, Sequence[int]], bool]
"""Whether pods that hold so much may be taken from a queue, as it stands."""


class TrialState(NamedTuple):
    """Who is gone, and who may not go, at some moment."""

    units: frozenset[int]
    refused: frozenset[int]


class Lost(NamedTuple):
    """What is lost with some units: the highest of their tiers, how many pods they are, and the last of them by number; -1 for none."""

    tier: int
    pods: int
    last: int


class Gone:
    """The units that are gone, by number; refused are those that may not go."""

    def __init__(self, cluster: Cluster, gang: Gang, units: Sequence[Unit], yields: Yields) -> None:
        """gang is the one for which they go: its queue, and those above it, have to come below their ceilings."""
        self._cluster, self._account, self._all, self._yields = cluster, gang.account, units, yields
        self._columns = sorted({c for some in gang.bins for c, _ in cluster.classes[some.pod_class].requests})
        self.units: set[int] = set()
        self.refused: set[int] = set()

    def __contains__(self, number: int) -> bool:
        """Tell whether a unit is gone."""
        return number in self.units

    def take(self, numbers: Iterable[int]) -> bool:
        """Have units go, with those that go before them; if a queue does not yield one, none goes, and that one is not asked again."""
        taken: list[int] = []
        for number in numbers:
            for each in (*self._all[number].before, number):
                if each in self.units:
                    continue
                if each in self.refused or not self._may_go(self._all[each]):
                    self.refused |= {each, number}
                    for back in taken:
                        self.move(back, -1)
                    return False
                self.move(each, 1)
                taken.append(each)
        return True

    def move(self, number: int, sign: int) -> None:
        """Have a unit go, or with -1 come back."""
        unit = self._all[number]
        for node, holds in unit.holds.items():
            self._cluster.free[node] += np.multiply(holds, sign)
        unit.account.charge(enumerate(unit.total), -sign)
        for budget, pods in unit.uses:
            budget.left -= pods * sign
        if self._cluster.relations is not None:
            self._cluster.relations.shift(unit.marks, -sign)
        if sign > 0:
            self.units.add(number)
        else:
            self.units.remove(number)

    def state(self) -> TrialState:
        """Return who is gone now."""
        return TrialState(frozenset(self.units), frozenset(self.refused))

    def back_to(self, before: TrialState) -> None:
        """Have all come back who went since then."""
        for number in sorted(self.units - before.units):
            self.move(number, -1)
        self.refused.intersection_update(before.refused)

    def lost(self, staying: Collection[int] = ()) -> Lost:
        """Return what is lost with those who are gone, but for some."""
        gone = self.units.difference(staying)
        units = [self._all[number] for number in gone]
        return Lost(
            max((unit.tier for unit in units), default=-1), sum(unit.pods for unit in units), max(gone, default=-1)
        )

    def come_under_ceilings(self) -> bool:
        """Have units go until no queue above the gang holds more than its ceiling; tell whether that worked."""
        while (above := self.above_ceiling()) is not None:
            account, column = above
            for number, unit in enumerate(self._all):
                is_left = number not in self.units and number not in self.refused
                if is_left and unit.total[column] > 0 and account in unit.account.line and self.take([number]):
                    break
            else:
                return False
        return True

    def above_ceiling(self) -> tuple[Account, int] | None:
        """Return a queue above the gang, or its own, that holds too much of what the gang asks for, and the column."""
        for account in self._account.line if self._account is not None else ():
            for column in self._columns:
                if account.held[column] > account.ceiling[column]:
                    return account, column
        return None

    def _may_go(self, unit: Unit) -> bool:
        if unit.uses and any(budget.left < pods for budget, pods in unit.uses):
            return False
        return self._yields(unit.account, unit.total)
