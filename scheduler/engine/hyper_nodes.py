"""HyperNodes as the engine has them: sets of nodes, by tiers.

Tiers are tried from the lowest, in which nodes are closest together. A HyperNode is a *domain* here, known by its number, which
goes by tier, then by name. Sums over all domains of a tier take one step per node in them, however many domains there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scheduler.engine.arrays import Matrix, Vector
from scheduler.engine.relations import NodeSet

NodeList = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Topology:
    """How close together pods are to be (reference/volcano-queue-podgroup-cli §3.1).

    is_hard  pods wait rather than be further apart; otherwise it is a wish
    highest  the highest tier that they may span, None for any
    name     the name of that tier if given by name, else ""
    on       the names of nodes that hold pods already: the others join them
    """

    is_hard: bool
    highest: int | None = None
    name: str = ""
    on: tuple[str, ...] = ()


class Named(NamedTuple):
    """A HyperNode with the indices of its nodes, ascending."""

    name: str
    tier: int
    tier_name: str
    nodes: Sequence[int]


@dataclass(frozen=True, slots=True)
class Tier:
    """The domains of one tier, from `first` on; nodes[starts[i]:starts[i + 1]] are those of the i-th."""

    tier: int
    first: int
    nodes: NodeList
    starts: NodeList

    def sums(self, values: Vector | Matrix) -> NDArray[np.int64]:
        """Return for each domain the sum of what its nodes have."""
        found: NDArray[np.int64] = np.add.reduceat(values[self.nodes], self.starts, axis=0)
        return found


class HyperNodes:
    """All domains, of a cluster with nodes of these names. The whole cluster is one tier above the highest one stated."""

    def __init__(self, named: Iterable[Named], nodes: Sequence[str]) -> None:
        """Of HyperNodes without nodes only the tier counts."""
        written = sorted(named, key=lambda each: (each.tier, each.name))
        self.named = [each for each in written if each.nodes]
        self._whole = written[-1].tier + 1 if written else 1
        self._names, self.size = nodes, len(nodes)
        self._index: Mapping[str, int] | None = None
        self.tiers = [self._tier(tier) for tier in sorted({each.tier for each in self.named})]

    def binds(self, topology: Topology) -> bool:
        """Tell whether pods wait rather than use any nodes: where they are limited to tiers below the whole cluster."""
        if not topology.is_hard or (topology.highest is None and not topology.name):
            return False
        highest = self.highest(topology)
        return highest is None or highest < self._whole

    def up_to(self, topology: Topology) -> list[Tier]:
        """Return the tiers that pods may span, the lowest first; all where any nodes will do."""
        if not self.binds(topology):
            return self.tiers
        highest = self.highest(topology)
        return [tier for tier in self.tiers if highest is not None and tier.tier <= highest]

    def highest(self, topology: Topology) -> int | None:
        """Return the highest tier that pods may span; None where no tier has the given name."""
        if topology.highest is not None:
            return topology.highest
        return max((each.tier for each in self.named if each.tier_name == topology.name), default=None)

    def mask(self, domain: int) -> NodeSet:
        """Return the nodes of a domain."""
        found = np.zeros(self.size, dtype=bool)
        found[list(self.named[domain].nodes)] = True
        return found

    def occupied(self, topology: Topology) -> NodeList:
        """Return the node of each pod that has one already; unknown nodes are left out."""
        if not topology.on:
            return np.zeros(0, dtype=np.int64)
        if self._index is None:
            self._index = {name: number for number, name in enumerate(self._names)}
        there = [self._index[name] for name in topology.on if name in self._index]
        return np.asarray(there, dtype=np.int64)

    def lowest_around(self, nodes: Iterable[str]) -> str:
        """Return the name of the first HyperNode of the lowest tier that contains these nodes; "" where none does."""
        occupied = np.unique(self.occupied(Topology(False, on=tuple(nodes))))
        if len(occupied):
            marks = np.bincount(occupied, minlength=self.size)
            for tier in self.tiers:
                has_all = np.flatnonzero(tier.sums(marks) == len(occupied))
                if len(has_all):
                    return self.named[tier.first + int(has_all[0])].name
        return ""

    def _tier(self, tier: int) -> Tier:
        first = next(number for number, each in enumerate(self.named) if each.tier == tier)
        lists = [each.nodes for each in self.named if each.tier == tier]
        sizes = [len(each) for each in lists]
        nodes = np.concatenate([np.asarray(each, dtype=np.int64) for each in lists])
        return Tier(tier, first, nodes, np.cumsum([0, *sizes[:-1]]))
