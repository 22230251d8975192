"""The scheduler's configuration as rules read it (reference/volcano-scheduler §4.1)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Action(StrEnum):
    """What a cycle may do; the value is Volcano's name (reference/volcano-scheduler §2)."""

    ENQUEUE = "enqueue"
    ALLOCATE = "allocate"
    BACKFILL = "backfill"
    RECLAIM = "reclaim"
    PREEMPT = "preempt"


@dataclass(frozen=True, slots=True)
class Scoring:
    """How nodes with room are compared for a pod: the sum of scorers, each 0 to 100, times these weights.

    binpack favours nodes that are full of the `resources` that have a weight of their own (§3.9); least and most
    favour nodes with much or little free CPU and memory, balanced those on which both are used alike (§3.8).
    """

    binpack: int = 0
    resources: tuple[tuple[str, int], ...] = ()
    least: int = 0
    most: int = 0
    balanced: int = 0


@dataclass(frozen=True, slots=True)
class Policy:
    """What holds for one cycle.

    actions     what it may do
    overcommit  thousandths of the cluster for which groups are let in (§3.10); None: whatever room there is
    scoring     how nodes are compared; None: the fullest first, as `scheduler.engine.ranking` says
    sla         whether groups are let in for having waited long (§3.11)
    waits_ms    after how long, where they do not say it themselves; None: never
    packed      resources by which HyperNodes are compared, the fullest first, with their weights (§3.12)
    """

    actions: frozenset[Action] = frozenset(Action)
    overcommit: int | None = 1200
    scoring: Scoring | None = None
    sla: bool = False
    waits_ms: int | None = None
    packed: tuple[tuple[str, int], ...] = (("cpu", 1), ("memory", 1))


DEFAULT = Policy()
"""What holds where nobody has said anything: a job of high priority gets room on a full cluster (design §4)."""
