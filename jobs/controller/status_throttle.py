"""Many jobs at once: what each would be told first is left out while it is likely to be replaced at once.

A new job is told that it waits for its queue in the round that makes its pod group. A scheduler that has room lets the
group in some milliseconds later, and the status that comes with the job's pods replaces it. One job has both. Of
thousands each such row delays all that come after, so in a crowd the first is only written when its time has come and
nothing else was.
"""

from __future__ import annotations

from collections.abc import Mapping

from cluster.writes import Timer

CROWD = 100  # jobs to be planned in one transaction; up to so many are told everything
SAY_MS = 2000  # after which a job is told that it waits, if it does
SAY = "say"  # the kind of the timer for that, one for all jobs of a shard

Unsaid = dict[str, int]
"""Key of a job without its first status → when it gets that at the latest, in epoch ms."""


def is_due(unsaid: Mapping[str, int], key: str, now: int) -> bool:
    """Say whether a job is to be told now. A time further off was noted before the clock was set back."""
    return key in unsaid and not now < unsaid[key] <= now + SAY_MS


def late(unsaid: Mapping[str, int], now: int) -> list[str]:
    """Return the keys of the jobs that are to be told now."""
    return [key for key in unsaid if is_due(unsaid, key, now)]


def timers(unsaid: Mapping[str, int], now: int) -> list[Timer]:
    """Return the timer that brings the first of the others back; what is late has been planned or comes by itself."""
    due = min((due for key, due in unsaid.items() if not is_due(unsaid, key, now)), default=None)
    return [] if due is None else [Timer(SAY, "", due)]
