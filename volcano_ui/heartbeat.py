"""Signs of life: a program writes to a pipe that its supervisor listens to, every two seconds.

A server gives them from its event loop, so that a loop that hangs is noticed.
A program whose work may take long (a plan, a write that waits for a lock) gives
them from a thread, so that it is silent only when the whole process stands
still. Without a supervisor nothing is written.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import AsyncIterator

DESCRIPTOR = "VOLCANO_UI_HEARTBEAT"  # the variable that names the pipe's end
EVERY_S = 2.0


class Pulse:
    """How long a program has given no sign of life, for an observer that looks now and then.

    The observer may stand still as well, with the whole machine or alone; time without a look does not count.
    """

    def __init__(self, look_s: float, silent_s: float) -> None:
        self._look_s = look_s
        self._silent_s = silent_s
        self._silence: float | None = None  # None before the first sign: how long a start takes is not judged here
        self._looked = 0.0

    def look(self, now: float, *, has_beat: bool) -> bool:
        """Take in a look at `now` (monotonic, s), with a sign since the last one or not; return whether it is silent."""
        passed, self._looked = min(now - self._looked, 2 * self._look_s), now
        if has_beat:
            self._silence = 0.0
        elif self._silence is not None:
            self._silence += passed
        return self._silence is not None and self._silence > self._silent_s


def from_a_thread() -> None:
    """Give signs of life as long as this process runs."""
    descriptor = _take_descriptor()
    if descriptor is not None:
        threading.Thread(target=_beat_forever, args=(descriptor,), name="heartbeat", daemon=True).start()


async def from_the_loop() -> None:
    """Give signs of life as long as the running event loop does, until cancelled."""
    descriptor = _take_descriptor()
    while descriptor is not None and _beat(descriptor):
        await asyncio.sleep(EVERY_S)


@contextlib.asynccontextmanager
async def beating() -> AsyncIterator[None]:
    """Give signs of life from the event loop inside the block."""
    giving = asyncio.create_task(from_the_loop())
    try:
        yield
    finally:
        giving.cancel()


def _take_descriptor() -> int | None:
    """Return the pipe's end, which processes that this one starts do not inherit; None without a supervisor."""
    value = os.environ.pop(DESCRIPTOR, "")
    if not value:
        return None
    descriptor = int(value)
    os.set_inheritable(descriptor, False)
    os.set_blocking(descriptor, False)
    return descriptor


def _beat_forever(descriptor: int) -> None:
    while _beat(descriptor):
        time.sleep(EVERY_S)


def _beat(descriptor: int) -> bool:
    """Give a sign; return whether the pipe is still read. A full one has signs that are not read yet."""
    try:
        os.write(descriptor, b".")
    except BlockingIOError:
        pass
    except OSError:
        return False
    return True
