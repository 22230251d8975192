"""Who is placed before all others, and in which order."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from scheduler.engine.accounts import Account
from scheduler.engine.gang import Gang
from scheduler.engine.turns import Turns


def first(gangs: Sequence[Gang], keys: Sequence[str], privileged: Collection[str]) -> list[int]:
    """Return, in turn, the numbers of the gangs with these keys and of those of higher priority in their queues."""
    if not privileged:
        return []
    least: dict[Account | None, int] = {}
    for gang, key in zip(gangs, keys, strict=True):
        if key in privileged:
            least[gang.account] = min(least.get(gang.account, gang.level), gang.level)
    numbers = [
        number
        for number, (gang, key) in enumerate(zip(gangs, keys, strict=True))
        if key in privileged or (gang.account in least and gang.level > least[gang.account])
    ]
    return list(in_turn(gangs, numbers))


def in_turn(gangs: Sequence[Gang], numbers: Sequence[int]) -> Iterator[int]:
    """Yield some gangs by their numbers in the order of `scheduler.engine.turns`, by the accounts as they are by then."""
    turns = Turns([gangs[number] for number in numbers], ())
    while (turn := turns.take()) is not None:
        yield numbers[turn.gang]
        turns.end()
