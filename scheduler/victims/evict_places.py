"""Where an arranged gang, or a part of it, could be if units went: HyperNodes in which enough can become free, the most promising first.

Each class of pods is counted by itself, on what was free at first, so a place may turn out too small, but no suitable one is left out.
Places come first where units of the lowest tiers are enough, of these where most of what is needed has room already, then lower
tiers of HyperNodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from scheduler.engine.arrange import Need
from scheduler.engine.arrays import Matrix, Vector
from scheduler.engine.hyper_nodes import Tier, Topology
from scheduler.engine.relations import NodeSet
from scheduler.victims.units import Drawn, Unit
from scheduler.victims.victim_search import Search

LEVELS = 8
"""Into how many groups the tiers of units are put to estimate which of them have to go."""


class SearchArea(NamedTuple):
    """A place: its nodes, None for all. Places are tried in the order of the other fields.

    level   up to which group of tiers units have to go
    short   for how many pods there is no room yet
    tier    the tier of its HyperNode, counted from the lowest; all nodes together come last
    order   the number of its HyperNode
    """

    level: int
    short: int
    tier: int
    order: int
    nodes: NodeSet | None


class SearchAreas:
    """The possible places of one search with the units that were drawn."""

    def __init__(self, search: Search, drawn: Drawn) -> None:
        self._search, self._cluster, self._drawn = search, search.cluster, drawn
        self._first = search.cluster.free.copy()
        self._frees: list[Matrix] = []
        self._rooms: dict[tuple[int, int], Vector] = {}

    def inside(
        self, topology: Topology | None, needs: Sequence[Need], bins: Iterable[int], root: NodeSet | None
    ) -> list[SearchArea]:
        """Return the places within root in which each need of some bins could find room, in order; root is None for all nodes."""
        hyper_nodes = self._cluster.hyper_nodes
        if topology is None or hyper_nodes is None:
            return [SearchArea(0, 0, 0, 0, root)]
        numbers = set(bins)
        there = [node for some, node, _ in self._search.placements if some in numbers]
        occupied = np.concatenate([hyper_nodes.occupied(topology), np.asarray(there, dtype=np.int64)])
        marks = np.bincount(occupied, minlength=hyper_nodes.size)
        found: list[SearchArea] = []
        for height, tier in enumerate(hyper_nodes.up_to(topology)):
            levels, short = self._levels(tier, needs, root), self._short(tier, needs, root, 0)
            levels[tier.sums(marks) != len(occupied)] = 0
            for position in np.flatnonzero(levels).tolist():
                mask = hyper_nodes.mask(tier.first + position)
                nodes = mask if root is None else mask & root
                found.append(
                    SearchArea(int(levels[position]), int(short[position]), height, tier.first + position, nodes)
                )
        found.sort(key=lambda each: each[:4])
        if not hyper_nodes.binds(topology):
            found.append(SearchArea(LEVELS + 1, 0, len(hyper_nodes.tiers), len(hyper_nodes.named), root))
        return found

    def _levels(self, tier: Tier, needs: Sequence[Need], root: NodeSet | None) -> Vector:
        """Return, for each domain of a tier, up to which level units have to go so that all needs could fit; 0 where they never do."""
        found = np.zeros(len(tier.starts), dtype=np.int64)
        for level in range(len(self._potentials()) - 1, 0, -1):
            found[self._short(tier, needs, root, level) <= 0] = level
        return found

    def _short(self, tier: Tier, needs: Sequence[Need], root: NodeSet | None, level: int) -> Vector:
        """Return, for each domain of a tier, how many pods at least have no room when units up to a level are gone."""
        total = np.zeros(len(tier.starts), dtype=np.int64)
        for need, bins in needs:
            fit = np.zeros(len(tier.starts), dtype=np.int64)
            for pod_class, left in self._left(bins).items():
                room = self._room(pod_class, level)
                fit += np.minimum(tier.sums(room if root is None else np.where(root, room, 0)), left)
            total += np.maximum(need - fit, 0)
        return total

    def _left(self, bins: Sequence[int]) -> Counter[int]:
        """Return how many pods of some bins have no node, by class."""
        search, found = self._search, Counter[int]()
        for some in bins:
            found[search.gang.bins[some].pod_class] += search.gang.bins[some].count - search.taken[some]
        return found

    def _room(self, pod_class: int, level: int) -> Vector:
        found = self._rooms.get((pod_class, level))
        if found is None:
            free = self._potentials()[level]
            found = self._rooms[pod_class, level] = self._cluster.classes[pod_class].rooms_on(free)
        return found

    def _potentials(self) -> list[Matrix]:
        """Return what is free on each node by level: at first (0), without the units of the lowest tiers (1), and so on to all."""
        if not self._frees:
            self._frees.append(self._first)
            for units in _by_level(self._drawn.units):
                free = self._frees[-1].copy()
                nodes = [node for unit in units for node in unit.holds]
                if nodes:
                    holds = [each for unit in units for each in unit.holds.values()]
                    np.add.at(free, nodes, np.array(holds, dtype=np.int64))
                self._frees.append(free)
        return self._frees


def _by_level(units: Sequence[Unit]) -> list[list[Unit]]:
    """Return units in at most LEVELS groups, lower tiers first; there is at least one group."""
    tiers = sorted({unit.tier for unit in units})
    together = max(-(-len(tiers) // LEVELS), 1)
    level = {tier: number // together for number, tier in enumerate(tiers)}
    groups: list[list[Unit]] = [[] for _ in range(max(level.values(), default=0) + 1)]
    for unit in units:
        groups[level[unit.tier]].append(unit)
    return groups
