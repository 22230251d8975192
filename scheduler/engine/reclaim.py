"""Which pods a queue may take from others, so that it comes to what it deserves (reference/volcano-scheduler §3.5, §3.6).

* The queue of the gang may have no more than it deserves with the gang's minimum, in nothing that the gang asks for. If that holds for
  queues above it as well, the queues beside those may have to give too: up to the one above both, every queue must be within.
* Queues on the other side, up to the same one, give while they have more than they deserve of something that the pods and the gang
  both ask for, and of nothing less than their guarantee. The last that goes may leave a queue with less than it deserves if it is
  then less short of it, as a part of it, than the queue of the gang is now: else a queue of large pods would hold all that is
  between what it deserves and its next pod. None can take back what it gave: the queue of the gang has no more than it deserves.
* `pods` are no resource that anybody deserves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scheduler.engine.accounts import Account, Amount


class Reclaim:
    """What one gang may take from queues beside its own."""

    def __init__(self, own: Account, asked: Sequence[Amount], pods: int) -> None:
        """asked is what its minimum asks for in all, pods the column of `pods`."""
        self._own = own
        self._columns = [column for column, amount in asked if amount > 0 and column != pods]
        self._shortage: dict[Account, dict[int, float]] = {}
        """How short the queue is now, and those above it up to one that is above both, by that one and column: the least of it."""
        least = dict.fromkeys(self._columns, 1.0)
        for account, above in zip(own.line, own.line[1:], strict=False):
            if not self._columns or not self._is_within(account, asked):
                break
            least = {
                column: min(short, _shortage(account, column, account.used[column]))
                for column, short in least.items()
            }
            self._shortage[above] = least

    def __bool__(self) -> bool:
        """Whether the queue of the gang may take anything."""
        return bool(self._shortage)

    def may_have_to_give(self, account: Account) -> bool:
        """Tell whether a queue has more than it deserves of something that the gang asks for."""
        side, _ = self._side(account)
        return bool(side) and all(
            any(each.used[column] > each.deserved[column] for column in self._columns) for each in side
        )

    def yields(self, account: Account, holds: Sequence[int]) -> bool:
        """Tell whether pods that hold so much may be taken from a queue, as it stands."""
        side, shortage = self._side(account)
        return bool(side) and all(self._can_spare(each, holds, shortage) for each in side)

    def nearness(self, account: Account) -> int:
        """Return how many queues are above both: those that share most are asked first."""
        return sum(each in self._own.line for each in account.line)

    def _side(self, account: Account) -> tuple[Sequence[Account], Mapping[int, float]]:
        """Return a queue with those above it, below the first that is above the gang as well, and how short the gang's is below that.

        Nothing where that one is out of reach, and for a queue above the gang itself.
        """
        for number, above in enumerate(account.line):
            if above in self._own.line:
                shortage = self._shortage.get(above)
                return ((), {}) if shortage is None else (account.line[:number], shortage)
        return (), {}

    def _is_within(self, account: Account, asked: Sequence[Amount]) -> bool:
        return all(
            account.used[column] + amount <= account.deserved[column]
            for column, amount in asked
            if column in self._columns
        )

    def _can_spare(self, account: Account, holds: Sequence[int], shortage: Mapping[int, float]) -> bool:
        """Tell whether a queue may lose so much to one that is so short, by column."""
        left = [used - amount for used, amount in zip(account.used, holds, strict=True)]
        has_too_much = any(
            holds[column] > 0
            and account.used[column] > account.deserved[column]
            and (
                left[column] >= account.deserved[column]
                or _shortage(account, column, left[column]) < shortage[column]
            )
            for column in self._columns
        )
        return has_too_much and all(
            has >= least
            for has, least, amount in zip(left, account.guarantee, holds, strict=True)
            if amount > 0
        )


def _shortage(account: Account, column: int, used: int) -> float:
    """Return what part of what it deserves a queue lacks that uses so much, 0 for none."""
    deserved = account.deserved[column]
    return max(deserved - used, 0) / deserved if deserved else 0.0
