"""Restarts counted as people count them: those that were made, out of those that maxRetry allows.

Volcano counts requests: status.retryCount grows with every restart of the job or a part of it, by a policy or a Command
(reference: volcano-job §2.7, Q-6), and when it reaches maxRetry the job fails instead. So the last restart is never made.
"""

from __future__ import annotations


def allowed(max_retry: int) -> int:
    """How many restarts a job may make."""
    return max(max_retry - 1, 0)


def restarts_made(retry_count: int, max_retry: int) -> int:
    """How many restarts a job made."""
    return min(retry_count, allowed(max_retry))


def used(retry_count: int, max_retry: int) -> str:
    """`1 of 2 restarts is used up`"""
    number, most = restarts_made(retry_count, max_retry), allowed(max_retry)
    return f"{number} of {most} restart{'' if most == 1 else 's'} {'is' if number == 1 else 'are'} used up"


def times(retry_count: int, max_retry: int) -> str:
    """`once`, `2 times`"""
    number = restarts_made(retry_count, max_retry)
    return "once" if number == 1 else f"{number} times"
