"""What may still be given out to groups that want to enter, by the accounts of queues.

Accounts are charged with what pods hold and, beyond that, with what groups that were let in may still take. Each priority that
asks has a tree of accounts, charged with the claims of this priority and of higher ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from kube.amounts import Amounts
from kube.usage import ROOT_QUEUE
from scheduler.engine.accounts import Account, copied
from scheduler.engine.arrays import Amount
from scheduler.engine.cause import Cause, Promise, Reason
from scheduler.reasons.limits import limit_cause, never_cause

Minimum = tuple[tuple[str, int], ...]


class ClusterRoom(NamedTuple):
    """The cluster by column: its size, the most that may be given out, what pods without a queue hold, and what is away.

    size is that of the nodes that take pods; away is what nodes have that are not ready or closed to new pods. most is below size
    only where root has a capability.
    """

    columns: Mapping[str, int]
    size: Sequence[int]
    most: Sequence[int]
    foreign: Sequence[int]
    away: Sequence[int]


class Claim(NamedTuple):
    """What pods in a queue hold or, with groups > 0, what so many groups may still take; `times` over."""

    priority: int
    queue: str
    amounts: Amounts
    times: int
    groups: int = 0


class Gate:
    """Lets groups in as long as there is room; what may be given out only shrinks."""

    def __init__(
        self, accounts: Mapping[str, Account], cluster: ClusterRoom, claims: Iterable[Claim], priorities: Iterable[int]
    ) -> None:
        """accounts have the ceilings of queues, priorities are of those who will ask; claims are in the order of entry."""
        base = copied(accounts, charged=False)
        root = base[ROOT_QUEUE]
        root.ceiling = cluster.most
        root.charge(enumerate(cluster.foreign), 1)
        level = _Level(base, cluster)
        left = sorted(claims, key=lambda claim: -claim.priority)[::-1]
        self._levels: dict[int, _Level] = {}
        for priority in sorted(set(priorities), reverse=True):
            while left and left[-1].priority >= priority:
                level.take(left.pop())
            self._levels[priority] = level
            level = level.copy()
        while left:
            level.take(left.pop())
        self._all = level
        self._cluster = cluster

    def account(self, queue: str) -> Account:
        """Return the account of a queue, charged with all that is held or may still be taken in it."""
        return self._all.accounts[queue]

    def ask(self, wanted: Minimum, claim: Claim) -> Cause | None:
        """Let a group in and note what it may take, or return why there is no room for its minimum."""
        cause = self._levels[claim.priority].refusal(claim.queue, wanted)
        if cause is None:
            self.admit(claim)
        return cause

    def admit(self, claim: Claim) -> None:
        """Note what a group that is let in may take, whether or not there is room."""
        for priority, each in self._levels.items():
            if priority <= claim.priority:
                each.take(claim)
        self._all.take(claim)

    def is_deserved(self, queue: str, wanted: Minimum) -> bool:
        """Tell whether, for each resource, a queue deserves a minimum on top of all claims in it, or that much is idle."""
        account = self.account(queue)
        root, size = account.line[-1], self._cluster.size

        def has(column: int, amount: int) -> bool:
            is_within = account.used[column] + amount <= min(account.deserved[column], account.ceiling[column])
            return is_within or amount <= min(account.room(column), size[column] - root.held[column])

        columns = [(self._cluster.columns.get(name), amount) for name, amount in wanted]
        return all(column is not None and has(column, amount) for column, amount in columns)


class _Level:
    """What may be given out beside the claims of one priority and of higher ones."""

    def __init__(self, accounts: dict[str, Account], cluster: ClusterRoom) -> None:
        self.accounts, self._cluster = accounts, cluster
        self._refused: dict[tuple[str, Minimum], Cause] = {}
        self._promised: dict[tuple[str, int], list[Any]] = {}  # queue, column → the fields of a Promise
        self._largest: dict[tuple[str, int], list[Any]] = {}  # the same, by the queue on which it weighs most

    def copy(self) -> _Level:
        """Return a level with the same claims."""
        level = _Level(copied(self.accounts, charged=True), self._cluster)
        level._promised = {key: list(promise) for key, promise in self._promised.items()}
        level._largest = {key: level._promised[promise[1], key[1]] for key, promise in self._largest.items()}
        return level

    def take(self, claim: Claim) -> None:
        """Charge a claim. What groups may still take is cut to what their queues admit."""
        account = self.accounts.get(claim.queue) or self.accounts[ROOT_QUEUE]
        taken: list[Amount] = []
        for name, each in claim.amounts.items():
            column = self._cluster.columns.get(name)
            if column is None:
                continue
            amount = each * claim.times
            if claim.groups:
                queues = account.line[:-1]
                rooms = (room for above, room in account.rooms(column) if above in queues)
                amount = min((amount, *rooms))
                self._promise(account, column, amount, claim.groups)
            taken.append((column, amount))
        account.charge(taken, 1)

    def refusal(self, queue: str, wanted: Minimum) -> Cause | None:
        """Return the cause of the first resource that is short, preferably one that can never suffice; None where there is room."""
        if (cached := self._refused.get((queue, wanted))) is not None:
            return cached
        own = self.accounts[queue]
        causes = [cause for name, amount in wanted for cause in self._short(own, name, amount)]
        found = next((cause for cause in causes if cause.never), causes[0] if causes else None)
        if found is not None:
            self._refused[queue, wanted] = found
        return found

    def _short(self, own: Account, resource: str, amount: int) -> Iterator[Cause]:
        """Yield the causes of all ceilings that leave too little of a resource, the queue's own first."""
        column = self._cluster.columns.get(resource)
        if column is None:
            yield Cause(Reason.NEVER_FITS, never=True, entering=True, resource=resource, requested=amount)
            return
        for (account, left), (_, most) in zip(own.rooms(column), own.limits(column), strict=True):
            if account.parent is None and account.ceiling[column] >= self._cluster.size[column]:
                cause = self._short_in_cluster(own, column, resource, amount, left, account.ceiling[column] - most)
            elif amount > most:
                cause = never_cause(own, account, column, resource, amount, most)
            elif amount > left:
                cause = limit_cause(own, account, column, resource, amount, left)
            else:
                continue
            if cause is not None:
                promise = None if cause.never else self._largest.get((account.name, column))
                yield replace(cause, entering=True, promise=Promise(*promise) if promise else None)

    def _short_in_cluster(
        self, own: Account, column: int, resource: str, amount: int, left: int, guaranteed: int
    ) -> Cause | None:
        """Return the cause when too little of the whole cluster can be given out; `guaranteed` of it may be others' guarantees."""
        root, size = own.line[-1], self._cluster.size[column]
        if amount > root.ceiling[column] or (guaranteed and amount > size):
            away = self._cluster.away[column]
            if size < amount <= size + away:
                return Cause(Reason.NODES_UNAVAILABLE, resource=resource, requested=amount, free=away, whole=size)
            return Cause(Reason.NEVER_FITS, never=True, resource=resource, requested=amount, whole=size)
        most = max(size - guaranteed, min(own.guarantee[column], size))
        if guaranteed and amount > most:
            return replace(never_cause(own, root, column, resource, amount, most), whole=size)
        if amount <= left:
            return None
        cause = replace(limit_cause(own, root, column, resource, amount, left), whole=size)
        if cause.reason in (Reason.QUEUE_LIMIT, Reason.PARENT_LIMIT):
            return replace(cause, reason=Reason.NOT_ENOUGH_RESOURCES, queue="")
        return cause

    def _promise(self, account: Account, column: int, amount: int, groups: int) -> None:
        """Note for messages what groups may still take; a queue's amount never falls."""
        if not amount:
            return
        promise = self._promised.setdefault((account.name, column), [0, account.name, 0])
        promise[0] += amount
        promise[2] += groups
        for above in account.line:
            key = above.name, column
            self._largest[key] = max(self._largest.get(key, promise), promise)
