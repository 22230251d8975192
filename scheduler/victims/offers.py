"""What room for one more pod on a node costs: which units have to go, and how much is lost with them.

First the units that rules about other pods require to go are taken (`scheduler.victims.conflicts`), then units on the node, in order,
until it has enough of what the pod requests.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

import numpy as np

from scheduler.engine.cluster import Cluster
from scheduler.engine.pod_class import PodClass
from scheduler.engine.relations import NodeSet
from scheduler.engine.spared import left, left_of
from scheduler.victims.conflicts import Conflicts
from scheduler.victims.units import Allowance, Drawn, Unit

Cost = tuple[int, int, int]
"""What is lost: the highest tier, the number of pods, the last unit."""

NOTHING: Cost = (-1, 0, -1)


class Offers:
    """What nodes offer as the cluster stands. gone are the units that go already, refused those that may not; the caller updates both."""

    def __init__(
        self, cluster: Cluster, drawn: Drawn, gone: Set[int], refused: Set[int], conflicts: Conflicts | None
    ) -> None:
        """conflicts is None unless the gang has rules about other pods."""
        self._cluster, self._gone, self._refused, self._conflicts = cluster, gone, refused, conflicts
        self._units, self._on_node = drawn.units, drawn.on_node
        self._holding = np.zeros(len(cluster.free), dtype=bool)
        self._holding[list(drawn.on_node)] = True

    def open_nodes(self, pod_class: PodClass, among: NodeSet | None = None) -> list[int]:
        """Return the nodes, of `among` or of all, that a class may use and that have room, or units that may go."""
        if pod_class.foreign:
            return []
        is_open = pod_class.verdicts == 0
        nodes = np.flatnonzero(is_open if among is None else is_open & among)
        hopeful = self._holding[nodes]
        if not hopeful.all():
            columns = [column for column, _ in pod_class.requests]
            free = left(self._cluster.free[nodes], pod_class.spared)[:, columns]
            hopeful |= np.all(free >= pod_class.request[columns], axis=1)
        open_nodes: list[int] = nodes[hopeful].tolist()
        return open_nodes

    def best(self, node: int, pod_class: PodClass) -> tuple[Cost, list[int]] | None:
        """Return what room for one more pod on a node costs, and which units go; None where there can be none."""
        opposed = self._opposed(node, pod_class)
        if opposed is None:
            return None
        free = self._cluster.free[node].tolist()
        short = _short(free, pod_class)
        if not short and not opposed:
            return NOTHING, []
        chosen: list[int] = []
        used: dict[Allowance, int] = {}
        for number in opposed:
            unit = self._units[number]
            if number in self._refused or not _spends(unit, used):
                return None
            chosen.append(number)
            if node in unit.holds:
                short = _without(short, free, unit.holds[node], pod_class)
                free = _after(free, unit.holds[node], pod_class)
        for number in self._on_node.get(node, ()) if short else ():
            unit = self._units[number]
            holds = unit.holds[node]
            if number in self._gone or number in self._refused or number in opposed:
                continue
            less = _without(short, free, holds, pod_class)
            if not _helps(less, short, pod_class) or (unit.uses and not _spends(unit, used)):
                continue
            chosen.append(number)
            short, free = less, _after(free, holds, pod_class)
            if not short:
                break
        return None if short else (self._cost(chosen), chosen)

    def _opposed(self, node: int, pod_class: PodClass) -> Sequence[int] | None:
        """Return the units that have to go because of a class's rules about other pods; None where no eviction opens the node."""
        if self._conflicts is None or pod_class.ties is None:
            return ()
        return self._conflicts.in_the_way(pod_class.ties, node, self._gone)

    def _cost(self, chosen: Sequence[int]) -> Cost:
        """Return what is lost with some units, and with those that go along with them."""
        tier = lost = 0
        for number in chosen:
            unit = self._units[number]
            tier = max(tier, unit.tier)
            lost += unit.pods
            if unit.before:
                also = (each for each in unit.before if each not in self._gone and each not in chosen)
                lost += sum(self._units[each].pods for each in also)
        return tier, lost, chosen[-1]

    def capacity(self, node: int, pod_class: PodClass) -> int:
        """Return how many pods fit on a node before it has to be looked at again."""
        if self._conflicts is not None and pod_class.ties is not None and pod_class.ties.moves_itself:
            return 1
        free = left_of(self._cluster.free[node].tolist(), pod_class.spared)
        return min((free[column] // amount for column, amount in pod_class.requests if amount > 0), default=1)


def _short(free: list[int], pod_class: PodClass) -> dict[int, int]:
    """Return what a node lacks for one more pod, by column."""
    there = left_of(free, pod_class.spared)
    return {column: amount - there[column] for column, amount in pod_class.requests if amount > there[column]}


def _without(short: dict[int, int], free: list[int], holds: Sequence[int], pod_class: PodClass) -> dict[int, int]:
    """Return what is still short without a unit that holds this much; `short` itself when the unit holds none of it."""
    for column in short:
        if holds[column] > 0:
            if pod_class.spared:  # CPU and memory are spared for the devices that it leaves idle
                return _short(_after(free, holds, pod_class), pod_class)
            return {each: amount - holds[each] for each, amount in short.items() if amount > holds[each]}
    return short


def _after(free: list[int], holds: Sequence[int], pod_class: PodClass) -> list[int]:
    """Return what is free when a unit is gone; unchanged unless something is spared for idle devices, as only then it is needed."""
    return [some + more for some, more in zip(free, holds, strict=True)] if pod_class.spared else free


def _helps(less: dict[int, int], short: dict[int, int], pod_class: PodClass) -> bool:
    """Tell whether evicting a unit, after which `less` is short, helps: one with devices may cause more to be spared than it frees."""
    return less is not short and (not pod_class.spared or sum(less.values()) < sum(short.values()))


def _spends(unit: Unit, used: dict[Allowance, int]) -> bool:
    """Tell whether budgets allow a unit to go besides what is used of them already; if so, count it as used."""
    if any(budget.left - used.get(budget, 0) < pods for budget, pods in unit.uses):
        return False
    for budget, pods in unit.uses:
        used[budget] = used.get(budget, 0) + pods
    return True
