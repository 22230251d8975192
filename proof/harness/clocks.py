"""A clock that stands until it is moved."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from cluster import clock

C = TypeVar("C", bound=clock.Clock)


@contextmanager
def using(other: C) -> Iterator[C]:
    """Let another clock be the process's inside the block, and hand it out."""
    before = clock.use(other)
    try:
        yield other
    finally:
        clock.use(before)


class ManualClock:
    """Shows the time at which it was made, and goes on only by `move`."""

    def __init__(self, start_us: int | None = None) -> None:
        self.us = clock.microseconds() if start_us is None else start_us
        self.seconds = 0.0

    def microseconds(self) -> int:
        return self.us

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        """Let so much time pass."""
        self.move(seconds)

    def move(self, seconds: float) -> None:
        """Let time pass."""
        self.us += round(seconds * 1e6)
        self.seconds += seconds
