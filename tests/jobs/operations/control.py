"""Operations carried on by hand."""

from __future__ import annotations

from jobs.operations import batches


def carry_on(budget_s=1):
    """Ask what is left for a while, and look at what was asked, as the task does."""
    batches.ask(budget_s)
    batches.settle_all()
