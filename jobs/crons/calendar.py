"""The days around now with the past and coming runs of a cron job, as its page draws them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import date, timedelta, tzinfo
from itertools import takewhile
from typing import NamedTuple

from jobs.crons.plan import SCHEDULED
from jobs.crons.schedule import Times
from jobs.made.jobs import OwnedJob
from kube import meta

WEEKS_BEFORE, WEEKS = 1, 4
MOST = 3  # past runs, and coming runs, shown individually for a day


class Run(NamedTuple):
    """A run of a day: its time, and its job if it has one."""

    time: str
    job: OwnedJob | None = None


class Day(NamedTuple):
    """A day: the runs shown, and how many more there are."""

    date: date
    is_today: bool
    runs: list[Run]
    more: int


def weeks(times: Times | None, jobs: Sequence[OwnedJob], where: tzinfo, now: int) -> list[list[Day]]:
    """Return WEEKS weeks of days in a time zone, from the Monday of last week on; `times` is None if suspended.

    Each day shows its latest past runs and its first coming ones, MOST of each.
    """
    today = meta.moment_of(now).astimezone(where).date()
    first = today - timedelta(days=today.weekday() + 7 * WEEKS_BEFORE)
    days = [first + timedelta(days=number) for number in range(7 * WEEKS)]
    past: dict[date, list[Run]] = defaultdict(list)
    for at, job in sorted(((moment_of(job), job) for job in jobs), key=lambda pair: pair[0]):
        day, clock = _local(at, where)
        past[day].append(Run(clock, job))
    coming: dict[date, list[Run]] = defaultdict(list)
    moments = (_local(at, where) for at in (times.after(now) if times is not None else ()))
    for day, clock in takewhile(lambda pair: pair[0] <= days[-1], moments):
        coming[day].append(Run(clock))
    calendar_days = []
    for day in days:
        runs = [*past[day][-MOST:], *coming[day][:MOST]]
        calendar_days.append(Day(day, day == today, runs, len(past[day]) + len(coming[day]) - len(runs)))
    return [calendar_days[start : start + 7] for start in range(0, len(calendar_days), 7)]


def moment_of(job: OwnedJob) -> int:
    """Return the scheduled time of a job, or its creation if it was made by hand (epoch ms)."""
    try:
        return meta.parse_time(job.metadata.annotations.get(SCHEDULED, ""))
    except ValueError:
        return meta.parse_time(job.metadata.creation_timestamp)


def _local(at: int, where: tzinfo) -> tuple[date, str]:
    local = meta.moment_of(at).astimezone(where)
    return local.date(), f"{local:%H:%M}"
