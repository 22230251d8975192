"""In which order groups of a queue are tried: priority, age, key; and which are placed before all others.

Nominated groups come first among those of their priority (`scheduler.gangs.nominations`); with the plugin sla
(reference/volcano-scheduler §3.11) then the one whose waiting time is up, or will be first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from scheduler.engine.accounts import Account
from scheduler.engine.gang import Gang
from scheduler.engine.turns import Turns
from scheduler.gangs.waits import Waiter, deadline
from scheduler.policy.policy import Policy

Rank = tuple[Any, ...]


def by_turn(policy: Policy, priority_of: Callable[[str], int]) -> Callable[[Waiter], Rank]:
    """Return the sort key of groups: the least comes first."""
    if not policy.sla:
        return lambda group: (-priority_of(group.priority_class), group.created, group.key)

    def rank(group: Waiter) -> Rank:
        due = deadline(policy, group)
        return -priority_of(group.priority_class), due is None, due or 0, group.created, group.key

    return rank


def in_line(policy: Policy, priority_of: Callable[[str], int]) -> Callable[[Waiter, bool], Rank]:
    """Return the sort key of the groups of one queue, which also takes whether each is nominated."""
    turn = by_turn(policy, priority_of)

    def rank(group: Waiter, is_nominated: bool) -> Rank:
        level, *rest = turn(group)
        return level, not is_nominated, *rest

    return rank


def first(gangs: Mapping[str, Gang], privileged: Collection[str]) -> list[int]:
    """Return the numbers, in turn, of the gangs with these keys and of those of higher priority in their queues."""
    if not privileged:
        return []
    least: dict[Account | None, int] = {}
    for key in gangs.keys() & privileged:
        gang = gangs[key]
        least[gang.account] = min(least.get(gang.account, gang.level), gang.level)
    numbers = [
        number
        for number, (key, gang) in enumerate(gangs.items())
        if key in privileged or (gang.account in least and gang.level > least[gang.account])
    ]
    return list(in_turn(list(gangs.values()), numbers))


def in_turn(gangs: Sequence[Gang], numbers: Sequence[int]) -> Iterator[int]:
    """Yield gangs by number in the order of `scheduler.engine.turns`, by the accounts as they are by then."""
    turns = Turns([gangs[number] for number in numbers], ())
    while (turn := turns.take()) is not None:
        yield numbers[turn.gang]
        turns.end()
