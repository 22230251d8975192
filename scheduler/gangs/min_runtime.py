"""For how long what was evicted for others, and has started again, is left alone by reclaim: the argument minRuntime.

Two queues that are owed something in turn would otherwise take a node from each other for ever, and neither job would come to an end.

* It is about the pods that started after the first eviction of their group, each by itself: whoever has run since before that was not
  evicted, and what a gang has beyond its minimum is taken back pod by pod.
* A gang goes whole when half of those have run for so long: else one pod that is made again and again would keep it for good.
"""

from __future__ import annotations

from collections.abc import Iterable

SECOND_MS = 1000


def stays_until(started: int, first_evicted: int, least: int) -> int:
    """Return until when a pod is left alone that got its node at a time, 0 where it has run since before the eviction; all in ms.

    An API server may keep whole seconds of when it started.
    """
    return started + least if started >= first_evicted // SECOND_MS * SECOND_MS else 0


def whole_until(stays: Iterable[int]) -> int:
    """Return until when a gang does not go whole, given until when those of its pods are left alone that started again."""
    times = sorted(stays)
    return times[(len(times) - 1) // 2] if times else 0
