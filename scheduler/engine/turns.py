"""Whose turn it is: queues by their shares, and inside a queue its gangs.

Queues go by priority, then by how little they have of what they deserve, then oldest first; in a tree of queues this holds level
by level. Inside a queue gangs go by priority; among equals all minima come before pods beyond a minimum; minima in the order
given, the others by how much of the cluster their gang has (the dominant share, drf). That is the order of Volcano's plugins
priority, gang, drf and proportion or capacity (reference/volcano-scheduler §2.2, §3.1 to §3.6).

Beyond the minimum Volcano gives one pod a turn. Here a turn is as many pods as it takes until another queue or gang is first by a
grain, which is a small part of a share: two large queues do not alternate at each pod, and in small ones a grain is less than a
pod, so that the outcome is the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from scheduler.engine.accounts import Account
from scheduler.engine.arrays import UNLIMITED, Amount
from scheduler.engine.gang import Gang

QUEUE_GRAIN = 1 / 256
"""The part of what it deserves by which a queue may get ahead of others in one turn."""
GANG_GRAIN = 1 / 4096
"""The part of the cluster by which a gang may get ahead of others of its queue in one turn."""

BranchKey = tuple[int, float, int, str]


class Turn(NamedTuple):
    """What is placed next: the minimum of a gang, or pods beyond it. gang is its number."""

    gang: int
    is_rest: bool


class _Entry(NamedTuple):
    """A gang in its queue, in the order in which they are served."""

    level: int  # the priority, negative
    is_rest: bool
    share: float  # dominant, for pods beyond a minimum
    gang: int


class _Branch:
    """A queue, with its gangs and the queues below it that have any."""

    __slots__ = ("above", "account", "branches", "entries")

    def __init__(self, account: Account | None, above: _Branch | None) -> None:
        self.account, self.above = account, above
        self.entries: list[_Entry] = []
        self.branches: list[tuple[BranchKey, _Branch]] = []

    def depth(self) -> int:
        """Return how many queues are above it."""
        return len(self.account.line) if self.account else 0

    def key(self) -> BranchKey:
        """Return the sort key among queues with the same parent: the least comes first."""
        account = self.account
        if account is None:
            return (0, 0.0, 0, "")
        priority, created = account.rank
        return (-priority, account.share(), created, account.name)


class Turns:
    """The order of one cycle. Whoever takes a turn says whether the gang wants another, and ends the turn."""

    def __init__(self, gangs: Sequence[Gang], total: Sequence[int]) -> None:
        """total is what the cluster offers, by column."""
        self._gangs, self._total = gangs, total
        self._held = {number: list(gang.held) for number, gang in enumerate(gangs) if gang.held}
        self._top = _Branch(None, None)
        self._branches: dict[Account | None, _Branch] = {None: self._top}
        for number, gang in enumerate(gangs):
            self._branch(gang.account).entries.append(_Entry(-gang.level, False, 0.0, number))
        for branch in self._branches.values():
            heapify(branch.entries)
        self._path: list[_Branch] = []
        self._line(sorted(self._branches.values(), key=_Branch.depth, reverse=True))

    def take(self) -> Turn | None:
        """Return whose turn it is, None when nobody is left."""
        branch = self._top
        self._path = [branch]
        while branch.branches:
            branch = heappop(branch.branches)[1]
            self._path.append(branch)
        if not branch.entries:
            return None
        entry = heappop(branch.entries)
        return Turn(entry.gang, entry.is_rest)

    def placed(self, number: int, request: Iterable[Amount], pods: int) -> None:
        """Note that a gang got pods that ask for these amounts."""
        held = self._held.setdefault(number, [0] * len(self._total))
        for column, amount in request:
            held[column] += amount * pods

    def again(self, number: int) -> None:
        """Give a gang another turn, for its pods beyond the minimum."""
        held = self._held.get(number, ())
        shares = (has / whole for has, whole in zip(held, self._total, strict=False) if whole)
        entry = _Entry(-self._gangs[number].level, True, max(shares, default=0.0), number)
        heappush(self._path[-1].entries, entry)

    def close(self) -> list[int]:
        """Let no more gangs of the queue start; return those still to come. Started ones go on beyond their minima."""
        branch = self._path[-1]
        behind = [entry.gang for entry in branch.entries if not entry.is_rest]
        branch.entries = [entry for entry in branch.entries if entry.is_rest]
        heapify(branch.entries)
        return behind

    def end(self) -> None:
        """End the turn: the queue rejoins the line where it belongs by now."""
        self._line(reversed(self._path[1:]))

    def most(self, number: int, request: tuple[Amount, ...]) -> int:
        """Return how many pods beyond its minimum a gang may get in this turn."""
        most = UNLIMITED
        for branch in self._path[1:]:
            others = branch.above.branches if branch.above else []
            if others and branch.account is not None:
                (priority, share, *_), *_ = others[0]
                if priority == branch.key()[0]:
                    most = min(most, branch.account.pods_until(share + QUEUE_GRAIN, request))
        entries = self._path[-1].entries
        if entries and entries[0].level == -self._gangs[number].level:
            most = min(most, self._pods_until(number, entries[0].share + GANG_GRAIN, request))
        return most

    def _pods_until(self, number: int, share: float, request: tuple[Amount, ...]) -> int:
        """Return how many pods raise the dominant share of a gang above another one; at least 1."""
        held = self._held.get(number) or [0] * len(self._total)
        left = (
            (int(share * self._total[column]) - held[column]) // amount
            for column, amount in request
            if amount > 0 and self._total[column]
        )
        return max(min(left, default=UNLIMITED) + 1, 1)

    def _branch(self, account: Account | None) -> _Branch:
        branch = self._branches.get(account)
        if branch is None and account is not None:
            branch = self._branches[account] = _Branch(account, self._branch(account.parent))
        return branch or self._top

    def _line(self, branches: Iterable[_Branch]) -> None:
        """Put queues that have something to place in line below their parent."""
        for branch in branches:
            if (branch.entries or branch.branches) and branch.above is not None:
                heappush(branch.above.branches, (branch.key(), branch))
