"""Nodes as a matrix, pods as classes, queues as ceilings.

Amounts are whole numbers (cpu in thousandths, everything else in units), so
that sums are exact: two ways to count the same pods never differ.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from scheduler.engine.cause import Exclusion, ExclusionKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Vector = NDArray[np.int64]
Matrix = NDArray[np.int64]
Verdicts = NDArray[np.int16]

UNLIMITED = int(np.iinfo(np.int64).max)
"""A ceiling that no sum of pods reaches."""


OPEN = Exclusion(ExclusionKind.NONE)


@dataclass(frozen=True, slots=True, eq=False)
class PodClass:
    """Pods that ask for the same and may use the same nodes.

    request  (resources,)
    verdicts (nodes,) index into Cluster.exclusions; 0 = the node may be used
    foreign  amounts of resources that no node has; not empty = fits nowhere
    """

    request: Vector
    verdicts: Verdicts
    foreign: tuple[tuple[str, int], ...] = ()


@dataclass(slots=True, eq=False)
class Cluster:
    """What the engine places on. `free` and `rooms` shrink as it places.

    allocatable (nodes, resources)
    free        (nodes, resources), may be negative where a node shrank
    classes     what Bin.pod_class counts
    rooms       by queue number: what the queue may still take, as (resources,)
                with UNLIMITED where it has no ceiling; None = no ceiling at all
    """

    allocatable: Matrix
    free: Matrix
    classes: Sequence[PodClass] | Mapping[int, PodClass]
    rooms: Sequence[Vector | None] = ()
    exclusions: Sequence[Exclusion] = (OPEN,)
    touched: list[int] = field(default_factory=list)
    """Every node whose free amounts changed, in order, with repeats."""

    def allowed(self, request: Vector, wanted: int, queues: Sequence[int]) -> int:
        """Return how many of `wanted` pods the ceilings of the queues admit."""
        for queue in queues:
            room = self.rooms[queue]
            if room is not None:
                asked = request > 0
                wanted = min(wanted, *(room[asked] // request[asked]).tolist()) if asked.any() else wanted
        return max(wanted, 0)

    def fill(
        self, nodes: Sequence[int], counts: Sequence[int], request: Vector, queues: Sequence[int]
    ) -> None:
        """Put counts[i] pods on nodes[i]; negative counts take them away again.

        Each node may be named once only.
        """
        if not nodes:
            return
        if len(nodes) == 1:
            self.free[nodes[0]] -= request * counts[0]
        else:
            self.free[nodes] -= np.multiply.outer(np.asarray(counts, dtype=np.int64), request)
        self.touched.extend(nodes)
        for queue in queues:
            room = self.rooms[queue]
            if room is not None:
                room -= request * sum(counts)
