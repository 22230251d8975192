"""The long runs: `make campaign` tries for longer what is random by nature.

A test marked `campaign` is part of it, and takes its size from `scaled`.
"""

from __future__ import annotations

import os

RUNS = bool(os.environ.get("CAMPAIGN"))


def scaled(usual, long):
    """Return how many examples a test tries: so many in `make test`, more in a campaign."""
    return long if RUNS else usual


def belongs(item):
    """Say whether a test is part of this run."""
    return not RUNS or item.get_closest_marker("campaign") is not None
