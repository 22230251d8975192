"""The long runs: `make campaign` tries for longer what is random by nature.

A test marked `campaign` is part of it, and takes its size from `scaled`. A property of hypothesis takes its number of
examples from `examples`, which marks it.
"""

import os

import hypothesis
import pytest
from hypothesis.stateful import run_state_machine_as_test

RUNS = bool(os.environ.get("CAMPAIGN"))
# Of a property in `make test`. What sixty do not find is found by those who look for long.
EXAMPLES = 60


def scaled(usual, long):
    """Return how many examples a test tries: so many in `make test`, more in a campaign."""
    return long if RUNS else usual


def examples(number, *, here=EXAMPLES, **options):
    """Mark a property: it tries so many examples in a campaign, and `here` at most in `make test`.

    options are those of `hypothesis.settings`.
    """

    def marked(test):
        size = scaled(min(number, here), number)
        return pytest.mark.campaign(hypothesis.settings(max_examples=size, **options)(test))

    return marked


def belongs(item):
    """Say whether a test is part of this run."""
    return not RUNS or item.get_closest_marker("campaign") is not None


def play(machine, usual, long, *, steps):
    """Run a state machine of hypothesis: so many examples of so many steps, more of them in a campaign."""
    settings = hypothesis.settings(
        max_examples=scaled(usual, long),
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    run_state_machine_as_test(machine, settings=settings)
