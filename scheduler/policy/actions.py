"""The actions of a cycle."""

from __future__ import annotations

from enum import StrEnum


class Action(StrEnum):
    """What a cycle may do; the value is Volcano's name (reference/volcano-scheduler §2)."""

    ENQUEUE = "enqueue"
    ALLOCATE = "allocate"
    BACKFILL = "backfill"
    RECLAIM = "reclaim"
    PREEMPT = "preempt"
    SHUFFLE = "shuffle"
