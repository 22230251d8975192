"""Signs of life: a program writes to a pipe that its supervisor listens to, every two seconds.

Who serves from an event loop gives them from there, so a loop that hangs is
noticed. Who works off what may take long (a plan, a write that waits for its
turn) gives them from a thread: it is silent only when the whole process
stands still. Without a supervisor nothing is written.
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
    """How long a program has given no sign of life, as one finds it who looks now and then.

    Who looks may stand still as well, with the whole machine or alone; the time for which he did not look does not count.
    """

    def __init__(self, look_s: float, silent_s: float) -> None:
        self._look_s = look_s
        self._silent_s = silent_s
        self._silence: float | None = None  # None before the first sign: how long a start takes is not judged here
        self._looked = 0.0

    def look(self, now: float, *, heard: bool) -> bool:
        """Tell at a moment, in monotonic seconds, whether there was a sign since the last look; say whether it is silent."""
        passed, self._looked = min(now - self._looked, 2 * self._look_s), now
        if heard:
            self._silence = 0.0
        elif self._silence is not None:
            self._silence += passed
        return self._silence is not None and self._silence > self._silent_s


def from_a_thread() -> None:
    """Give signs of life as long as this process runs."""
    descriptor = _take()
    if descriptor is not None:
        threading.Thread(target=_go_on, args=(descriptor,), name="heartbeat", daemon=True).start()


async def from_the_loop() -> None:
    """Give signs of life as long as the running event loop does, until cancelled."""
    descriptor = _take()
    while descriptor is not None and _give(descriptor):
        await asyncio.sleep(EVERY_S)


@contextlib.asynccontextmanager
async def given() -> AsyncIterator[None]:
    """Give signs of life from the event loop inside the block."""
    giving = asyncio.create_task(from_the_loop())
    try:
        yield
    finally:
        giving.cancel()


def _take() -> int | None:
    """Return the pipe's end, for this process alone: what it starts has no part in it."""
    value = os.environ.pop(DESCRIPTOR, "")
    if not value:
        return None
    descriptor = int(value)
    os.set_inheritable(descriptor, False)
    os.set_blocking(descriptor, False)
    return descriptor


def _go_on(descriptor: int) -> None:
    while _give(descriptor):
        time.sleep(EVERY_S)


def _give(descriptor: int) -> bool:
    """Give a sign; say whether somebody may hear it. A pipe that is full has signs that are not heard yet."""
    try:
        os.write(descriptor, b".")
    except BlockingIOError:
        pass
    except OSError:
        return False
    return True
