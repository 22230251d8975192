"""When pods on nodes are expected to end, by what their jobs say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from kube.meta import parse_time
from kube.usage import ROOT_QUEUE
from scheduler.cycle.world import World
from scheduler.engine.accounts import Account
from scheduler.engine.arrays import Vector
from scheduler.engine.gang import Attempt
from scheduler.engine.soonest import Leaver
from scheduler.gangs.half_bound import SCHEDULED
from scheduler.policy.arguments import duration_of
from scheduler.records.records import Group, Pod, TaskStatus


class Departure(NamedTuple):
    """A pod of a group that holds a node, or gets one in this cycle, and when it ends (ms), None where that is unknown."""

    end: int | None
    group: str
    leaver: Leaver


def begun(group: Group) -> int | None:
    """Return since when (ms) a group's minimum has had its nodes, None where it has not."""
    for each in group.conditions:
        if each.type == SCHEDULED and each.status == "True":
            try:
                return parse_time(each.last_transition_time)
            except ValueError:
                return None
    return None


def end_of(group: Group, assumed: int | None = None) -> int | None:
    """Return when a group ends by its runningEstimate (ms), None where it states none or does not run.

    assumed: the start to assume (ms) for a group that does not run yet.
    """
    estimate, start = duration_of(group.estimate), begun(group)
    start = assumed if start is None else start
    return None if estimate is None or start is None else start + estimate


def held_on(world: World, nodes: Collection[int]) -> dict[int, list[tuple[Account, Vector]]]:
    """Return what pods of groups hold on each of these nodes, with the account that it is charged to."""
    found: dict[int, list[tuple[Account, Vector]]] = {}
    snapshot, accounts = world.snapshot, world.accounts
    numbers = {name: node for name, node in snapshot.nodes.numbers().items() if node in nodes}
    for key in snapshot.groups.holding:
        for pod in snapshot.groups[key].holders.values():
            if (node := numbers.get(pod.node)) is not None:
                account = accounts.get(snapshot.usage.queue_of(pod)) or accounts[ROOT_QUEUE]
                found.setdefault(node, []).append((account, snapshot.nodes.vector(pod.shape)))
    return found


class Departures:
    """The pods of groups on nodes in the order in which they are expected to leave.

    Pods that are terminating come first, then those with a known end. Those without come last, node by node, starting where the
    fewest such pods are.
    """

    def __init__(self, world: World, assumed: Mapping[str, Attempt] | None = None) -> None:
        """assumed are the attempts by which pods get nodes in this cycle, by group key."""
        self._world, self._assumed = world, assumed or {}

    def but(self, group: Group) -> Sequence[Departure]:
        """Return all but those of one group."""
        return [each for each in self.ordered if each.group != group.key]

    def on(self, node: int) -> Sequence[Departure]:
        """Return those on one node."""
        return self._by_node.get(node, ())

    @cached_property
    def ordered(self) -> list[Departure]:
        """All of them."""
        dated: list[tuple[int, str, Departure]] = []
        undated: list[tuple[str, Departure]] = []
        for name, is_going, departure in (*self._of_bound(), *self._of_assumed()):
            if departure.end is None:
                undated.append((name, departure))
            else:
                dated.append((0 if is_going else departure.end, name, departure))
        dated.sort(key=lambda each: each[:2])
        on_node = Counter(each.leaver.node for _, each in undated)

        def order(each: tuple[str, Departure]) -> tuple[int, int, str]:
            node = each[1].leaver.node
            return on_node[node], -1 if node is None else node, each[0]

        undated.sort(key=order)
        return [each for *_, each in dated] + [each for _, each in undated]

    def _of_bound(self) -> Iterator[tuple[str, bool, Departure]]:
        """Yield the pods bound in earlier cycles: the key, whether it is terminating, the departure."""
        vectors, numbers = self._world.snapshot.nodes.vector, self._world.snapshot.nodes.numbers()
        for key in self._world.snapshot.groups.holding:
            group = self._world.snapshot.groups[key]
            end = end_of(group) if group.exists else None
            for name, pod in group.holders.items():
                leaver = Leaver(numbers.get(pod.node), vectors(pod.shape), self._account(group, pod))
                is_going = pod.status is TaskStatus.RELEASING
                yield name, is_going, Departure(self._world.now if is_going else end, key, leaver)

    def _of_assumed(self) -> Iterator[tuple[str, bool, Departure]]:
        """Yield the same for pods that get nodes in this cycle."""
        for key, attempt in self._assumed.items():
            group = self._world.snapshot.groups[key]
            end = end_of(group, self._world.now)
            for number, some in enumerate(self._world.snapshot.layout_of(group).pod_sets):
                vector = self._world.snapshot.nodes.vector(some.shape)
                for pod, node in zip(some.pods, attempt.nodes(number).tolist(), strict=False):
                    leaver = Leaver(node, vector, self._account(group, pod))
                    yield pod.key, False, Departure(end, key, leaver)

    def _account(self, group: Group, pod: Pod) -> Account:
        queue = group.queue if group.exists else self._world.snapshot.usage.queue_of(pod)
        return self._world.accounts.get(queue) or self._world.accounts[ROOT_QUEUE]

    @cached_property
    def _by_node(self) -> dict[int, list[Departure]]:
        found: dict[int, list[Departure]] = {}
        for each in self.ordered:
            if each.leaver.node is not None:
                found.setdefault(each.leaver.node, []).append(each)
        return found
