"""Volcano's plugin tdm: nodes of a revocable zone take revocable pods while the zone is open (reference/volcano-scheduler §3.11).

The node label `volcano.sh/revocable-zone` names the zone of a node. A pod is revocable if its annotation of that name has the
value `*`, or if it is itself preemptable. When a zone closes, its pods are evicted: of each group so many at a time as its
annotations for disruptions allow, one where it has none.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

import numpy as np

from scheduler.cycle.protection import Protection
from scheduler.decisions import Eviction
from scheduler.engine.arrays import Scores, Verdicts
from scheduler.engine.cause import Exclusion, ExclusionKind
from scheduler.policy.zones import Zones
from scheduler.records.records import Group, TaskStatus
from scheduler.snapshot.snapshot import Snapshot

LABEL = "volcano.sh/revocable-zone"
LENT = 100.0
TEXT = "not allow to dispatch to revocable node"


class RevocableZones:
    """The zones at one time."""

    def __init__(self, snapshot: Snapshot, policy: Zones, now: int) -> None:
        self._snapshot, self._policy, self._now = snapshot, policy, now
        self._of_node, self._names = snapshot.nodes.ground().domains(LABEL)
        windows = dict(policy.windows)
        self._open = {name for name in self._names if name in windows and windows[name].is_open(now)}
        self._changes = [windows[name].changes(now) for name in self._names if name in windows]

    def kind(self, group: Group) -> bool:
        """Tell whether all waiting pods of a group are revocable; where none waits, all that are on nodes."""
        return all(pod.revocable for pod in (group.pending or group.holders).values())

    def due(self) -> int | None:
        """Return when a zone opens or closes next."""
        return min(self._changes, default=None)

    def judge(self, group: Group) -> tuple[Verdicts, Scores]:
        """Return which nodes are closed to a group, and what each is worth."""
        closed = np.zeros(len(self._names) + 1, dtype=np.int32)
        worth = np.zeros(len(self._names) + 1)
        for number, name in enumerate(self._names):
            if name not in self._open:
                closed[number] = self._code(f"in the revocable zone {name}, which is closed now")
            elif self.kind(group):
                worth[number] = LENT
            else:
                closed[number] = self._code(f"in the revocable zone {name}, which is for pods that may be revoked")
        return closed[self._of_node], worth[self._of_node]

    def evictions(self, protection: Protection) -> Iterator[Eviction]:
        """Yield evictions of pods whose node's zone is closed; the snapshot remembers when that was done.

        Where budgets always protect (pdb), no pod that one protects is evicted.
        """
        shut = self._shut()
        if not shut or not self._policy.evicts or self._now < self._next_round():
            return
        for key in sorted(self._snapshot.groups.holding):
            group = self._snapshot.groups[key]
            found = self._snapshot.evictable_of(group)
            there = [
                pod for pod in (*found.loose, *found.core) if pod.node in shut and pod.status is TaskStatus.RUNNING
            ]
            if self._snapshot.policy.budgets:
                there = protection.let_go(group, there, _most(group))
            for pod in there[: _most(group)]:
                self._snapshot.memory.revoked = self._now
                message = f"Its node {pod.node} is in the revocable zone {shut[pod.node]}, which is closed now."
                yield Eviction(pod, None, group.key, message, group.queue)

    def next_round(self) -> int | None:
        """Return when to look again for pods to evict, once that was done now; None where no closed zone has any."""
        shut, groups = self._shut(), self._snapshot.groups
        holders = (pod for key in self._snapshot.groups.holding for pod in groups[key].holders.values())
        if not self._policy.evicts or not any(pod.node in shut for pod in holders):
            return None
        due = self._next_round()
        return due if due > self._now else self._now + self._policy.period_ms

    def _next_round(self) -> int:
        last = self._snapshot.memory.revoked
        return last + self._policy.period_ms if last <= self._now else 0

    def _shut(self) -> dict[str, str]:
        """Return the names of nodes in closed zones, with their zones."""
        zones = ((self._names[number] if number >= 0 else "") for number in self._of_node.tolist())
        pairs = zip(self._snapshot.nodes.names(), zones, strict=True)
        return {node: zone for node, zone in pairs if zone and zone not in self._open}

    def _code(self, words: str) -> int:
        return self._snapshot.nodes.code(Exclusion(ExclusionKind.REVOCABLE, TEXT, words))


def _most(group: Group) -> int:
    """Return how many pods of a group may be evicted at a time by its annotations for disruptions; else one."""
    notes = group.view.metadata.annotations if group.view else None
    running = group.counts[TaskStatus.RUNNING]
    if notes and notes.most_unavailable:
        over = group.counts[TaskStatus.SUCCEEDED] + group.counts[TaskStatus.FAILED]
        absent = group.total - over - running
        return max(_amount(notes.most_unavailable, group.total) - absent, 0)
    if notes and notes.least_available:
        return max(running - _amount(notes.least_available, group.total), 0)
    return 1


def _amount(written: str, whole: int) -> int:
    """Return a number, or a percentage of `whole`, rounded up; 0 where it cannot be read."""
    text = written.strip()
    number = text.removesuffix("%")
    if not number.isascii() or not number.isdigit() or len(number) > 9:
        return 0
    return int(number) if number == text else ceil(int(number) * whole / 100)
