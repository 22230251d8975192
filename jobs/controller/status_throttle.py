"""Many jobs at once: what each would be told first is left out while it is likely to be replaced at once.

A new job is told that it waits for its queue in the round that makes its pod group. A scheduler that has room lets the
group in some milliseconds later, and the status that comes with the job's pods replaces it. One job has both. Of
thousands each such row delays all that come after, so in a large batch the first is only written when the scheduler has read the
pod group and left it where it is. By time alone a slow machine would write more rows for each job than a quick one, and
become slower by them.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import NamedTuple

from cluster.writes import Timer

LARGE_BATCH = 100  # jobs to be planned in one transaction; up to so many are told everything
REPORT_MS = 2000  # after which a job is told that it waits, if the scheduler has read its pod group
LONGEST_MS = 10_000  # after which it is told in any case: then pages say as well that a controller is late
STATUS_TIMER = "say"  # the kind of the timer for that, one for all jobs of a shard


class UnreportedJob(NamedTuple):
    """A job without its first status: since when and until when (epoch ms), and the newest revision of its pod group, 0 until it is read."""

    since: int
    due: int
    group_revision: int = 0


UnreportedJobs = MutableMapping[str, UnreportedJob]
"""By the jobs' keys."""


def add(unreported: UnreportedJobs, key: str, now: int) -> None:
    """Note that a job's first status was left out."""
    unreported.setdefault(key, UnreportedJob(now, now + REPORT_MS))


def is_due(unreported: UnreportedJobs, key: str, now: int) -> bool:
    """Say whether a job is to be told now. A time further off was noted before the clock was set back."""
    return key in unreported and not now < unreported[key].due <= now + REPORT_MS


def take_due(unreported: UnreportedJobs, now: int, scheduler_position: Callable[[], int]) -> list[str]:
    """Return the keys of the jobs that are to be told now; those whose pod group the scheduler has not read are put off.

    scheduler_position: returns the revision up to which it has read, and decided.
    """
    due = [key for key in unreported if is_due(unreported, key, now)]
    position = scheduler_position() if due else 0
    ready = []
    for key in due:
        job = unreported[key]
        has_waited = not now - LONGEST_MS < job.since <= now
        if has_waited or 0 < job.group_revision <= position:
            ready.append(key)
        else:
            unreported[key] = job._replace(due=now + REPORT_MS)
    return ready


def timers(unreported: UnreportedJobs, now: int) -> list[Timer]:
    """Return the timer that brings the first of the others back; what is late has been planned or comes by itself."""
    due = min((job.due for key, job in unreported.items() if not is_due(unreported, key, now)), default=None)
    return [] if due is None else [Timer(STATUS_TIMER, "", due)]
