"""Ordinary pods fill one part of the network after the other, so that whole HyperNodes stay free for jobs that ask for them
(reference/volcano-scheduler §3.12, `hypernode.binpack.normal-pod`).

A node is worth more the fuller its HyperNodes are, those of lower tiers first, as they were when the cycle began.
"""

from __future__ import annotations

import numpy as np

from scheduler.cycle.weights import packed_columns
from scheduler.engine.arrays import Scores, Verdicts
from scheduler.engine.hyper_nodes import Tier
from scheduler.policy.policy import Packing
from scheduler.records.records import Group
from scheduler.snapshot.snapshot import Snapshot


class HyperNodePacking:
    """What nodes are worth to ordinary pods, in one cycle."""

    def __init__(self, snapshot: Snapshot, policy: Packing) -> None:
        self._snapshot, self._policy = snapshot, policy

    def kind(self, group: Group) -> bool:
        """Return whether the pods of a group are ordinary: they ask for no HyperNode."""
        view = group.view
        return view is None or not (view.spec.network_topology or any(each.network_topology for each in group.policies))

    def due(self) -> None:
        """Nothing changes with time."""

    def judge(self, group: Group) -> tuple[Verdicts, Scores]:
        """Return that no node is closed, and what each is worth to the pods of a group: 0 to 100 times the weight."""
        nodes = len(self._snapshot.nodes.names())
        closed, worth = np.zeros(nodes, dtype=np.int32), np.zeros(nodes)
        tiers = self._snapshot.hyper_nodes().tiers if self.kind(group) else ()
        whole, weight = 0.0, 1.0
        for tier in tiers:
            worth += weight * self._fullness(tier, nodes)
            whole += weight
            weight *= self._policy.fading
        return closed, worth * (100 * self._policy.weight / whole) if whole else worth

    def _fullness(self, tier: Tier, nodes: int) -> Scores:
        """Return for each node how full its HyperNode of a tier is, of several the fullest; 1 where it is in none."""
        packed = packed_columns(self._snapshot.policy, self._snapshot.nodes.columns)
        allocatable, free = self._snapshot.nodes.matrices()
        fullness = np.zeros(len(tier.starts))
        for column, weight in packed:
            whole = tier.sums(allocatable[:, column])
            used = whole - tier.sums(free[:, column])
            fullness += weight * np.where((used <= whole) & (whole > 0), used / np.maximum(whole, 1), 0.0)
        fullness /= max(sum(weight for _, weight in packed), 1)
        found = np.full(nodes, -1.0)
        sizes = np.diff(np.append(tier.starts, len(tier.nodes)))
        np.maximum.at(found, tier.nodes, np.repeat(fullness, sizes))
        return np.where(found < 0, 1.0, found)
