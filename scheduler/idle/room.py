"""What nobody uses, on nodes and under the limits of queues: a naive count over the objects themselves."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from typing import NamedTuple

from kube.amounts import Amounts
from scheduler.idle import placing
from scheduler.idle.facts import ROOT_QUEUE, World
from scheduler.idle.waiting_pod import WaitingPod


class ReservedRoom(NamedTuple):
    """What a reservation holds: for which queue, what each pod requests, and how many pods on which node."""

    queue: str
    request: Amounts
    places: Mapping[str, int]


class Room:
    """What is idle and not reserved."""

    def __init__(self, world: World, reserved: Iterable[ReservedRoom]) -> None:
        self._world = world
        self._used = {name: Counter(world.used.get(name, {})) for name in world.nodes}
        self._more: defaultdict[str, Counter[str]] = defaultdict(Counter)  # queue → what is reserved for it
        self._reserved: Counter[str] = Counter()  # the reserved part that nobody uses
        self._lines: dict[str, list[str]] = {}
        self._below: defaultdict[str, list[str]] = defaultdict(list)
        for name in world.queues:
            for above in self._line(name):
                self._below[above].append(name)
        self._limits = cache(self._limits_of)
        for each in reserved:
            self._keep(*each)

    def holds(self, name: str, request: Amounts, pods: int, waiting: WaitingPod) -> bool:
        """Tell whether there is room for this many pods of a queue: on nodes that they may use, and under each queue's limit."""
        line = self._line(name)
        if self._parent(line[-1]):
            return False  # a cycle of parents is refused; if one is stored all the same, it is not judged
        requested = {resource: amount * pods for resource, amount in request.items() if amount > 0}
        return all(self._is_below(above, name, requested) for above in line) and (
            placing.room(request, waiting, self._world.nodes, self._used, pods) >= pods
        )

    def _keep(self, name: str, request: Amounts, places: Mapping[str, int]) -> None:
        for node, pods in places.items():
            if node not in self._world.nodes:
                continue
            free, used = self._world.nodes[node].offers, self._used[node]
            for resource, amount in request.items():
                idle = max(free.get(resource, 0) - used[resource], 0)
                self._reserved[resource] += min(amount * pods, idle)
                self._more[name][resource] += amount * pods
                used[resource] += amount * pods

    def _is_below(self, above: str, name: str, requested: Amounts) -> bool:
        limits = self._limits(above)
        return all(
            self._held(above, resource, name, amount) <= limits[resource]
            for resource, amount in requested.items()
            if resource in limits
        )

    def _limits_of(self, name: str) -> Amounts:
        queue = self._world.queues.get(name)
        limits = dict(queue.capability) if queue else {}
        if name == ROOT_QUEUE:
            for resource in {resource for node in self._world.nodes.values() for resource in node.offers}:
                limits[resource] = min(limits.get(resource, self._whole(resource)), self._whole(resource))
        return limits

    def _whole(self, resource: str) -> int:
        """Return how much of a resource is on nodes that take pods, plus what pods use on the others."""
        whole = 0
        for name, node in self._world.nodes.items():
            used = self._world.used.get(name, {}).get(resource, 0)
            takes = node.is_ready and not node.unschedulable
            whole += max(node.offers.get(resource, 0), used) if takes else used
        return whole

    def _held(self, name: str, resource: str, taker: str, amount: int) -> int:
        """Return what a queue would hold, including unused guarantees of queues below it, if queue `taker` took `amount` more."""
        held = self._own(name, resource)
        held += amount if name == taker else 0
        if name == ROOT_QUEUE:
            # What pods use on nodes that are in no queue is charged to root.
            on_nodes = sum(used.get(resource, 0) for used in self._world.used.values())
            in_queues = sum(each.own.get(resource, 0) for each in self._world.queues.values())
            held += max(on_nodes - in_queues, 0) + self._reserved[resource]
        else:
            held += self._more[name][resource]
        for each in self._below[name]:
            if each == name or self._world.queues[each].parent != name:
                continue
            inner = self._held(each, resource, taker, amount)
            if name == ROOT_QUEUE:  # root counts what is reserved on its own
                inner -= sum(self._more[below][resource] for below in self._below[each])
            held += max(inner, self._world.queues[each].guarantee.get(resource, 0))
        return held

    def _own(self, name: str, resource: str) -> int:
        queue = self._world.queues.get(name)
        return queue.own.get(resource, 0) if queue else 0

    def _line(self, name: str) -> list[str]:
        """Return a queue and those above it; a cycle of parents ends before it repeats."""
        if name not in self._lines:
            line, above = [], name
            while above and above not in line:
                line.append(above)
                above = self._parent(above)
            self._lines[name] = line
        return self._lines[name]

    def _parent(self, name: str) -> str:
        queue = self._world.queues.get(name)
        return queue.parent if queue else ""
