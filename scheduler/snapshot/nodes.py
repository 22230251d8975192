"""The nodes as matrices that follow the log.

Nodes get rows in the order of arrival, and rows are reused; columns are the
resources that nodes offer, in a fixed order. Nothing is rebuilt for a
pod: placing one adds a vector to a row. A cycle works on a copy with
the nodes sorted by name, so that history does not influence decisions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kube.amounts import Amounts
from kube.usage import request_key, value_of
from scheduler.engine.arrays import Vector, Verdicts
from scheduler.engine.cause import Constraint, Exclusion, Lacking
from scheduler.engine.cluster import OPEN
from scheduler.engine.pod_class import PodClass
from scheduler.engine.relations import NodeSet, in_all
from scheduler.engine.wishes import WishWeights
from scheduler.records.node_selection import SELECTOR, NodeFacts, NodeRule, facts_of
from scheduler.records.profiles import Profile
from scheduler.records.reading import NodeView, PodSpecView
from scheduler.records.shapes import LARGEST, PodShape, ShapeKey, readable
from scheduler.snapshot.ground import Marks, NodeGround
from scheduler.snapshot.pod_relations import PodRelations
from scheduler.snapshot.ties import Eligible, ties_of
from scheduler.snapshot.wishes import wishes_of

MAX_EXCLUSIONS = 10_000
"""With more exclusions than this all verdicts are recomputed, so that exclusions that no node has any more are forgotten."""


class EligibleNodes:
    """Which nodes the pods of one rule may use, kept up to date lazily."""

    __slots__ = ("avoided", "lacking", "matched", "rule", "seen", "verdicts")

    def __init__(self, rule: NodeRule) -> None:
        self.rule = rule
        self.seen = -1
        self.verdicts: Verdicts = np.zeros(0, dtype=np.int32)
        self.avoided: Vector = np.zeros(0, dtype=np.int64)
        self.matched: Vector = np.zeros(0, dtype=np.int64)
        self.lacking: tuple[Lacking | None] | None = None
        """The label that no node has, in a tuple, once it was looked up; None before."""


class Node:
    """One row. facts is None for a node that does not exist (any more) but that pods name."""

    __slots__ = ("allocatable", "capacity", "facts", "row", "shapes")

    def __init__(self, row: int) -> None:
        self.row = row
        self.facts: NodeFacts | None = None
        self.allocatable: Amounts = {}
        self.capacity: dict[str, Any] | None = None  # not parsed, because it is seldom needed
        self.shapes: dict[PodShape, int] = {}


class NodeTable:
    """All nodes, what they offer and what is used of it. relations are those of pods on nodes and of waiting pods."""

    def __init__(self, relations: PodRelations) -> None:
        self.relations = relations
        self._marks = Marks()
        self._ground: NodeGround | None = None
        self.columns: dict[str, int] = {}
        self._offering: Counter[str] = Counter()
        self._version = 0
        self.exclusions: list[Exclusion] = [OPEN]
        self._codes: dict[Exclusion, int] = {}
        self._nodes: dict[str, Node] = {}
        self._free_rows: list[int] = []
        self._allocatable = np.zeros((16, 0), dtype=np.int64)
        self._used = np.zeros((16, 0), dtype=np.int64)
        self._taking = np.zeros(16, dtype=bool)
        self._labels: dict[str, dict[str, str]] | None = None
        self._changed: list[str] = []
        self._eligible: dict[tuple[Any, ...], EligibleNodes] = {}
        self._shapes: dict[ShapeKey, PodShape] = {}
        self._free_numbers: list[int] = []
        self._sorted: tuple[list[str], NDArray[np.intp]] | None = None
        self._numbers: dict[str, int] = {}

    # Pods

    def shape_of(self, spec: PodSpecView, constraint: Constraint | None) -> PodShape:
        """Return the shape of a pod without a profile; the same object for equal pods as long as hold() keeps it."""
        rule_key = (bytes(spec.node_selector), bytes(spec.affinity), bytes(spec.tolerations))
        return self._shape((rule_key, request_key(spec), constraint, None))

    def with_profile(self, shape: PodShape, profile: Profile | None) -> PodShape:
        """Return the shape that differs from this one only in its profile."""
        return self._shape((*shape.key[:3], profile))

    def _shape(self, key: ShapeKey) -> PodShape:
        return self._shapes.get(key) or PodShape(key)

    def hold(self, shape: PodShape, pods: int) -> None:
        """Count pods of a shape; a shape without pods is forgotten."""
        if not shape.pods:
            shape.number = self._free_numbers.pop() if self._free_numbers else len(self._shapes)
            self._shapes[shape.key] = shape
        shape.pods += pods
        if not shape.pods:
            del self._shapes[shape.key]
            self._free_numbers.append(shape.number)
            if len(self._eligible) > 2 * len(self._shapes) + 64:
                in_use = {held.rule_key for held in self._shapes.values()}
                self._eligible = {key: eligible for key, eligible in self._eligible.items() if key in in_use}

    def occupy(self, name: str, shape: PodShape, pods: int) -> None:
        """Add pods to a node, or remove them if pods is negative."""
        node = self._nodes.get(name) or self._add(name)
        left = node.shapes.get(shape, 0) + pods
        if left:
            node.shapes[shape] = left
        else:
            del node.shapes[shape]
        self._used[node.row] += self.vector(shape) * pods
        if shape.profile is not None:
            self._marks.add(shape.profile.marks, node.row, pods)
        self._drop_if_gone(name, node)

    def vector(self, shape: PodShape) -> Vector:
        """Return a shape's request by column; resources that no node offers are put into shape.foreign."""
        if shape.version != self._version:
            shape.version = self._version
            shape.vector = self.amounts(shape.request)
            shape.foreign = tuple(
                (name, amount)
                for name, amount in sorted(shape.request.items())
                if amount > 0 and name not in self.columns
            )
        return shape.vector

    def amounts(self, some: Amounts) -> Vector:
        """Return amounts by column; resources that no node offers are left out."""
        vector = np.zeros(len(self.columns), dtype=np.int64)
        for name, amount in some.items():
            column = self.columns.get(name)
            if column is not None:
                vector[column] = min(max(amount, 0), LARGEST)
        return vector

    # Nodes

    def put(self, name: str, view: NodeView) -> None:
        """Take over a node as it is now."""
        node = self._nodes.get(name) or self._add(name)
        offered = view.status.allocatable or view.status.capacity
        if node.facts is None:
            self._sorted = None
        self._offer(node, readable(offered))
        node.capacity = view.status.capacity or view.status.allocatable
        facts = facts_of(name, view)
        if facts != node.facts:
            if node.facts is None or facts.labels != node.facts.labels:
                self._labels = None
            node.facts = facts
            self._taking[node.row] = facts.ready and not facts.unschedulable
            self._note_change(name)

    def remove(self, name: str) -> None:
        """Forget a node; pods that still name it keep being counted on it."""
        node = self._nodes.get(name)
        if node is None or node.facts is None:
            return
        node.facts = None
        self._offer(node, {})
        self._note_change(name)
        self._sorted = None
        self._drop_if_gone(name, node)

    # What a cycle works on

    def names(self) -> list[str]:
        """Return the nodes in the order of all arrays of a cycle."""
        return self._order()[0]

    def numbers(self) -> dict[str, int]:
        """Return the index of each node in names(), by its name; do not change it."""
        self._order()
        return self._numbers

    def matrices(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return fresh copies of (allocatable, free), each (nodes, resources)."""
        rows = self._order()[1]
        allocatable = self._allocatable[rows]
        return allocatable, allocatable - self._used[rows]

    def capacities(self) -> Iterator[tuple[str, Amounts]]:
        """Yield all nodes, in the order of a cycle, with their capacity."""
        for name in self.names():
            yield name, readable(self._nodes[name].capacity)

    def taking_pods(self) -> NDArray[np.bool_]:
        """Return which nodes are ready and not closed to new pods."""
        return self._taking[self._order()[1]]

    def verdicts(self, shape: PodShape) -> Verdicts:
        """Return, for each node, an index into exclusions; 0 where the shape may run."""
        eligible = self._eligible.get(shape.rule_key)
        if eligible is None:
            selector, affinity, tolerations = (value_of(raw) for raw in shape.rule_key)
            eligible = self._eligible[shape.rule_key] = EligibleNodes(NodeRule(selector, affinity, tolerations))
        self._judge(eligible)
        return eligible.verdicts[self._order()[1]]

    def pod_class(self, shape: PodShape, weights: WishWeights) -> PodClass:
        """Return the shape as a cycle places it: arrays over the current columns and nodes. weights are those of preferences."""
        verdicts = self.verdicts(shape)
        eligible, rows = self._eligible[shape.rule_key], self._order()[1]
        avoided = _if_any(eligible.avoided[rows])
        matched = _if_any(eligible.matched[rows]) if eligible.rule.prefers else None
        nodes = Eligible(
            lambda: self.verdicts(shape) != self._codes.get(SELECTOR, -1),
            lambda: self._tolerated(shape),
            lambda labels: in_all([self.ground().domains(label).of_node >= 0 for label in labels]),
        )
        wishes = wishes_of(weights, shape.profile, self.relations.leaned, nodes, matched, avoided)
        return PodClass(
            self.vector(shape),
            verdicts,
            shape.foreign,
            None if shape.profile is None else ties_of(shape.profile, self.relations.repelled, nodes),
            avoided if wishes is None and weights.first else None,
            wishes,
            lacking=lambda: self._lacking(shape),
        )

    def ground(self) -> NodeGround:
        """Return the current nodes as rules about other pods see them."""
        names, rows = self._order()
        if self._ground is None:
            facts = [self._nodes[name].facts for name in names]
            self._ground = NodeGround([each for each in facts if each is not None], rows, self._marks)
        return self._ground

    def labels(self) -> dict[str, dict[str, str]]:
        """Return the labels of all nodes, in the order of a cycle; the same object while they do not change. Do not change it."""
        names = self.names()
        if self._labels is None:
            facts = ((name, self._nodes[name].facts) for name in names)
            self._labels = {name: {} if each is None else dict(each.labels) for name, each in facts}
        return self._labels

    def _lacking(self, shape: PodShape) -> Lacking | None:
        """Return the only label that the shape needs and no node has, or None; cached until a node changes."""
        self.verdicts(shape)
        eligible = self._eligible[shape.rule_key]
        if eligible.lacking is None:
            facts = [node.facts for node in self._nodes.values() if node.facts is not None]
            eligible.lacking = (eligible.rule.lacking(facts),)
        return eligible.lacking[0]

    def _tolerated(self, shape: PodShape) -> NodeSet:
        """Return the nodes whose repelling taints the pods all tolerate."""
        self.verdicts(shape)
        rule = self._eligible[shape.rule_key].rule
        facts = (self._nodes[name].facts for name in self.names())
        return np.array([each is not None and rule.tolerates(each) for each in facts], dtype=bool)

    def used_by_node(self) -> dict[str, dict[str, int]]:
        """Return what is used on every known node, for checks."""
        return {
            name: {r: int(self._used[node.row, c]) for r, c in self.columns.items() if self._used[node.row, c]}
            for name, node in self._nodes.items()
        }

    def _order(self) -> tuple[list[str], NDArray[np.intp]]:
        if self._sorted is None:
            self._ground = self._labels = None
            names = sorted(name for name, node in self._nodes.items() if node.facts is not None)
            self._sorted = names, np.array([self._nodes[name].row for name in names], dtype=np.intp)
            self._numbers = {name: number for number, name in enumerate(names)}
        return self._sorted

    def _note_change(self, name: str) -> None:
        """Note that verdicts about a node are out of date."""
        self._ground = None
        self._changed.append(name)
        if len(self._changed) > 1000 + 4 * len(self._nodes) or len(self.exclusions) > MAX_EXCLUSIONS:
            self._changed.clear()
            # Exclusions contain the text of taints, into which some clients write times: drop those no node has any more.
            self.exclusions, self._codes = [OPEN], {}
            for eligible in self._eligible.values():
                eligible.seen = -1

    def _judge(self, eligible: EligibleNodes) -> None:
        """Bring verdicts up to date: all rows at first, later only those that changed."""
        fresh = eligible.seen < 0 or len(eligible.verdicts) != len(self._used)
        names = self._nodes if fresh else set(self._changed[eligible.seen :])
        eligible.seen = len(self._changed)
        if names:
            eligible.lacking = None
        if fresh:
            eligible.verdicts = np.zeros(len(self._used), dtype=np.int32)
            eligible.avoided = np.zeros(len(self._used), dtype=np.int64)
            eligible.matched = np.zeros(len(self._used), dtype=np.int64)
        for name in names:
            node = self._nodes.get(name)
            if node is not None and node.facts is not None:
                exclusion = eligible.rule.exclusion(node.facts)
                eligible.verdicts[node.row] = 0 if exclusion is None else self.code(exclusion)
                eligible.avoided[node.row] = eligible.rule.avoided(node.facts)
                if eligible.rule.prefers:
                    eligible.matched[node.row] = eligible.rule.matched(node.facts)

    def code(self, exclusion: Exclusion) -> int:
        """Return the index of an exclusion, adding it if it is new."""
        code = self._codes.get(exclusion)
        if code is None:
            code = self._codes[exclusion] = len(self.exclusions)
            self.exclusions.append(exclusion)
        return code

    def _add(self, name: str) -> Node:
        row = self._free_rows.pop() if self._free_rows else len(self._nodes)
        if row == len(self._used):
            self._allocatable = _taller(self._allocatable)
            self._used = _taller(self._used)
            self._taking = np.pad(self._taking, (0, len(self._taking)))
        node = self._nodes[name] = Node(row)
        return node

    def _drop_if_gone(self, name: str, node: Node) -> None:
        if node.facts is None and not node.shapes:
            del self._nodes[name]
            self._free_rows.append(node.row)

    def _offer(self, node: Node, offered: Amounts) -> None:
        if offered == node.allocatable:
            return
        self._offering.subtract(dict.fromkeys(node.allocatable, 1))
        self._offering.update(dict.fromkeys(offered, 1))
        node.allocatable = offered
        if {name for name, nodes in self._offering.items() if nodes} != self.columns.keys():
            self._set_columns()
        self._allocatable[node.row] = self.amounts(offered)

    def _set_columns(self) -> None:
        """Set the columns to the resources that some node offers. This is rare, so everything is rebuilt."""
        self._offering = +self._offering
        self.columns = {name: column for column, name in enumerate(sorted(self._offering, key=_rank))}
        self._version += 1
        self._allocatable = np.zeros((len(self._used), len(self.columns)), dtype=np.int64)
        self._used = np.zeros_like(self._allocatable)
        for node in self._nodes.values():
            self._allocatable[node.row] = self.amounts(node.allocatable)
            for shape, count in node.shapes.items():
                self._used[node.row] += self.vector(shape) * count


def _rank(resource: str) -> tuple[int, str]:
    """Order resources as people name them: CPU, memory, the special ones, pods."""
    return {"cpu": 0, "memory": 1, "pods": 3}.get(resource, 2), resource


def _if_any(counts: Vector) -> Vector | None:
    return counts if counts.any() else None


def _taller(matrix: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.pad(matrix, ((0, len(matrix)), (0, 0)))
