"""In which order groups of a queue are tried: priority, age, key.

Groups for which others were asked to end come first among those of their priority (`scheduler.gangs.nominations`); with the plugin
sla (reference/volcano-scheduler §3.11) then who has waited for his time or will have first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scheduler.gangs.waits import Waiter, deadline
from scheduler.policy.policy import Policy

Rank = tuple[Any, ...]


def by_turn(policy: Policy, priority_of: Callable[[str], int]) -> Callable[[Waiter], Rank]:
    """Return by what groups are sorted: the least comes first."""
    if not policy.sla:
        return lambda group: (-priority_of(group.priority_class), group.created, group.key)

    def rank(group: Waiter) -> Rank:
        due = deadline(policy, group)
        return -priority_of(group.priority_class), due is None, due or 0, group.created, group.key

    return rank


def in_line(policy: Policy, priority_of: Callable[[str], int]) -> Callable[[Waiter, bool], Rank]:
    """Return by what the groups of one queue are sorted, given whether each is nominated."""
    turn = by_turn(policy, priority_of)

    def rank(group: Waiter, is_nominated: bool) -> Rank:
        level, *rest = turn(group)
        return level, not is_nominated, *rest

    return rank
