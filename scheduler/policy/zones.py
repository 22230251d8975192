"""Revocable zones: nodes that are lent out at certain times of the day (tdm, reference/volcano-scheduler §3.11)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kube.yaml.tree import child
from scheduler.policy.arguments import Arguments
from scheduler.policy.findings import quoted

PREFIX, PERIOD = "tdm.revocable-zone.", "tdm.evict.period"
MINUTE_MS = 60_000
DAY_MS = 24 * 60 * MINUTE_MS
_WRITTEN = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)-([01]?\d|2[0-3]):([0-5]\d)")


@dataclass(frozen=True, slots=True)
class Window:
    """When a zone is open each day, in ms after midnight UTC; past midnight if end is not after start."""

    start: int
    end: int

    def is_open(self, now: int) -> bool:
        """Tell whether it is open at a time (epoch ms)."""
        since = (now - self.start) % DAY_MS
        return since < self._length()

    def changes(self, now: int) -> int:
        """Return when it next opens or closes after a time (epoch ms)."""
        since = (now - self.start) % DAY_MS
        length = self._length()
        return now - since + (length if since < length else DAY_MS)

    def _length(self) -> int:
        return (self.end - self.start - 1) % DAY_MS + 1


@dataclass(frozen=True, slots=True)
class Zones:
    """The windows of zones by name, the time between two rounds of evictions from a closed zone, and whether there are any."""

    windows: tuple[tuple[str, Window], ...] = ()
    period_ms: int = MINUTE_MS
    evicts: bool = True


def zones_of(arguments: Arguments, *, evicts: bool) -> Zones:
    """Return the configured zones; one whose time cannot be read gets a warning and stays closed."""
    windows = []
    for name, value in arguments.values.items():
        if not name.startswith(PREFIX):
            continue
        found = _WRITTEN.fullmatch(value.strip()) if isinstance(value, str) and len(value) < 40 else None
        if found is None:
            rule = "a time of the day such as 22:00-06:00, in UTC"
            message = f"{name} is {rule}, not {quoted(value)}; the zone stays closed."
            arguments.warn(child(arguments.path, name), message)
            continue
        hours, minutes, to_hours, to_minutes = map(int, found.groups())
        window = Window((hours * 60 + minutes) * MINUTE_MS, (to_hours * 60 + to_minutes) * MINUTE_MS)
        windows.append((name.removeprefix(PREFIX), window))
    period = arguments.wait(PERIOD, default="1m")
    return Zones(tuple(sorted(windows)), period or MINUTE_MS, evicts)
