"""What queues use, and what they may use: a tree of accounts that placing gangs charges.

An account *holds* what its pods use; one with accounts below it holds, for each of them, what that one holds or its guarantee,
whichever is more. No account may hold more than its ceiling. So a guarantee is lent to no other queue, and a queue gets its
guarantee however much its neighbours use (reference/volcano-scheduler §3.5, `realCapability`, which does not stop two neighbours
together from using a third one's guarantee).

Amounts are whole numbers by column, in plain lists: there are a handful of columns, and arrays of five numbers cost more than
they save.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from scheduler.engine.arrays import UNLIMITED, Amount


class Account:
    """What one queue and those below it hold.

    ceiling    by column, UNLIMITED where there is none
    guarantee  by column, kept for it and never lent
    deserved   by column, its fair share: the queue with less of it is served first
    used       by column, what its pods really use
    rank       what comes before shares, and what breaks ties: priority, creation time (epoch ms)
    fifo       no gang in the queue is served while the first one waits
    """

    __slots__ = ("below", "ceiling", "deserved", "fifo", "guarantee", "held", "line", "name", "parent", "rank", "used")

    def __init__(
        self,
        name: str,
        ceiling: Sequence[int],
        guarantee: Sequence[int],
        deserved: Sequence[int],
        parent: Account | None = None,
        *,
        rank: tuple[int, int] = (0, 0),
        fifo: bool = False,
    ) -> None:
        self.rank, self.fifo = rank, fifo
        self.name, self.parent = name, parent
        self.ceiling, self.guarantee, self.deserved = ceiling, guarantee, deserved
        self.used = [0] * len(ceiling)
        self.held = [0] * len(ceiling)
        self.line: tuple[Account, ...] = (self, *(parent.line if parent else ()))
        """Itself and the accounts above it, nearest first."""
        self.below: list[Account] = []
        if parent is not None:
            parent.below.append(self)
            for column, amount in enumerate(guarantee):
                parent._hold(column, amount)

    def charge(self, request: Iterable[Amount], times: int) -> None:
        """Add `times` pods that ask for these amounts; a negative number takes them away again."""
        for column, amount in request:
            change = amount * times
            for account in self.line:
                account.used[column] += change
            self._hold(column, change)

    def allowed(self, request: Iterable[Amount], wanted: int) -> int:
        """Return how many of `wanted` pods that ask for these amounts the ceilings admit."""
        for column, amount in request:
            if amount > 0:
                wanted = min(wanted, self.room(column) // amount)
        return wanted

    def room(self, column: int) -> int:
        """Return how much more of a column its pods may use, at least 0."""
        return min(room for _, room in self.rooms(column))

    def rooms(self, column: int) -> Iterator[tuple[Account, int]]:
        """Yield itself and those above it, each with how much more of a column its ceiling lets pods here use."""
        guaranteed = 0  # unused guarantees of accounts below, which those above hold already
        for account in self.line:
            yield account, guaranteed + max(account.ceiling[column] - account.held[column], 0)
            guaranteed += max(account.guarantee[column] - account.held[column], 0)

    def limits(self, column: int) -> Iterator[tuple[Account, int]]:
        """Yield itself and those above it, each with the most of a column that pods here may use if nobody else used any."""
        guaranteed, inner = 0, None
        for account in self.line:
            guaranteed += sum(each.guarantee[column] for each in account.below if each is not inner)
            yield account, max(account.ceiling[column] - guaranteed, self.guarantee[column])
            inner = account

    def could_hold(self, request: Iterable[Amount]) -> bool:
        """Tell whether its pods might use these amounts if nobody else used any."""
        return all(amount <= most for column, amount in request for _, most in self.limits(column))

    def keepers(self, column: int, above: Account) -> list[tuple[Account, int]]:
        """Return the queues beside its line that keep some of a column from pods here, up to the account `above`; most first.

        Each comes with the unused amount that its guarantees keep there.
        """
        found, inner = [], None
        for account in self.line[: self.line.index(above) + 1]:
            beside = (each for each in account.below if each is not inner)
            found += [(each, max(each.held[column], each.guarantee[column]) - each.used[column]) for each in beside]
            inner = account
        return sorted(((each, unused) for each, unused in found if unused), key=lambda pair: (-pair[1], pair[0].name))

    def share(self) -> float:
        """Return the largest part of what it deserves that it uses.

        An account that deserves nothing starts at 1, as if it had all that it deserves, and adds the part that it uses of what
        the queue above it deserves (§3.6 says 1, whatever it uses).
        """
        before, whole = self._measure()
        return before + max((used / due for used, due in zip(self.used, whole, strict=True) if due), default=0.0)

    def pods_until(self, share: float, request: Iterable[Amount]) -> int:
        """Return how many pods that ask for these amounts raise its share above another one; at least 1."""
        before, whole = self._measure()
        left = (
            (int((share - before) * whole[column]) - self.used[column]) // amount
            for column, amount in request
            if amount > 0 and whole[column]
        )
        return max(min(left, default=UNLIMITED) + 1, 1)

    def _measure(self) -> tuple[float, Sequence[int]]:
        """Return the share when nothing is used, and the amounts against which use is measured."""
        if any(self.deserved) or self.parent is None:
            return 0.0, self.deserved
        return 1.0, self.parent.deserved

    def _hold(self, column: int, change: int) -> None:
        for account in self.line:
            before = max(account.held[column], account.guarantee[column])
            account.held[column] += change
            change = max(account.held[column], account.guarantee[column]) - before
            if not change:
                break


def copied(accounts: Mapping[str, Account], *, charged: bool) -> dict[str, Account]:
    """Return a copy of a tree of accounts, with or without its charges; each stands after its parent."""
    copies: dict[str, Account] = {}
    for name, each in accounts.items():
        parent = copies[each.parent.name] if each.parent else None
        copies[name] = Account(
            name, each.ceiling, each.guarantee, each.deserved, parent, rank=each.rank, fifo=each.fifo
        )
    if charged:
        for name, each in accounts.items():
            copies[name].used, copies[name].held = list(each.used), list(each.held)
    return copies
