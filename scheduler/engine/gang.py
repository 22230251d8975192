"""The types of gangs and of what came out of placing them; `scheduler.engine.place` does that.

Which pods make the minimum is said by steps, each "at least `need` pods of
these bins, counting those that earlier steps placed". A driver of higher
priority and five executors with a minimum of 3 are the bins (driver, 1),
(executor, 5) and the steps (1, driver), (2, executor): the driver and two
executors start, or nobody does. Equal tasks share a step, so that either may
fill it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from scheduler.engine.cluster import Vector


@dataclass(frozen=True, slots=True)
class Bin:
    """`count` pods of one class that wait for nodes."""

    pod_class: int
    count: int


@dataclass(frozen=True, slots=True)
class GangStep:
    """At least `need` pods of the bins with these numbers."""

    need: int
    bins: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Gang:
    """Bins in task order, highest priority first, and the minimum as steps.

    No steps: whatever fits may start. queues are the numbers of the queue and
    of its ancestors, each with a ceiling of its own. Gangs of one level are
    equals: their minima go before the rest of any of them.
    """

    bins: tuple[Bin, ...]
    steps: tuple[GangStep, ...] = ()
    queues: tuple[int, ...] = ()
    level: int = 0


class Attempt:
    """The nodes found for one gang so far.

    short is the (step, bin) at which the minimum ran out of room, None when all of it has nodes.
    """

    __slots__ = ("runs", "short", "taken")

    def __init__(self, gang: Gang) -> None:
        self.runs: list[list[tuple[list[int], list[int]]]] = [[] for _ in gang.bins]
        self.taken = [0] * len(gang.bins)
        self.short: tuple[int, int] | None = None

    def nodes(self, bin_number: int) -> Vector:
        """Return one node index for each placed pod of the bin, in order."""
        runs = self.runs[bin_number]
        if not runs:
            return np.zeros(0, dtype=np.int64)
        return np.concatenate([np.repeat(nodes, counts) for nodes, counts in runs])

    def placed(self) -> int:
        """Return how many pods of the gang got a node."""
        return sum(self.taken)
