"""The long runs: `make campaign` tries for longer what is random by nature.

A test marked `campaign` is part of it, and takes its size from `scaled`. A property of hypothesis takes its number of
examples from `examples`, which marks it.
"""

from __future__ import annotations

import os

import hypothesis
import pytest

RUNS = bool(os.environ.get("CAMPAIGN"))
# Of a property in `make test`. What sixty do not find is found by those who look for long.
EXAMPLES = 60


def scaled(usual, long):
    """Return how many examples a test tries: so many in `make test`, more in a campaign."""
    return long if RUNS else usual


def examples(number, **options):
    """Mark a property: it tries so many examples in a campaign, and EXAMPLES at most in `make test`.

    options are those of `hypothesis.settings`.
    """

    def marked(test):
        size = scaled(min(number, EXAMPLES), number)
        return pytest.mark.campaign(hypothesis.settings(max_examples=size, **options)(test))

    return marked


def belongs(item):
    """Say whether a test is part of this run."""
    return not RUNS or item.get_closest_marker("campaign") is not None
