"""Python's garbage collector in processes that remember tens of thousands of small objects for long."""

from __future__ import annotations

import gc


def collect_rarely() -> None:
    """Leave alone what is there by now, and look less often at what comes: hardly any of it is garbage."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
