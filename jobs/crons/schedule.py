"""When a cron job's jobs are made (reference: volcano-queue-podgroup-cli §7.3).

The expressions are those that Kubernetes reads: five fields, names of months and days, `*`, `?`, lists, ranges and
steps; @hourly and its like; @every with a duration. Moments are in milliseconds since the epoch, and whole minutes
except for those of @every.

When clocks change, a time of day that is skipped is moved by as much as the clock jumped (2:30 to 3:30), and one that
occurs twice counts once, the first time; but a schedule for every hour (`*` in the hour field) runs both times.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from itertools import product
from typing import NamedTuple, Protocol
from zoneinfo import ZoneInfo

from kube import meta

MINUTE_MS = 60_000
LONGEST_DAYS = 8 * 366 + 1  # a 29th of February is at most eight years away
FIRST_DAY, LAST_DAY = date(1970, 1, 1), date(9999, 12, 29)
EVERY = "@every"
DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_DAY = timedelta(days=1)
_NUMBER = re.compile(r"[0-9]{1,4}", re.ASCII)
_ZONE_PART = re.compile(r"[A-Za-z.\-_0-9+]{1,14}", re.ASCII)


class ScheduleError(ValueError):
    """A schedule or time zone that cannot be read; the text says why, and what to write instead."""


class Times(Protocol):
    """The moments of a schedule."""

    def after(self, moment: int) -> Iterator[int]:
        """Yield the moments later than this one, in order."""

    def latest(self, moment: int) -> int | None:
        """Return the last moment that is not later than this one; None if there is none."""


class _Part(NamedTuple):
    """One of the five fields: its name, its bounds, and the names of its values, starting with the first."""

    name: str
    first: int
    last: int
    names: tuple[str, ...] = ()


_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_PARTS = (
    _Part("minute", 0, 59),
    _Part("hour", 0, 23),
    _Part("day of the month", 1, 31),
    _Part("month", 1, 12, _MONTHS),
    _Part("day of the week", 0, 6, _WEEKDAYS),
)


class _Values(NamedTuple):
    """The values of a field, in order, and whether `*` or `?` without a step is in it."""

    values: tuple[int, ...]
    is_star: bool


def zone(name: str) -> tzinfo:
    """Return a time zone by its IANA name, UTC for ""; raise ScheduleError if there is none."""
    if not name:
        return UTC
    parts = name.split("/")
    is_name = all(_ZONE_PART.fullmatch(part) and part not in (".", "..") and not part.startswith("-") for part in parts)
    remedy = "name one of the IANA database, such as Europe/Berlin or UTC."
    if name.lower() == "local":
        raise ScheduleError(f"the time zone of a machine is not the same everywhere; {remedy}")
    if not is_name:
        raise ScheduleError(f"this is not the name of a time zone; {remedy}")
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ScheduleError(f"unknown time zone {name}; {remedy}") from None


def parse(text: str, where: tzinfo, created: int) -> Times:
    """Read a schedule in the time zone `where`; raise ScheduleError if it is wrong.

    `created` is the moment from which @every counts.
    """
    if "TZ" in text:
        raise ScheduleError("the time zone of a schedule is not part of it; write it to timeZone.")
    written = text.strip()
    if written.startswith(EVERY):
        try:
            period = meta.parse_duration(written.removeprefix(EVERY).strip())
        except ValueError as error:
            raise ScheduleError(f"{EVERY} takes a duration: {error}") from None
        if period < MINUTE_MS:
            # A job's name holds the minute of its time, so two times in one minute would clash.
            raise ScheduleError(f"{EVERY} takes at least a minute; write {EVERY} 1m or more.")
        return Every(created, period // 1000 * 1000)
    if written.startswith("@"):
        if written not in DESCRIPTORS:
            raise ScheduleError(
                f"unknown descriptor; write {', '.join(DESCRIPTORS)}, {EVERY} with a duration, or five fields."
            )
        written = DESCRIPTORS[written]
    fields = written.split()
    if len(fields) != len(_PARTS):
        raise ScheduleError(
            f"expected 5 fields and found {len(fields)}; write minute, hour, day of the month, month and day of"
            " the week, such as 0 2 * * *."
        )
    minutes, hours, days, months, weekdays = map(_field, fields, _PARTS)
    cron = Cron(minutes, hours, days, months, weekdays, where, fields[1].startswith(("*", "?")))
    if not any(cron.falls_on(date(2000, 1, 1) + number * _DAY) for number in range(LONGEST_DAYS)):
        raise ScheduleError("there is no such day, so it would never come; correct the day or the month.")
    return cron


def _field(text: str, part: _Part) -> _Values:
    spans = [_span(item, part) for item in text.split(",")]
    return _Values(tuple(sorted({value for span, _ in spans for value in span})), any(is_star for _, is_star in spans))


def _span(item: str, part: _Part) -> tuple[range, bool]:
    """Read `*`, `5` or `1-5`, each with or without `/step` (`5/15` goes on to the last value); the flag is for a star."""
    bounds, slash, step_text = item.partition("/")
    step = _number(step_text, item, part) if slash else 1
    if step == 0:
        raise ScheduleError(f"{part.name}: {item!r} has the step 0; write 1 or more.")
    if bounds in ("*", "?"):
        return range(part.first, part.last + 1, step), step == 1
    low_text, dash, high_text = bounds.partition("-")
    low = _value(low_text, item, part)
    high = _value(high_text, item, part) if dash else part.last if slash else low
    if low > high:
        raise ScheduleError(f"{part.name}: {item!r} ends before it begins; write the smaller value first.")
    return range(low, high + 1, step), False


def _value(text: str, item: str, part: _Part) -> int:
    name = text.upper()
    if name in part.names:
        return part.first + part.names.index(name)
    value = _number(text, item, part)
    if not part.first <= value <= part.last:
        also = "; Sunday is 0" if part.names == _WEEKDAYS and value == 7 else ""
        raise ScheduleError(f"{part.name}: {item!r} is not between {part.first} and {part.last}{also}; correct it.")
    return value


def _number(text: str, item: str, part: _Part) -> int:
    if not _NUMBER.fullmatch(text):
        names = f", or {part.names[0]} to {part.names[-1]}" if part.names else ""
        raise ScheduleError(f"{part.name}: {item!r} cannot be read; write numbers{names}, such as 1-5 or */2.")
    return int(text)


@dataclass(frozen=True, slots=True)
class Every:
    """Moments at a fixed period after `first`, which is not one of them."""

    first: int
    period: int

    def after(self, moment: int) -> Iterator[int]:
        """Yield the moments later than this one, in order."""
        current = self.first + max((moment - self.first) // self.period + 1, 1) * self.period
        while True:
            yield current
            current += self.period

    def latest(self, moment: int) -> int | None:
        """Return the last moment that is not later than this one; None if there is none."""
        count = (moment - self.first) // self.period
        return self.first + count * self.period if count > 0 else None


@dataclass(frozen=True, slots=True)
class Cron:
    """The moments that five fields describe, in a time zone."""

    minutes: _Values
    hours: _Values
    days: _Values
    months: _Values
    weekdays: _Values
    where: tzinfo
    is_hourly: bool

    def after(self, moment: int) -> Iterator[int]:
        """Yield the moments later than this one, in order."""
        last = moment
        # A skipped time of the day before may have moved past midnight.
        day = self._day_of(moment) - _DAY
        while day <= LAST_DAY:
            for each in self._on(day) if self.falls_on(day) else ():
                if each > last:
                    last = each
                    yield each
            day += _DAY

    def latest(self, moment: int) -> int | None:
        """Return the last moment that is not later than this one; None if there is none."""
        day = self._day_of(moment)
        for _ in range(LONGEST_DAYS + 1):
            if day < FIRST_DAY:
                return None
            if self.falls_on(day):
                moments = self._on(day)
                if count := bisect_right(moments, moment):
                    return moments[count - 1]
            day -= _DAY
        return None

    def falls_on(self, day: date) -> bool:
        """Tell whether a day is in the schedule; if both day fields are restricted, either of them is enough."""
        if day.month not in self.months.values:
            return False
        of_month = day.day in self.days.values
        of_week = day.isoweekday() % 7 in self.weekdays.values
        is_either = not (self.days.is_star or self.weekdays.is_star)
        return of_month or of_week if is_either else of_month and of_week

    def _day_of(self, moment: int) -> date:
        local = meta.moment_of(moment).astimezone(self.where).date()
        return min(max(local, FIRST_DAY), LAST_DAY)

    def _on(self, day: date) -> list[int]:
        """Return the moments of a day, in order."""
        start = datetime.combine(day, time(), self.where)
        offset = start.utcoffset()
        if offset == datetime.combine(day + _DAY, time(), self.where).utcoffset():
            begin = meta.milliseconds(start)
            clock = product(self.hours.values, self.minutes.values)
            return [begin + (60 * hour + minute) * MINUTE_MS for hour, minute in clock]
        moments = set()
        for hour, minute in product(self.hours.values, self.minutes.values):
            for fold in (0, 1) if self.is_hourly else (0,):
                # A skipped time has the offset from before the change (fold 0), so it comes later by the jump.
                local = datetime.combine(day, time(hour, minute), self.where).replace(fold=fold)
                moment = local.astimezone(UTC)
                if fold == 0 or moment.astimezone(self.where).replace(tzinfo=None) == local.replace(tzinfo=None):
                    moments.add(meta.milliseconds(moment))
        return sorted(moments)
