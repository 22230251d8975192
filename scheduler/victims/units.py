"""Units: pods that may be evicted, as the search for victims sees them.

Looking at all units of a large cluster takes long, and the first ones mostly do. So they are drawn as needed: some times as
much as the gang asks for, then more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from scheduler.engine.accounts import Account
from scheduler.engine.cluster import Cluster
from scheduler.engine.gang import Gang
from scheduler.engine.relations import Marked

_DRAWN, _MORE = 4, 8  # times what the gang asks for; so many times as much when that was too little
_LEAST_WITH_RULES = (
    256  # units for a gang with rules about other pods: what it asks for does not tell who is in its way
)


@dataclass(slots=True, eq=False)
class Allowance:
    """How many pods may still go for the sake of a budget, which `name` says in words.

    enough: it has as many healthy pods as it needs, so one that is not healthy does not count.
    """

    name: str
    left: int
    enough: bool = False


@dataclass(slots=True, eq=False)
class Unit:
    """Pods that go together or stay. Nobody changes it; to have that checked would double what making one costs.

    holds    what leaves each node, by column
    total    the same on all nodes together
    pods     how many they are
    account  that of their queue
    tier     units of a lower one go first
    before   the numbers of units that go as well when this one does
    uses     for which budgets its pods count, and how many of them
    marks    what its pods count as on their nodes, for rules about other pods
    """

    holds: Mapping[int, Sequence[int]]
    total: Sequence[int]
    pods: int
    account: Account
    tier: int = 0
    before: tuple[int, ...] = ()
    uses: tuple[tuple[Allowance, int], ...] = ()
    marks: tuple[Marked, ...] = ()


class Drawn:
    """Units as far as they were drawn, also by the nodes on which they hold something."""

    def __init__(self, units: Iterable[Unit], gang: Gang, cluster: Cluster) -> None:
        self._left: Iterator[Unit] = iter(units)
        self._wanted = [0] * cluster.free.shape[1]
        for some in gang.bins:
            for column, amount in cluster.classes[some.pod_class].requests:
                self._wanted[column] += amount * some.count
        self._least = _LEAST_WITH_RULES if cluster.has_rules(gang) else 0
        self._held = [0] * len(self._wanted)
        self._times = _DRAWN
        self.units: list[Unit] = []
        self.on_node: dict[int, list[int]] = {}

    def draw(self) -> bool:
        """Draw more units; tell whether there may be others."""
        enough = [wanted * self._times for wanted in self._wanted]
        lacking = 0  # the first column of which too little is held: what is held only grows
        for unit in self._left:
            number = len(self.units)
            self.units.append(unit)
            for node in unit.holds:
                self.on_node.setdefault(node, []).append(number)
            for column, amount in enumerate(unit.total):
                self._held[column] += amount
            while lacking < len(enough) and self._held[lacking] >= enough[lacking]:
                lacking += 1
            if lacking == len(enough) and number + 1 >= self._least:
                self._times *= _MORE
                return True
        return False
