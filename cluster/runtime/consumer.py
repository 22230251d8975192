"""Consuming the log exactly once.

A consumer keeps a picture of the part of the world that it cares about, kept
up to date from the log, and plans writes from what changed. The plan, the
cursor and the timers are committed in one transaction, so a change is
neither lost nor handled twice, whichever process is killed at whichever
moment. Picture and cursor belong together: when they do not match (another
process was faster, a commit failed, the process is new), the picture is
thrown away and loaded again.

State is level-based: after a load a consumer looks at everything once.
Events are edges: they come from consecutive versions of an object. A
consumer that is registered for them hears each change with what it replaced,
once and in order, also those of the time in which it was away; these it is
told batch by batch, with a state that is newer.
"""

from __future__ import annotations

import logging
import os
import socket
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec
from django.db import connections, transaction

from cluster import clock
from cluster.api import backend
from cluster.runtime import division, nudge, registry
from cluster.runtime.division import Position
from cluster.store import records, sql, store
from cluster.writes import Group, Record, Timer
from kube.errors import ApiError, Expired

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.runtime.division import Layers
    from cluster.runtime.registry import Registration
    from cluster.store import Change, Store, Stored

State = TypeVar("State")
log = logging.getLogger(__name__)

BATCH = 4000  # changes read in one step
ROUNDS = 200  # steps of one run before it lets others have the worker process
LEASE_MS = 5000  # how long a silent leader keeps other worker processes out
LAG = 5000  # irrelevant revisions after which a cursor is moved all the same, for retention's sake
NEAR_MS = 1500  # timers due sooner are not left to beat's tick
RETRY = "retry"  # the kind of the timers that bring failed groups back
RETRY_MS = 50  # a group that fails a second time waits this long, then twice as long each time
RETRY_MOST_MS = 30_000


class Plan(msgspec.Struct):
    """What a consumer wants done: groups of writes, timers to set, (kind, key) of timers that go, and records to keep.

    A plan is data: nothing in it can be called, so that it can be written down and carried out elsewhere.
    """

    groups: Sequence[Group] = ()
    timers: Sequence[Timer] = ()
    cancel: Sequence[tuple[str, str]] = ()
    records: Sequence[Record] = ()


class Consumer(ABC, Generic[State]):
    """One reader of the log. Subclasses hold rules, not state: that is what load() returns."""

    name: str

    @abstractmethod
    def load(self, shard: int, revision: int) -> State:
        """Return the world as it is; called inside `store.reading()`.

        The next plan() must look at everything in it, whatever its changes say.
        """

    @abstractmethod
    def apply(self, state: State, change: Change) -> None:
        """Bring the state from one revision to the next."""

    @abstractmethod
    def plan(self, state: State, changes: Sequence[Change], timers: Sequence[Timer], now: int) -> Plan:
        """Return what is to be done after these changes and due timers.

        A group that could not be committed comes back as a due Timer of the
        kind RETRY with the group's key and the payload
        `{"error": message, "tries": n}`: at once the first time, later and
        later when it goes on failing.

        The changes have been applied to the state already, and the state may
        be newer than they are: after a load a consumer that hears changes is
        told those of the time in which it was away batch by batch.

        A plan may read the store, but what it finds there may be newer than
        the state. So what it takes over must be compared by revision, and is
        never put over something newer; and a plan never decides by it
        against what the state says.

        Each of several shards is told the changes of all keys, and acts on
        those of its own.
        """

    def lags(self, state: State, *, is_behind: bool) -> None:
        """Learn, before each plan, whether changes that the state shows have yet to be told.

        Who acts on what happened, and not only on what is, may want to hear
        all of it before he decides by a state that shows what came of it.
        """

    def key_of(self, change: Change) -> str:
        """Return the key by which the shards divide a change among them; it is empty for one that concerns every shard.

        By it a change is told once for its key, also when the number of shards becomes another. One that
        concerns every shard may then be told to some of them again.
        """
        return change.key

    def committed(
        self, state: State, groups: Sequence[Group], outcomes: Sequence[list[Stored] | ApiError]
    ) -> None:
        """Learn what became of each group of the last plan, once its transaction has ended.

        The outcome of a group is its objects as they were written, one for
        each write, or the error that it met. A write that changed nothing
        gives the object as it was, with an older revision.
        """


class Outrun(Exception):
    """Another worker process has moved the cursor."""


class Runner(Generic[State]):
    """Runs one shard of one consumer in this process and keeps its state between runs.

    `holder` names the process to others; who runs several in one process names them himself.
    """

    def __init__(
        self,
        registration: Registration,
        shard: int,
        consumer: Consumer[State],
        using: Store = store,
        holder: str = "",
    ) -> None:
        self.registration = registration
        self.shard = shard
        self.consumer = consumer
        self.store = using
        self.cursor = registration.cursor_of(shard)
        self.holder = holder or os.environ.get("VOLCANO_UI_WORKER") or f"{socket.gethostname()}:{os.getpid()}"
        self.state: State | None = None
        self.generation = -1
        self.position = -1  # of the state
        self.heard = -1  # up to where plan() has been told the changes
        self.written = 0
        self.is_in_place = False  # what another number of shards left is taken over
        self.tries: dict[str, int] = {}

    def run(self) -> None:
        """Read, plan and commit until nothing is new."""
        for _ in self.rounds():
            pass

    def rounds(self) -> Iterator[None]:
        """Do what `run` does, and yield after each batch."""
        nudge.started(self.cursor)
        for _ in range(ROUNDS):
            with nudge.running(self.cursor):
                more = self.step()
            if not more:
                return
            yield
        nudge.wake(self.registration, self.shard)

    def step(self) -> bool:
        """Handle one batch; tell whether there may be more."""
        now = clock.milliseconds()
        if not self.is_in_place:
            division.take_over(self.registration, self.store.using)
            self.is_in_place = True
        try:
            with self.store.reading() as head:
                cursor = self._read_cursor()
                if cursor is None or _leads_another(cursor, self.holder, now):
                    return False
                known = self.state if cursor.generation == self.generation else None
                state = self._load(cursor, head) if known is None else known
                changes = self._next(state, cursor.handled)
                timers = self._due(now)
            if known is not None and not changes and not timers:
                return self._skip(cursor, head)
            self.consumer.lags(state, is_behind=self.heard < self.position)
            self._commit(cursor, self.consumer.plan(state, changes, timers, now), timers, now)
        except Outrun:
            self.state = None
        except Exception:
            self.state = None
            raise
        return True

    def _load(self, cursor: Position, head: int) -> State:
        """Load the state at `head`; what was changed before it is still to be told to those who hear it."""
        self.state = self.consumer.load(self.shard, head)
        self.generation, self.position = cursor.generation, head
        has_past = cursor.generation > 0 and self.registration.hears != "state"
        self.heard = cursor.position if has_past else head
        return self.state

    def _next(self, state: State, handled: Layers) -> list[Change]:
        """Return the next changes to plan for, with the state at them or further."""
        if self.heard < self.position:
            if self.position < self.written:
                self._advance(state)
            if missed := self._missed(handled):
                return missed
        changes = self._advance(state)
        self.heard = self.position
        return changes

    def _missed(self, handled: Layers) -> list[Change]:
        """Return one batch of the changes that the state shows and plan() was not told of; none at their end.

        Only among these are some that an earlier division told: the state was loaded later than that.
        """
        batch: list[Change] = []
        while self.heard < self.position and not batch:
            batch = self._past()
            self.heard = batch[-1].revision if len(batch) == BATCH else self.position
            if handled:
                batch = [
                    c for c in batch if not division.was_told(handled, self.consumer.key_of(c), c.revision)
                ]
        return batch

    def _past(self) -> list[Change]:
        try:
            return self._changes(self.heard, until=self.position)
        except Expired:
            log.warning("consumer %s was away for longer than history is kept", self.cursor)
            return []

    def _changes(self, after: int, until: int | None = None) -> list[Change]:
        wanted = self.registration
        edges = wanted.hears == "edges"
        return self.store.changes(after, wanted.resources, limit=BATCH, until=until, previous=edges)

    def _advance(self, state: State) -> list[Change]:
        """Bring the state up to the newest change, or through one batch; return the changes.

        Never short of what this runner wrote itself: a plan made from a state
        that does not show the last plan's writes would do them again, or give
        away twice what they took.
        """
        changes: list[Change] = []
        while True:
            batch = self._changes(self.position)
            for change in batch:
                self.consumer.apply(state, change)
            changes += batch
            if batch:
                self.position = batch[-1].revision
            if len(batch) < BATCH or self.position >= self.written:
                return changes

    def _skip(self, cursor: Position, head: int) -> bool:
        """Nothing concerns this consumer: remember that without a write, but for now and then."""
        self.heard = self.position = max(self.position, head)
        if cursor.handled or head - cursor.position > LAG:
            self._commit(cursor, Plan(), [], clock.milliseconds())
        return False

    def _commit(self, cursor: Position, plan: Plan, timers: Sequence[Timer], now: int) -> None:
        with transaction.atomic(using=self.store.using):
            sql.lock_head(self.store.using)  # before the cursor's row, as who puts other shards in place
            self._move_cursor(cursor, now)
            outcomes = backend.commit(plan.groups, now, self.store)
            again = self._again(plan.groups, outcomes, now)
            self._drop_timers([*((t.kind, t.key) for t in timers), *plan.cancel])
            self._set_timers([*plan.timers, *again])
            records.put(plan.records, using=self.store.using)
            done = _committed(plan.groups, outcomes)
            self._drop_timers([key for group in done for key in group.cancel])
            self._set_timers(following := [timer for group in done for timer in group.timers])
        self.generation = cursor.generation + 1
        rows = (row for outcome in outcomes if not isinstance(outcome, ApiError) for row in outcome)
        self.written = max((row.revision for row in rows), default=self.written)
        if self.state is not None:
            self.consumer.committed(self.state, plan.groups, outcomes)
        self._wake_for([t.due for t in (*plan.timers, *again, *following)], now)

    def _again(
        self, groups: Sequence[Group], outcomes: Sequence[list[Stored] | ApiError], now: int
    ) -> list[Timer]:
        """Return the timers that bring failed groups back."""
        timers = []
        for group, outcome in zip(groups, outcomes, strict=True):
            if not isinstance(outcome, ApiError):
                self.tries.pop(group.key, None)
                continue
            tries = self.tries[group.key] = self.tries.get(group.key, 0) + 1
            log.info("consumer %s will look at %s again: %s", self.cursor, group.key, outcome)
            if group.key:
                wait = 0 if tries == 1 else min(RETRY_MOST_MS, RETRY_MS << min(tries - 2, 20))
                timers.append(Timer(RETRY, group.key, now + wait, {"error": str(outcome), "tries": tries}))
        return timers

    def _wake_for(self, dues: Sequence[int], now: int) -> None:
        soon = min(dues, default=now + NEAR_MS) - now
        if soon < NEAR_MS:
            nudge.wake(self.registration, self.shard, delay_s=max(soon, 1) / 1000)

    def _read_cursor(self) -> Position | None:
        """Return the shard's cursor; None when another number of shards has taken this one's place."""
        found = division.read(self.registration, self.store.using)
        if not found:
            return Position(0, 0, "", 0)
        return found[self.cursor] if found.keys() == set(self.registration.cursors) else None

    def _move_cursor(self, cursor: Position, now: int) -> None:
        """Move the cursor unless somebody else did since it was read; the first to do so makes those of all shards."""
        handled = msgspec.json.encode(division.beyond(cursor.handled, self.heard)).decode()
        with connections[self.store.using].cursor() as db:
            if cursor.generation == 0:
                db.executemany(
                    "INSERT INTO cluster_cursor (name, position, generation, holder, held_until, handled)"
                    " VALUES (%s, %s, %s, '', 0, '[]') ON CONFLICT (name) DO NOTHING",
                    [(name, self.heard, int(name != self.cursor)) for name in self.registration.cursors],
                )
            db.execute(
                "UPDATE cluster_cursor SET position = %s, generation = generation + 1, holder = %s,"
                " held_until = %s, handled = %s WHERE name = %s AND generation = %s",
                [self.heard, self.holder, now + LEASE_MS, handled, self.cursor, cursor.generation],
            )
            if db.rowcount != 1:
                raise Outrun(self.cursor)

    def _due(self, now: int) -> list[Timer]:
        return division.due_timers(self.cursor, now, BATCH, self.store.using)

    def _drop_timers(self, keys: Sequence[tuple[str, str]]) -> None:
        division.drop_timers([(self.cursor, kind, key) for kind, key in keys], self.store.using)

    def _set_timers(self, timers: Sequence[Timer]) -> None:
        rows = [(self.cursor, t.kind, t.key, t.due, msgspec.json.encode(t.payload).decode()) for t in timers]
        division.put_timers(rows, self.store.using)


def _committed(groups: Sequence[Group], outcomes: Sequence[list[Stored] | ApiError]) -> list[Group]:
    pairs = zip(groups, outcomes, strict=True)
    return [group for group, outcome in pairs if not isinstance(outcome, ApiError)]


def timers_of(name: str, shard: int, kind: str, using: Store = store) -> list[Timer]:
    """Return all timers of a kind that a consumer's shard has set, also those that are not due."""
    return division.timers_of_kind(registry.get(name).cursor_of(shard), kind, using.using)


def timers_for(name: str, kind: str, key: str, using: Store = store) -> list[Timer]:
    """Return the timers of a kind that a consumer has set for a key, also those that are not due."""
    registration = registry.get(name)
    cursor = registration.cursor_of(registry.shard_of(key, registration.shards))
    return division.timers_of_kind(cursor, kind, using.using, key)


_runners: dict[str, Runner[Any]] = {}


def _leads_another(cursor: Position, holder: str, now: int) -> bool:
    """Say whether another worker process leads.

    None leads for longer than LEASE_MS: one that is told to has got its lease
    before the clock was set back, and may be dead.
    """
    return cursor.holder not in ("", holder) and 0 < cursor.held_until - now <= LEASE_MS


def runner(name: str, shard: int) -> Runner[Any]:
    """Return this process's runner of a consumer's shard."""
    registration = registry.get(name)
    cursor = registration.cursor_of(shard)
    if cursor not in _runners:
        _runners[cursor] = Runner(registration, shard, registration.make())
    return _runners[cursor]
