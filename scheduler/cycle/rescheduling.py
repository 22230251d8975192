"""Which running pods are moved: Volcano's action shuffle with the plugin rescheduling (reference/volcano-scheduler §2.7, §3.11).

A pod is evicted from a node whose requests of some resource exceed the target, and its controller recreates it. It is moved only
if that helps, as placing it in a trial shows: that has to put the pod, alone and together with the others of this round, on a
node that is little used, and no such node may come above its target. So each move takes a pod from nodes above their target for
good, and after finitely many of them nothing moves unless something else changes.

* Only pods beyond the minimum of their group that a controller recreates, and none that may not be evicted (`evictable`), that a
  budget protects or that has just started (`protection`). A group that waits for pods, or loses some, gives none.
* None of a group that is kept together in the network or has a task topology, and none with a volume of its own: where that is,
  is unknown.
* No pod is moved while a group waits for room: it would get what becomes free.
* On a node pods of the lowest priority go first, among equals the youngest, then those of a group that were to start last.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from kube.usage import value_of
from scheduler.cycle.order import by_turn
from scheduler.cycle.queue_accounts import queue_cause
from scheduler.cycle.world import World
from scheduler.decisions import MOVED, Eviction
from scheduler.engine.arrays import Vector
from scheduler.engine.gang import Bin, Gang
from scheduler.engine.place import place
from scheduler.engine.relations import NodeSet
from scheduler.gangs.gang_layout import task_order
from scheduler.gangs.layout import PodSet
from scheduler.policy.actions import Action
from scheduler.policy.rescheduling import RESOURCES, Levels, Rescheduling
from scheduler.records.records import Group, Pod, TaskStatus

MOST = 16
"""The most pods moved in one round."""
MAX_TRIED = 64
"""The most pods tried in one round; each costs about as much as placing one."""
WORDS = {"cpu": "CPU", "memory": "memory", "pods": "room for pods"}


class Move(NamedTuple):
    """A pod that may be moved, with its node and class on the cluster."""

    pod: Pod
    group: Group
    node: int
    pod_class: int


def moved(world: World) -> list[Eviction]:
    """Return which pods are evicted to be recreated elsewhere, if a round is due."""
    policy = world.policy.rescheduling
    if policy is None:
        return []
    found: list[Eviction] = []
    if _due(world, policy) <= world.now:
        world.snapshot.memory.rescheduled = world.now
        found = Moves(world, policy).found()
    world.wake_at(_due(world, policy))
    return found


def _due(world: World, policy: Rescheduling) -> int:
    """Return when the next round is due (ms); at once where the last one is dated later than now, by a clock set back."""
    last = world.snapshot.memory.rescheduled
    return last + policy.interval_ms if last <= world.now else world.now


class Moves:
    """One round: the nodes above their target, and the pods moved off them."""

    def __init__(self, world: World, policy: Rescheduling) -> None:
        """The world is as after placing, and is left so."""
        self._world, self._policy = world, policy
        self._accounts = world.accounts or world.open_accounts()
        nodes = world.snapshot.nodes
        self._names = nodes.names()
        self._columns = {name: nodes.columns[name] for name in RESOURCES if name in nodes.columns}
        self._low = ~self._above(policy.low)
        self._tried = 0

    def found(self) -> list[Eviction]:
        """Return which pods are evicted to be recreated elsewhere."""
        above = self._above(self._policy.target)
        if not above.any() or not self._low.any():
            return []
        leaving = self._world.snapshot.releasing.values()
        if any(each.get("reason") == MOVED for pod in leaving for each in value_of(pod.conditions) or ()):
            return []  # pods that were moved before have not left their nodes yet
        by_node = self._candidates(above)
        moves: list[Move] = []
        for node in sorted(by_node, key=lambda node: (-self._fullness(node), node)):
            moves += self._of_node(by_node[node], MOST - len(moves))
        while moves and not self._helps(moves):
            moves.pop()
        return [self._eviction(move) for move in moves]

    def _above(self, levels: Levels) -> NodeSet:
        """Return the nodes whose requests of some resource exceed these percentages."""
        found = np.zeros(len(self._names), dtype=bool)
        for name, column in self._columns.items():
            whole = self._world.cluster.allocatable[:, column]
            # Divided rather than multiplied: a hundred times the bytes of a node could leave the range of numbers.
            used = (whole - self._world.cluster.free[:, column]) / np.maximum(whole, 1)
            found |= used > levels.of(name) / 100
        return found

    def _fullness(self, node: int) -> float:
        """Return the requested shares of CPU and memory of a node, added up: the fullest nodes come first."""
        free, whole = self._world.cluster.free[node], np.maximum(self._world.cluster.allocatable[node], 1)
        columns = [self._columns[name] for name in ("cpu", "memory") if name in self._columns]
        return float(sum((whole[column] - free[column]) / whole[column] for column in columns))

    def _candidates(self, above: NodeSet) -> dict[int, list[Move]]:
        """Return the pods that may be moved, by node, in the order of eviction."""
        numbers = {self._names[node]: node for node in np.flatnonzero(above).tolist()}
        found: dict[int, list[Move]] = {}
        for key in sorted(self._world.snapshot.groups.holding):
            group = self._world.snapshot.groups[key]
            if not self._gives(group):
                continue
            for pod in self._world.snapshot.evictable_of(group).loose:
                node = numbers.get(pod.node)
                if node is not None and pod.controlled and not pod.claims and pod.status is TaskStatus.RUNNING:
                    alone = PodSet(0, pod.role, pod.shape, [pod])
                    found.setdefault(node, []).append(Move(pod, group, node, self._world.class_of(group, alone)))
        priority_of = self._world.snapshot.priority_of
        for some in found.values():
            some.sort(
                key=lambda move: (
                    priority_of(move.group.priority_class),
                    -task_order(move.pod, priority_of)[0],
                    -move.pod.created,
                )
            )
        return found

    def _gives(self, group: Group) -> bool:
        """Tell whether pods of a group may be moved at all: it has all of its pods, and its queue takes them again."""
        if not group.exists or group.is_arranged or group.pending or group.counts[TaskStatus.RELEASING]:
            return False
        if self._world.policy.tasks is not None and group.task_topology is not None:
            return False  # where recreated pods go depends on where the others of their gang are
        is_mixed = len({pod.revocable for pod in group.holders.values()}) > 1
        if is_mixed and self._world.policy.zones is not None:
            return False  # where recreated pods go depends on which they are (tdm)
        return group.ready() > group.min_member and queue_cause(self._world.snapshot, group) is None

    def _of_node(self, candidates: Sequence[Move], most: int) -> list[Move]:
        """Return the pods moved off one node until nothing of it is above its target, `most` at most."""
        found: list[Move] = []
        in_vain: set[tuple[str, int]] = set()
        for move in candidates:
            exceeded = self._exceeded(move.node, found)
            if not exceeded or len(found) >= most or self._tried >= MAX_TRIED:
                break
            request = self._world.cluster.classes[move.pod_class].request
            if not any(request[self._columns[name]] > 0 for name in exceeded):
                continue
            alike = move.group.key, move.pod_class
            if alike in in_vain or move.pod.key in self._world.protection.cooling(move.group):
                continue
            self._tried += 1
            if not self._helps([move]):
                in_vain.add(alike)
            elif self._world.protection.let_go(move.group, (move.pod,), 1):
                found.append(move)
        return found

    def _exceeded(self, node: int, gone: Sequence[Move]) -> list[str]:
        """Return the resources whose requests on a node exceed the target once some pods are gone."""
        free = self._world.cluster.free[node] + self._requests_of(gone)
        whole = self._world.cluster.allocatable[node]
        return [
            name
            for name, column in self._columns.items()
            if (whole[column] - free[column]) / max(whole[column], 1) > self._policy.target.of(name) / 100
        ]

    def _requests_of(self, moves: Sequence[Move]) -> Vector:
        """Return what pods ask for together."""
        total = self._world.snapshot.nodes.amounts({})
        for move in moves:
            total += self._world.cluster.classes[move.pod_class].request
        return total

    def _helps(self, moves: Sequence[Move]) -> bool:
        """Tell whether all of these pods, recreated at once, would get nodes that are little used and stay within their target."""
        for move in moves:
            self._fill(move, -1)
        # As the cycle will place them when they are recreated: group by group, in the order of their turns.
        turn = by_turn(self._world.policy, self._world.snapshot.priority_of)
        ordered = sorted(moves, key=lambda move: turn(move.group))
        gangs = [self._gang(list(some)) for _, some in groupby(ordered, key=lambda move: move.group.key)]
        attempts = place(self._world.cluster, gangs, pods=self._world.pods)
        nodes = {int(node) for each in attempts for some in range(len(each.runs)) for node in each.nodes(some)}
        chosen = sorted(nodes)
        is_whole = sum(attempt.placed() for attempt in attempts) == len(moves)
        above = self._above(self._policy.target)
        helps = is_whole and bool(self._low[chosen].all()) and not above[chosen].any()
        placer = self._world.placer()
        for gang, attempt in zip(gangs, attempts, strict=True):
            placer.undo(gang, attempt)
        for move in moves:
            self._fill(move, 1)
        return helps

    def _fill(self, move: Move, count: int) -> None:
        some = self._world.cluster.classes[move.pod_class]
        self._world.cluster.fill([move.node], [count], some, self._accounts.get(move.group.queue))

    def _gang(self, moves: list[Move]) -> Gang:
        group, nodes = moves[0].group, self._world.snapshot.nodes
        moves.sort(key=lambda move: task_order(move.pod, self._world.snapshot.priority_of))
        bins = tuple(Bin(number, len(list(some))) for number, some in groupby(moves, key=lambda move: move.pod_class))
        held = -self._requests_of(moves)
        for shape, count in group.shapes.items():
            held += nodes.vector(shape) * count
        level = self._world.snapshot.priority_of(group.priority_class)
        return Gang(bins, (), self._accounts.get(group.queue), level, tuple(held.tolist()))

    def _eviction(self, move: Move) -> Eviction:
        name = self._exceeded(move.node, ())[0]
        column = self._columns[name]
        whole = int(self._world.cluster.allocatable[move.node, column])
        used = 100 * (whole - int(self._world.cluster.free[move.node, column])) // max(whole, 1)
        message = (
            f"It is moved: {used} % of the {WORDS[name]} of its node {move.pod.node} is asked for, "
            f"above the target of {self._policy.target.of(name)} %."
        )
        return Eviction(move.pod, Action.SHUFFLE, move.group.key, message, move.group.queue)
