"""Classes of pods that are alike to the engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from scheduler.engine.arrays import Amount, Matrix, Scores, Vector, Verdicts
from scheduler.engine.cause import Lacking
from scheduler.engine.relations import Ties
from scheduler.engine.spared import Spared
from scheduler.engine.wishes import Wishes


@dataclass(frozen=True, slots=True, eq=False)
class PodClass:
    """Pods that ask for the same and may use the same nodes.

    request  (resources,)
    verdicts (nodes,) index into Cluster.exclusions; 0 = the node may be used
    foreign  amounts of resources that no node has; not empty = fits nowhere
    worth    (nodes,) what nodes are worth beside their other scores; None where all are worth the same
    avoided  (nodes,) how many reasons there are to use other nodes first; None where there are none
    ties     its marks, and its rules about other pods; None for most
    spared   what nodes keep from it for idle devices; empty for most
    wishes   what it prefers; None for most. Where these cover taints, avoided is None
    lacking  returns the label that no node has, where it alone closes all nodes; None where that is unknown
    requests the request again: (column, amount) where it asks for something
    """

    request: Vector
    verdicts: Verdicts
    foreign: tuple[tuple[str, int], ...] = ()
    ties: Ties | None = None
    avoided: Vector | None = None
    wishes: Wishes | None = None
    worth: Scores | None = None
    spared: tuple[Spared, ...] = ()
    lacking: Callable[[], Lacking | None] | None = None
    requests: tuple[Amount, ...] = field(init=False)

    def __post_init__(self) -> None:
        amounts = tuple((column, amount) for column, amount in enumerate(self.request.tolist()) if amount)
        object.__setattr__(self, "requests", amounts)

    def rooms_on(self, free: Matrix) -> Vector:
        """Return how many pods of the class would fit on each node with so much free, ignoring rules about other pods."""
        requested = self.request > 0
        rooms = np.zeros(len(free), dtype=np.int64)
        if self.foreign:
            return rooms
        is_open = self.verdicts == 0
        if not requested.any():
            rooms[is_open] = 1 << 31
        else:
            there = free[is_open][:, requested]
            rooms[is_open] = np.maximum((there // self.request[requested]).min(axis=1), 0)
        return rooms
