"""What tests of operations share: the people of the pages' tests, and operations carried on by hand."""

from __future__ import annotations

from jobs.operations import batches
from tests.jobs.pages.conftest import alice, cluster, parse, person  # noqa: F401


def carry_on(budget_s=1):
    """Ask what is left for a while, and look at what was asked, as the task does."""
    batches.ask(budget_s)
    batches.settle_all()
