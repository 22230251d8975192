"""The long runs: `make campaign` tries the same as `make test`, for longer, and what takes minutes by its nature.

A test marked `campaign` is part of it. With `only=True` it is no part of
`make test`; the others take their size from `scaled`.
"""

from __future__ import annotations

import os

RUNS = bool(os.environ.get("CAMPAIGN"))


def scaled(usual, long):
    """Return how many examples, kills or objects a test takes: so many in `make test`, more in a campaign."""
    return long if RUNS else usual


def belongs(item):
    """Say whether a test is part of this run."""
    marker = item.get_closest_marker("campaign")
    if RUNS:
        return marker is not None
    return marker is None or not marker.kwargs.get("only")
