"""Volcano's plugin usage: busy nodes take no pods, and idle ones come first (reference/volcano-scheduler §3.11)."""

from __future__ import annotations

import numpy as np

from scheduler.engine.arrays import Scores, Verdicts
from scheduler.engine.cause import Exclusion, ExclusionKind
from scheduler.policy.policy import Usage
from scheduler.records.load import Load
from scheduler.records.records import Group
from scheduler.snapshot.snapshot import Snapshot

LOOK_MS = 15_000
"""After so long busy nodes are checked again; nothing else signals a change."""


class NodeLoads:
    """The loads of nodes in one cycle. Nodes without a measurement are open and worth nothing."""

    def __init__(self, snapshot: Snapshot, policy: Usage, now: int) -> None:
        self._policy, self._nodes, self._now = policy, snapshot.nodes, now
        self._loads = [snapshot.loads.of(name, capacity, now) for name, capacity in snapshot.nodes.capacities()]

    def kind(self, group: Group) -> None:
        """The same holds for all groups."""

    def due(self) -> int | None:
        """Return when to look again, None where no node is busy."""
        return self._now + LOOK_MS if any(self._exclusion(load) for load in self._loads) else None

    def judge(self, group: Group) -> tuple[Verdicts, Scores]:
        """Return which nodes are too busy, and what each is worth."""
        found = [self._exclusion(load) for load in self._loads]
        closed = np.array([0 if each is None else self._nodes.code(each) for each in found], dtype=np.int32)
        return closed, np.array([self._score(load) for load in self._loads], dtype=np.float64)

    def _exclusion(self, load: Load | None) -> Exclusion | None:
        limits = self._policy
        if load is not None and limits.most_cpu is not None and load.cpu > limits.most_cpu:
            return _busy("CPU", limits.most_cpu)
        if load is not None and limits.most_memory is not None and load.memory > limits.most_memory:
            return _busy("memory", limits.most_memory)
        return None

    def _score(self, load: Load | None) -> float:
        policy = self._policy
        parts = policy.cpu + policy.memory
        if load is None or not parts:
            return 0.0
        free = policy.cpu * max(100 - load.cpu, 0.0) + policy.memory * max(100 - load.memory, 0.0)
        return policy.weight * (free / parts)


def _busy(what: str, limit: int) -> Exclusion:
    text = f"the {what} load of the node exceeds the upper limit."
    return Exclusion(ExclusionKind.BUSY, text, f"above {limit} % of its {what}")
