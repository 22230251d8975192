"""The scheduler's configuration as rules read it (reference/volcano-scheduler §4.1)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Action(StrEnum):
    """What a cycle may do; the value is Volcano's name (reference/volcano-scheduler §2)."""

    ENQUEUE = "enqueue"
    ALLOCATE = "allocate"
    BACKFILL = "backfill"
    PREEMPT = "preempt"
    RECLAIM = "reclaim"


@dataclass(frozen=True, slots=True)
class Policy:
    """What holds for one cycle: the actions that it takes."""

    actions: frozenset[Action] = frozenset(Action)


DEFAULT = Policy()
"""What holds where nobody has said anything: a job of high priority gets room on a full cluster (design §4)."""
