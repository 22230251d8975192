"""Python's garbage collector in processes that keep tens of thousands of small objects for long."""

from __future__ import annotations

import gc


def collect_rarely() -> None:
    """Exempt all present objects from collection, and collect later ones less often: hardly any of them is garbage."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
