"""What the policy says of nodes beyond what pods say themselves: which a group may not use, and what each is worth to it."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from scheduler.cycle.hyper_node_packing import HyperNodePacking
from scheduler.cycle.node_groups import NodeGroups
from scheduler.cycle.node_loads import NodeLoads
from scheduler.cycle.protection import Protection
from scheduler.cycle.revocable_zones import RevocableZones
from scheduler.cycle.weights import spared_of
from scheduler.decisions import Eviction
from scheduler.engine.arrays import Scores, Verdicts
from scheduler.engine.pod_class import PodClass
from scheduler.engine.relations import Ties
from scheduler.engine.wishes import Wishes
from scheduler.gangs.layout import PodSet
from scheduler.gangs.task_topology import Kinship
from scheduler.records.records import Group
from scheduler.records.shapes import PodShape
from scheduler.snapshot.snapshot import Snapshot

MAX_KINDS = 1 << 20
FIRST = 1e6
"""The weight of one point of these scores where no weights are configured: more than any fullness."""


class Source(Protocol):
    """One plugin that closes nodes, or says what they are worth."""

    def kind(self, group: Group) -> Hashable:
        """Return what is equal for groups to which the same holds."""
        ...

    def due(self) -> int | None:
        """Return when the judgement may change although nothing else does (ms), None for never."""
        ...

    def judge(self, group: Group) -> tuple[Verdicts, Scores]:
        """Return which nodes are closed to a group, as in Ruling, and what each is worth."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Ruling:
    """What holds for all pods of some groups.

    closed (nodes,) an index into Cluster.exclusions where a node may not be used, 0 elsewhere
    worth  (nodes,) what each node is worth beside its other scores
    """

    closed: Verdicts
    worth: Scores


class NodeRules:
    """The rules of one cycle. Where the policy has none, classes are those of shapes alone."""

    def __init__(self, snapshot: Snapshot, now: int) -> None:
        self._nodes = snapshot.nodes
        policy = snapshot.policy
        self._factor = FIRST if policy.scoring is None else 1.0
        self._wishes = policy.wishes
        self._spared = spared_of(policy.spared, snapshot.nodes.columns)
        self._tasks = policy.tasks.weight if policy.tasks else 0
        self._sources: list[Source] = []
        if policy.node_groups is not None:
            self._sources.append(NodeGroups(snapshot, policy.node_groups))
        if policy.usage is not None:
            self._sources.append(NodeLoads(snapshot, policy.usage, now))
        if policy.packing is not None:
            self._sources.append(HyperNodePacking(snapshot, policy.packing))
        self._zones: RevocableZones | None = None
        if policy.zones is not None:
            self._zones = RevocableZones(snapshot, policy.zones, now)
            self._sources.append(self._zones)
        self._rulings: dict[Hashable, Ruling] = {}
        self._kinds: dict[Hashable, int] = {}

    def number(self, group: Group, some: PodSet) -> int:
        """Return the class number of some pods of a group: below 0 where it depends on more than their shape."""
        number = some.shape.number
        if not self._sources and some.kinship is None:
            return number
        kind = self._kind(group), None if some.kinship is None else some.kinship.kind
        return -1 - (number * MAX_KINDS + self._kinds.setdefault(kind, len(self._kinds)))

    def pod_class(self, group: Group, some: PodSet) -> PodClass:
        """Return the class of some pods of a group."""
        found = self._nodes.pod_class(some.shape, self._wishes)
        if self._spared and not any(found.request[each.device] for each in self._spared):
            found = replace(found, spared=self._spared)
        if some.kinship is not None:
            found = self._with_kin(found, some.shape, some.kinship)
        if not self._sources:
            return found
        kind = self._kind(group)
        ruling = self._rulings.get(kind)
        if ruling is None:
            closed, worth = np.zeros(len(found.verdicts), dtype=np.int32), np.zeros(len(found.verdicts))
            for source in self._sources:
                more, score = source.judge(group)
                closed = np.where(closed == 0, more, closed)
                worth += score * self._factor
            ruling = self._rulings[kind] = Ruling(closed, worth)
        verdicts = np.where(found.verdicts == 0, ruling.closed, found.verdicts)
        return replace(found, verdicts=verdicts, worth=ruling.worth if ruling.worth.any() else None)

    def _with_kin(self, found: PodClass, shape: PodShape, kinship: Kinship) -> PodClass:
        """Return a class whose pods relate to others of their gang; avoiding taints becomes one of its wishes."""
        kin = kinship.kin(shape, self._nodes.vector, self._tasks)
        wishes = found.wishes or Wishes(self._wishes, avoided=found.avoided)
        ties = found.ties or Ties((), ())
        return replace(
            found,
            ties=Ties((*ties.marks, *kinship.marks(shape)), ties.rules),
            wishes=replace(wishes, kin=kin, moves_itself=True),
            avoided=None,
        )

    def due(self) -> int | None:
        """Return when a judgement may change although nothing else does (ms), None for never."""
        dues = [due for source in self._sources if (due := source.due()) is not None]
        return min(dues, default=None)

    def evictions(self, protection: Protection) -> tuple[list[Eviction], int | None]:
        """Return the evictions due to rules of nodes, and when to look again for more (ms, or None)."""
        if self._zones is None:
            return [], None
        found = list(self._zones.evictions(protection))
        dues = (self._zones.due(), self._zones.next_round())
        return found, min((due for due in dues if due is not None), default=None)

    def _kind(self, group: Group) -> Hashable:
        return tuple(source.kind(group) for source in self._sources)
