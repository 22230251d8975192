"""Units: pods that may be evicted, as the search for victims sees them.

Looking at all units of a large cluster takes long, and the first ones are mostly enough. So they are drawn as needed: a few times
what the gang requests, then more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from scheduler.engine.accounts import Account
from scheduler.engine.cluster import Cluster
from scheduler.engine.gang import Gang
from scheduler.engine.relations import Marked

_DRAWN, _MORE = 4, 8  # times what the gang requests, and the factor for each further draw
_LEAST_WITH_RULES = 256  # units for a gang with rules about other pods: its request does not tell what is in its way


@dataclass(slots=True, eq=False)
class Allowance:
    """How many pods a budget still allows to go; name is the budget in words.

    enough: it has as many healthy pods as it needs, so an unhealthy one does not count.
    """

    name: str
    left: int
    enough: bool = False


@dataclass(slots=True, eq=False)
class Unit:
    """Pods that go together or stay. It is never changed; `frozen` would double the cost of making one.

    holds    what its pods hold on each node, by column
    total    the same on all nodes together
    pods     how many pods it has
    account  the account of their queue
    tier     units of a lower tier go first
    before   the numbers of units that go too when this one does
    uses     the budgets for which its pods count, with how many of them
    marks    the marks of its pods by node, for rules about other pods
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
    """The units drawn so far, also by the nodes on which they hold something."""

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
        """Draw more units; tell whether there may be more."""
        enough = [wanted * self._times for wanted in self._wanted]
        lacking = 0  # the first column of which too little is held; it never moves back, as what is held only grows
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
