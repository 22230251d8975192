"""Volcano's plugin nodegroup: queues have groups of nodes that they use, or keep off (reference/volcano-scheduler §3.11).

The node label `volcano.sh/nodegroup-name` names the group of a node. A queue's `spec.affinity` says which groups its pods use:
those that it requires or prefers and, as a last choice, those that its anti-affinity prefers to avoid. Groups that its
anti-affinity requires to avoid are closed, whatever else it says.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scheduler.engine.arrays import Scores, Verdicts
from scheduler.engine.cause import Exclusion, ExclusionKind
from scheduler.policy.policy import NodeGrouping
from scheduler.records.records import Group, GroupAffinity
from scheduler.shares.tree import QueueTree
from scheduler.snapshot.snapshot import Snapshot

LABEL = "volcano.sh/nodegroup-name"
REQUIRED, PREFERRED, AVOIDED = 100.0, 50.0, -1.0
NO_GROUP = Exclusion(ExclusionKind.NODE_GROUP, "node group label not found", "of no node group")


@dataclass(frozen=True, slots=True)
class QueueRule:
    """What holds for the pods of queues with the same affinity."""

    affinity: GroupAffinity | None

    def allows(self, group: str) -> bool:
        """Tell whether nodes of a group may be used."""
        if self.affinity is None:
            return False
        own = self.affinity
        if group in own.excluded:
            return False
        return not (own.required or own.preferred) or group in (*own.required, *own.preferred, *own.avoided)

    def takes_ungrouped(self) -> bool:
        """Tell whether nodes of no group may be used."""
        return self.affinity is None or not (self.affinity.required or self.affinity.preferred)

    def score(self, group: str, *, by_order: bool) -> float:
        """Return what nodes of a group are worth. by_order: the earlier a group is preferred, the more."""
        own = self.affinity
        if own is None:
            return 0.0
        if group in own.avoided:
            return AVOIDED
        score = REQUIRED if group in own.required else 0.0
        if group in own.preferred:
            position = own.preferred.index(group) if by_order else 0
            score += PREFERRED * (len(own.preferred) - position) / len(own.preferred)
        return score


class NodeGroups:
    """What queues say of node groups, in one cycle."""

    def __init__(self, snapshot: Snapshot, policy: NodeGrouping) -> None:
        self._snapshot, self._policy = snapshot, policy
        self._tree = QueueTree(snapshot.queues) if policy.inherits else None

    def kind(self, group: Group) -> QueueRule:
        """Return what holds for the pods of a group."""
        return self.rule(group.queue)

    def due(self) -> None:
        """Nothing changes with time."""

    def rule(self, queue: str) -> QueueRule:
        """Return what holds in a queue: its own affinity or, where configured, that of the nearest queue above it."""
        while queue:
            found = self._snapshot.queues.get(queue)
            if found is not None and found.affinity is not None:
                return QueueRule(found.affinity)
            queue = self._tree.parent(queue) if self._tree is not None else ""
        return QueueRule(None)

    def judge(self, group: Group) -> tuple[Verdicts, Scores]:
        """Return which nodes are closed to the pods of a group, and what each is worth."""
        rule, nodes = self.rule(group.queue), self._snapshot.nodes
        of_node, names = nodes.ground().domains(LABEL)
        closed = np.zeros(len(names) + 1, dtype=np.int32)
        worth = np.zeros(len(names) + 1)
        is_bound = rule.affinity is not None or self._policy.strict
        text = (
            "node group affinity not specified"
            if rule.affinity is None
            else "node does not satisfy the node group affinity"
        )
        for number, name in enumerate(names):
            if is_bound and not rule.allows(name):
                closed[number] = nodes.code(Exclusion(ExclusionKind.NODE_GROUP, text, f"of node group {name}"))
            worth[number] = rule.score(name, by_order=self._policy.by_order)
        if not rule.takes_ungrouped():
            closed[-1] = nodes.code(NO_GROUP)
        return closed[of_node], worth[of_node]
