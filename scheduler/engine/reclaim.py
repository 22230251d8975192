"""Which pods a queue may take from others, so that it comes to what it deserves (reference/volcano-scheduler §3.5, §3.6).

* The queue of the gang may have no more than it deserves with the gang's minimum, in nothing that the gang asks for. If that holds for
  queues above it as well, the queues beside those may have to give too: up to the one above both, every queue must be within.
* Queues on the other side, up to the same one, must keep all that they deserve of something that the pods and the gang both
  ask for, and of nothing less than their guarantee. So none of them can take back what it gave.
* `pods` are no resource that anybody deserves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scheduler.engine.accounts import Account, Amount


class Reclaim:
    """What one gang may take from queues beside its own."""

    def __init__(self, own: Account, asked: Sequence[Amount], pods: int) -> None:
        """asked is what its minimum asks for in all, pods the column of `pods`."""
        self._own = own
        self._columns = [column for column, amount in asked if amount > 0 and column != pods]
        self._reach: set[Account] = set()
        for account, above in zip(own.line, own.line[1:], strict=False):
            if not self._columns or not self._is_within(account, asked):
                break
            self._reach.add(above)

    def __bool__(self) -> bool:
        """Whether the queue of the gang may take anything."""
        return bool(self._reach)

    def may_have_to_give(self, account: Account) -> bool:
        """Tell whether a queue has more than it deserves of something that the gang asks for."""
        side = self._side(account)
        return bool(side) and all(
            any(each.used[column] > each.deserved[column] for column in self._columns) for each in side
        )

    def yields(self, account: Account, holds: Sequence[int]) -> bool:
        """Tell whether pods that hold so much may be taken from a queue, as it stands."""
        side = self._side(account)
        return bool(side) and all(self._keeps_its_part(each, holds) for each in side)

    def nearness(self, account: Account) -> int:
        """Return how many queues are above both: those that share most are asked first."""
        return sum(each in self._own.line for each in account.line)

    def _side(self, account: Account) -> list[Account]:
        """Return a queue with those above it, up to the first that is above the gang as well; none where that is out of reach."""
        side: list[Account] = []
        for each in account.line:
            if each in self._own.line:
                return side if each in self._reach else []
            side.append(each)
        return []

    def _is_within(self, account: Account, asked: Sequence[Amount]) -> bool:
        return all(
            account.used[column] + amount <= account.deserved[column]
            for column, amount in asked
            if column in self._columns
        )

    def _keeps_its_part(self, account: Account, holds: Sequence[int]) -> bool:
        left = [used - amount for used, amount in zip(account.used, holds, strict=True)]
        has_its_part = any(
            holds[column] > 0 and left[column] >= account.deserved[column] for column in self._columns
        )
        return has_its_part and all(
            has >= least
            for has, least, amount in zip(left, account.guarantee, holds, strict=True)
            if amount > 0
        )
