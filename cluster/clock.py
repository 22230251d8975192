"""What time it is, for everything that runs a cluster.

All processes of a cluster ask here, so that whoever repeats a run can hand in a clock of his own. What stands beside a
container (`node.shim`) belongs to the machine and asks that.
"""

from __future__ import annotations

import time
from typing import Protocol

SET_US = 1_000_000  # the wall clock does not fall behind the monotonic one by so much unless somebody sets it


class Clock(Protocol):
    """A source of time."""

    def microseconds(self) -> int:
        """Return the wall clock, in microseconds since the epoch; it may be set forward and back."""

    def monotonic(self) -> float:
        """Return seconds since any moment; they only grow, at the pace of real time."""

    def sleep(self, seconds: float) -> None:
        """Return when so many seconds are over."""


class SystemClock:
    """The machine's clock."""

    def microseconds(self) -> int:
        """Return the wall clock, in microseconds since the epoch."""
        return time.time_ns() // 1000

    def monotonic(self) -> float:
        """Return the seconds of the machine's monotonic clock."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Let this thread rest."""
        time.sleep(seconds)


_clock: Clock = SystemClock()


def use(clock: Clock) -> Clock:
    """Ask this clock from now on, in the whole process; return the one that was asked before."""
    global _clock
    before, _clock = _clock, clock
    return before


def milliseconds() -> int:
    """Return the wall clock, in milliseconds since the epoch: the store's unit, named `now`."""
    return _clock.microseconds() // 1000


def microseconds() -> int:
    """Return the wall clock, in microseconds since the epoch: the unit of nodes, named `now_us`."""
    return _clock.microseconds()


def monotonic() -> float:
    """Return seconds since any moment: for deadlines, which no setting of the wall clock may move."""
    return _clock.monotonic()


def sleep(seconds: float) -> None:
    """Rest for so many seconds: for threads of programs that look at something again and again."""
    _clock.sleep(seconds)


class SetBack:
    """Notices when somebody sets the wall clock back."""

    def __init__(self) -> None:
        self._offset_us = _offset_us()

    def since_last_look(self) -> int:
        """Return by how many microseconds it was set back since the last look, or since this was made; 0 if it was not."""
        before_us, self._offset_us = self._offset_us, _offset_us()
        back_us = before_us - self._offset_us
        return back_us if back_us > SET_US else 0


def _offset_us() -> int:
    """Return by how much the wall clock is ahead of the monotonic one."""
    return microseconds() - round(monotonic() * 1e6)
