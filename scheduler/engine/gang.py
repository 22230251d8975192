"""The types of gangs and of the results of placing them (`scheduler.engine.place`).

Steps define the minimum, each "at least `need` pods of these bins, counting those that earlier steps placed". A driver of higher
priority and five executors with a minimum of 3 are the bins (driver, 1), (executor, 5) and the steps (1, driver), (2, executor):
the driver and two executors start, or nothing does. Equal tasks share a step, so that either may fill it.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np

from scheduler.engine.accounts import Account
from scheduler.engine.arrays import Vector
from scheduler.engine.hyper_nodes import Topology
from scheduler.engine.relations import NodeSet


@dataclass(frozen=True, slots=True)
class Bin:
    """`count` pods of one class that wait for nodes; part is the number of their part, None for none."""

    pod_class: int
    count: int
    part: int | None = None


@dataclass(frozen=True, slots=True)
class GangStep:
    """At least `need` pods of the bins with these numbers."""

    need: int
    bins: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """Pods of a gang that start together or not at all (a sub-group): at least `need` of these bins.

    policy is the number of the rule that made it, by which parts are counted. A part that runs already needs no more pods, and
    others join it one by one.
    """

    name: str
    policy: int
    bins: tuple[int, ...]
    need: int
    topology: Topology | None = None


@dataclass(frozen=True, slots=True)
class PartStep:
    """At least `need` of the parts with these numbers, each as a whole."""

    need: int
    parts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Arranged:
    """What a gang asks beyond room: how close together its pods are to be, which start together, and how many such parts do."""

    topology: Topology | None = None
    parts: tuple[Part, ...] = ()
    part_steps: tuple[PartStep, ...] = ()


@dataclass(frozen=True, slots=True)
class Gang:
    """Bins in task order, highest priority first, and the minimum as steps.

    No steps: whatever fits may start. account is that of its queue, None for gangs that no queue limits. Gangs of one level are
    equals: their minima go before the rest of any of them. held is what its pods use already, by column. arranged is None for
    most: `scheduler.engine.arrange` places the others.
    """

    bins: tuple[Bin, ...]
    steps: tuple[GangStep, ...] = ()
    account: Account | None = None
    level: int = 0
    held: tuple[int, ...] = ()
    arranged: Arranged | None = None

    @property
    def topology(self) -> Topology | None:
        """How close together all of its pods are to be, None where they may be anywhere."""
        return None if self.arranged is None else self.arranged.topology

    @property
    def parts(self) -> tuple[Part, ...]:
        """Which of its pods start together among themselves."""
        return () if self.arranged is None else self.arranged.parts

    @property
    def part_steps(self) -> tuple[PartStep, ...]:
        """How many parts start with the minimum."""
        return () if self.arranged is None else self.arranged.part_steps


def minimum(gang: Gang) -> list[int]:
    """Return how many pods of each bin make the minimum if the first ones all fit; parts are in it as wholes."""
    taken = [0] * len(gang.bins)
    started = {number for number, part in enumerate(gang.parts) if part.need <= 0}
    for each in gang.part_steps:
        for number in each.parts:
            if number not in started and sum(some in started for some in each.parts) < each.need:
                started.add(number)
                _add_first(gang, taken, gang.parts[number].bins, gang.parts[number].need)
    for step in gang.steps:
        for some in step.bins:
            part = gang.bins[some].part
            missing = step.need - sum(taken[other] for other in step.bins)
            if missing > 0 and part is not None and part not in started:
                started.add(part)
                _add_first(gang, taken, gang.parts[part].bins, gang.parts[part].need)
                missing = step.need - sum(taken[other] for other in step.bins)
            _add_first(gang, taken, (some,), missing)
    return taken


def _add_first(gang: Gang, taken: list[int], bins: Sequence[int], missing: int) -> None:
    """Count up to `missing` pods of some bins as taken, the first that are left."""
    for some in bins:
        more = max(min(missing, gang.bins[some].count - taken[some]), 0)
        taken[some] += more
        missing -= more


NOBODY: AbstractSet[int] = frozenset()
"""The parts of an attempt in which none has started; most gangs have no parts."""


class Attempt:
    """The nodes found for one gang so far.

    short is the (step, bin) at which the minimum ran out of room, None when all of it has nodes. full are the bins that found no
    more room. behind is the number of the gang that the queue waits for. start are the nodes within which pods that need each
    other stay (engine.relations), None while none of them has a node; avoided are the nodes where they do not start, as earlier
    attempts were short there. For an arranged gang, allowed are the nodes to which a bin is kept, started the parts that have
    what they need, and few the step of parts at which it was short, with how many of them started.
    """

    __slots__ = ("allowed", "avoided", "behind", "few", "full", "gang", "runs", "short", "start", "started", "taken")

    def __init__(self, gang: Gang, avoided: NodeSet | None = None) -> None:
        self.gang = gang
        self.avoided = avoided
        self.start: NodeSet | None = None
        self.runs: list[list[tuple[list[int], list[int]]]] = [[] for _ in gang.bins]
        self.taken = [0] * len(gang.bins)
        self.short: tuple[int, int] | None = None
        self.full: set[int] = set()
        self.behind: int | None = None
        self.allowed: dict[int, NodeSet] | None = None
        self.started: AbstractSet[int] = NOBODY
        self.few: tuple[int, int] | None = None

    def has_minimum(self) -> bool:
        """Tell whether all pods that must start together have nodes."""
        return self.short is None and self.behind is None

    def rest(self) -> int | None:
        """Return the first bin, in task order, with pods that may still find room."""
        for number, some in enumerate(self.gang.bins):
            if self.taken[number] < some.count and number not in self.full:
                return number
        return None

    def nodes(self, bin_number: int) -> Vector:
        """Return one node index for each placed pod of the bin, in order."""
        runs = self.runs[bin_number]
        if not runs:
            return np.zeros(0, dtype=np.int64)
        return np.concatenate([np.repeat(nodes, counts) for nodes, counts in runs])

    def placed(self) -> int:
        """Return how many pods of the gang got a node."""
        return sum(self.taken)
