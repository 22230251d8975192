"""Units that are gone on trial: which ones may go, and the cluster, the queues and the budgets without them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from scheduler.engine.accounts import Account
from scheduler.engine.cluster import Cluster
from scheduler.engine.gang import Gang
from scheduler.victims.units import Unit

Yields = Callable[[Account, Sequence[int]], bool]
"""Whether pods that hold this much may be taken from a queue in its present state."""


class TrialState(NamedTuple):
    """Which units are gone, and which may not go, at some moment."""

    units: frozenset[int]
    refused: frozenset[int]


class Lost(NamedTuple):
    """What is lost with some units: their highest tier, their number of pods, and the number of the last one; -1, 0, -1 for none."""

    tier: int
    pods: int
    last: int


class Gone:
    """The units that are gone, by number; refused are those that may not go."""

    def __init__(self, cluster: Cluster, gang: Gang, units: Sequence[Unit], yields: Yields) -> None:
        """gang is the one for which units go: its queue, and those above it, have to come under their ceilings."""
        self._cluster, self._account, self._all, self._yields = cluster, gang.account, units, yields
        self._columns = sorted({c for some in gang.bins for c, _ in cluster.classes[some.pod_class].requests})
        self.units: set[int] = set()
        self.refused: set[int] = set()

    def __contains__(self, number: int) -> bool:
        """Tell whether a unit is gone."""
        return number in self.units

    def take(self, numbers: Iterable[int]) -> bool:
        """Take units away, each after those in its `before`, and tell whether all went; if one may not, none goes, and it is refused."""
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
        """Take a unit away (sign 1), or bring it back (-1)."""
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
        """Return the present state."""
        return TrialState(frozenset(self.units), frozenset(self.refused))

    def back_to(self, before: TrialState) -> None:
        """Bring back all units that went since a state."""
        for number in sorted(self.units - before.units):
            self.move(number, -1)
        self.refused.intersection_update(before.refused)

    def lost(self, staying: Collection[int] = ()) -> Lost:
        """Return what is lost with the units that are gone, except those in `staying`."""
        gone = self.units.difference(staying)
        units = [self._all[number] for number in gone]
        return Lost(
            max((unit.tier for unit in units), default=-1), sum(unit.pods for unit in units), max(gone, default=-1)
        )

    def come_under_ceilings(self) -> bool:
        """Take units away until no queue in the gang's line holds more than its ceiling; tell whether that worked."""
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
        """Return a queue in the gang's line that holds more than its ceiling of something requested, and the column; None for none."""
        for account in self._account.line if self._account is not None else ():
            for column in self._columns:
                if account.held[column] > account.ceiling[column]:
                    return account, column
        return None

    def _may_go(self, unit: Unit) -> bool:
        if unit.uses and any(budget.left < pods for budget, pods in unit.uses):
            return False
        return self._yields(unit.account, unit.total)
