"""Which pods a queue may take from others, so that it comes to what it deserves (reference/volcano-scheduler §3.5, §3.6).

* A queue is *owed* a resource that the gang requests if, with the gang's minimum, it has no more of it than it deserves. If it would have
  more of some resource, that must be idle on the nodes, so that no queue has to give it, and the queue is owed only what is not idle:
  otherwise two queues that each have something of their own could take a node from each other forever. If this holds for queues above
  it as well, the queues beside those may have to give too: every queue below the common parent must be owed it.
* Queues on the other side, below the common parent, give while they have more than they deserve of something that is owed and that the pods
  hold, and keep at least their guarantee of everything. The last eviction may leave a queue with less than it deserves, or nothing:
  otherwise a queue of large pods or gangs would hold forever what it borrowed. None can take back what it gave: the gang's queue
  has no more of it than it deserves.
* Room that is reserved for a queue (`scheduler.cycle.reservations`) is not used by it yet, so it gives nothing for that.
* `pods` are not a resource that queues deserve.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from scheduler.engine.accounts import Account
from scheduler.engine.arrays import Amount, Vector


class Reclaim:
    """What one gang may take from queues other than its own."""

    def __init__(
        self,
        own: Account,
        requests: Sequence[Amount],
        pods: int,
        idle: Sequence[int],
        reserved: Mapping[Account, Vector] = MappingProxyType({}),
    ) -> None:
        """requests: what the gang's minimum requests in total. pods: the column of `pods`. idle: by column, what is free where it may be.

        reserved: what accounts are charged with for reservations.
        """
        self._own, self._reserved = own, reserved
        self._owed: dict[Account, Sequence[Amount]] = {}
        """What is owed to the queue, and to each above it below a common parent, by that parent."""
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
        """Tell whether pods that hold this much may be taken from a queue in its present state."""
        side, owed = self._side(account)
        return bool(side) and all(self._can_spare(each, holds, owed) for each in side)

    def nearness(self, account: Account) -> int:
        """Return how many queues are above both; queues that share most with the gang's are asked first."""
        return sum(each in self._own.line for each in account.line)

    def _side(self, account: Account) -> tuple[Sequence[Account], Sequence[Amount]]:
        """Return a queue and those above it, below the first common parent with the gang's queue, and what is owed to the gang's side.

        Both are empty where nothing is owed below that parent; the first is empty for a queue in the gang's own line.
        """
        for number, above in enumerate(account.line):
            if above in self._own.line:
                owed = self._owed.get(above)
                return ((), ()) if owed is None else (account.line[:number], owed)
        return (), ()

    def _can_spare(self, account: Account, holds: Sequence[int], owed: Sequence[Amount]) -> bool:
        """Tell whether a queue has too much of something owed that the pods hold, and would keep its guarantee of everything."""
        return any(holds[column] > 0 and self._has_too_much(account, column) for column, _ in owed) and all(
            self._used(account, column) - amount >= account.guarantee[column]
            for column, amount in enumerate(holds)
            if amount > 0
        )

    def _has_too_much(self, account: Account, column: int) -> bool:
        return self._used(account, column) > account.deserved[column]

    def _used(self, account: Account, column: int) -> int:
        """Return what a queue's pods use, without reservations."""
        reserved = self._reserved.get(account)
        return account.used[column] - (0 if reserved is None else int(reserved[column]))
