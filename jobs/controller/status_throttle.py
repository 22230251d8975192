"""Large batches of jobs: the first status of each is left out while it is likely to be replaced at once.

The round that makes a new job's pod group would also write the status that the job waits for its queue. If there is
room, the scheduler admits the group some milliseconds later, and the status that comes with the job's pods replaces the
first. A single job gets both. With thousands of jobs each such row delays all that follow, so in a large batch the first
is only written once the scheduler has read the pod group and left it waiting. A rule by time alone would make a slow
machine write more rows per job than a fast one, and so become slower still.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import NamedTuple

from cluster.writes import Timer

LARGE_BATCH = 100  # with more jobs than this to plan at once, first statuses are left out
REPORT_MS = 2000  # after which a job's first status is written, if the scheduler has read its pod group
LONGEST_MS = 10_000  # after which it is written in any case: by then pages also say that a controller is late
STATUS_TIMER = "say"  # the kind of the timer for that, one for all jobs of a shard


class UnreportedJob(NamedTuple):
    """A job without its first status: since when, and when it is due (epoch ms).

    `group_revision` is the newest revision of its pod group, 0 until it is read.
    """

    since: int
    due: int
    group_revision: int = 0


UnreportedJobs = MutableMapping[str, UnreportedJob]
"""By the jobs' keys."""


def add(unreported: UnreportedJobs, key: str, now: int) -> None:
    """Note that a job's first status was left out."""
    unreported.setdefault(key, UnreportedJob(now, now + REPORT_MS))


def is_due(unreported: UnreportedJobs, key: str, now: int) -> bool:
    """Tell whether a job's first status is due; a due time too far off was noted before the clock was set back."""
    return key in unreported and not now < unreported[key].due <= now + REPORT_MS


def take_due(unreported: UnreportedJobs, now: int, scheduler_position: Callable[[], int]) -> list[str]:
    """Return the keys of the jobs whose first status is due; put off those whose pod group the scheduler has not read.

    scheduler_position: returns the revision up to which the scheduler has read and decided.
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
    """Return the timer for the first job that is not due yet, [] if there is none; due jobs need no timer."""
    due = min((job.due for key, job in unreported.items() if not is_due(unreported, key, now)), default=None)
    return [] if due is None else [Timer(STATUS_TIMER, "", due)]
