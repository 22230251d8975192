"""Waiting for what other threads and processes do.

What a test shows must not depend on how fast the machine is, or on what else it
does. So a test waits for what happens, however long that takes, and says in no
other way how long anything may take.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

# Who waits for longer waits for ever. Below pytest's own timeout, which cannot say what was waited for.
HANG_S = 120.0


def until(
    condition: Callable[[], T | None],
    within_s: float = HANG_S,
    *,
    every_s: float = 0.02,
    what: str | Callable[[], object] = "the condition",
) -> T:
    """Return condition()'s first true value; fail when there is none for as long as a hang takes.

    what may be a function, which is asked when it fails: it tells what there is instead.
    """
    deadline = time.monotonic() + within_s
    while not (value := condition()):
        if time.monotonic() >= deadline:
            raise AssertionError(f"{what() if callable(what) else what} did not come true within {within_s} s")
        time.sleep(every_s)
    return value
