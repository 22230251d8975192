"""Which pods a queue may take from others, so that it comes to what it deserves (reference/volcano-scheduler §3.5, §3.6).

* A queue is *owed* what the gang asks for where it has no more than it deserves of that with the gang's minimum. Where it would have
  more of something, the nodes must have that idle, so that nobody has to give it, and it is owed only what they have not: or two
  that have each something of their own could take a node from each other for ever. If that holds for queues above it as well, the queues
  beside those may have to give too: up to the one above both, every queue must be owed it.
* Queues on the other side, up to the same one, give while they have more than they deserve of something that is owed and that the pods
  hold, and of nothing less than their guarantee. The last that goes may leave a queue with less than it deserves, or with nothing:
  else a queue of large pods or gangs would hold for good what it borrowed. None can take back what it gave: the queue
  of the gang has no more than it deserves of it.
* Room that is kept for a queue (`scheduler.cycle.reservations`) it does not have yet, so for that it gives nothing.
* `pods` are no resource that anybody deserves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from scheduler.engine.accounts import Account
from scheduler.engine.arrays import Amount, Vector


class Reclaim:
    """What one gang may take from queues beside its own."""

    def __init__(
        self,
        own: Account,
        requests: Sequence[Amount],
        pods: int,
        idle: Sequence[int],
        reserved: Mapping[Account, Vector] = MappingProxyType({}),
    ) -> None:
        """requests are those of its minimum in all, pods the column of `pods`, idle by column what is free where the gang may be.

        reserved is what accounts are charged with for reserved room.
        """
        self._own, self._reserved = own, reserved
        self._owed: dict[Account, Sequence[Amount]] = {}
        """What is owed to the queue and those above it up to one that is above both, by that one."""
        within = wanted = [(column, amount) for column, amount in requests if amount > 0 and column != pods]
        scarce = [(column, amount) for column, amount in wanted if amount > idle[column]]
        for account, above in zip(own.line, own.line[1:], strict=False):
            within = [
                (column, amount)
                for column, amount in within
                if account.used[column] + amount <= account.deserved[column]
            ]
            owed = within if within == wanted else scarce
            if not owed or any(each not in within for each in owed):
                break
            self._owed[above] = owed

    def __bool__(self) -> bool:
        """Whether the queue of the gang may take anything."""
        return bool(self._owed)

    def may_have_to_give(self, account: Account) -> bool:
        """Tell whether a queue has more than it deserves of something that is owed to the gang."""
        side, owed = self._side(account)
        return bool(side) and all(any(self._has_too_much(each, column) for column, _ in owed) for each in side)

    def yields(self, account: Account, holds: Sequence[int]) -> bool:
        """Tell whether pods that hold so much may be taken from a queue, as it stands."""
        side, owed = self._side(account)
        return bool(side) and all(self._can_spare(each, holds, owed) for each in side)

    def nearness(self, account: Account) -> int:
        """Return how many queues are above both: those that share most are asked first."""
        return sum(each in self._own.line for each in account.line)

    def _side(self, account: Account) -> tuple[Sequence[Account], Sequence[Amount]]:
        """Return a queue with those above it, below the first that is above the gang as well, and what is owed to the gang's side of that.

        Nothing where that one is out of reach, and for a queue above the gang itself.
        """
        for number, above in enumerate(account.line):
            if above in self._own.line:
                owed = self._owed.get(above)
                return ((), ()) if owed is None else (account.line[:number], owed)
        return (), ()

    def _can_spare(self, account: Account, holds: Sequence[int], owed: Sequence[Amount]) -> bool:
        """Tell whether a queue has more than it deserves of something owed, and of what it would lose more than its guarantee."""
        return any(holds[column] > 0 and self._has_too_much(account, column) for column, _ in owed) and all(
            self._used(account, column) - amount >= account.guarantee[column]
            for column, amount in enumerate(holds)
            if amount > 0
        )

    def _has_too_much(self, account: Account, column: int) -> bool:
        return self._used(account, column) > account.deserved[column]

    def _used(self, account: Account, column: int) -> int:
        """Return what the pods of a queue use."""
        reserved = self._reserved.get(account)
        return account.used[column] - (0 if reserved is None else int(reserved[column]))
