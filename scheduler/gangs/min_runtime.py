"""How long reclaim spares pods that were evicted for others and have started again: the argument minRuntime.

Otherwise two queues that are owed something in turn would take a node from each other forever, and neither job would finish.

* It protects each pod that started after the first eviction of its group: a pod that has run since before was not evicted,
  and the pods that a gang has beyond its minimum are taken back one by one.
* A gang may go whole once half of those pods have run that long: otherwise one pod made again and again would protect it for good.
"""

from __future__ import annotations

from collections.abc import Iterable

SECOND_MS = 1000


def stays_until(started: int, first_evicted: int, least: int) -> int:
    """Return until when a pod is spared; 0 if it started before its group was first evicted. All times are in ms.

    An API server may keep only whole seconds of when it started.
    """
    return started + least if started >= first_evicted // SECOND_MS * SECOND_MS else 0


def whole_until(stays: Iterable[int]) -> int:
    """Return until when a gang may not go whole, given until when each of its restarted pods is spared; 0 if there are none."""
    times = sorted(stays)
    return times[(len(times) - 1) // 2] if times else 0
