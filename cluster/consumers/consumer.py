"""Consuming the log exactly once.

A consumer keeps a picture of the part of the world that it cares about, kept up to date from the log, and plans writes
from what changed. The plan, the cursor and the timers are committed in one transaction, so a change is neither lost nor
handled twice, whichever process is killed at whichever moment. Where the cluster has an API of its own, a plan is
written down in that transaction, and done before the next is made. Picture and cursor belong together: when they do not
match (another process was faster, a commit failed, the process is new), the picture is thrown away and loaded again.

State is level-based: after a load a consumer looks at everything once. Events are edges: they come from consecutive
versions of an object. A consumer that is registered for them hears each change with what it replaced, once and in
order, also those of the time in which it was away; these it gets batch by batch, with a state that is newer.
"""

from __future__ import annotations

import logging
import os
import socket
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Generic, TypeVar

import msgspec
from django.db import transaction

from cluster import clock
from cluster.api import backend
from cluster.runtime import division, nudge, registry
from cluster.runtime.division import LEASE_MS, Layers, Position
from cluster.runtime.registry import Registration
from cluster.runtime.retries import RETRY, Retries
from cluster.store import Change, Store, Stored, decisions, records, sql, store
from cluster.writes import Group, Record, Timer
from kube.errors import ApiError, Expired

State = TypeVar("State")
__all__ = ["RETRY", "Consumer", "Plan", "Runner", "runner", "timers_for", "timers_of"]
log = logging.getLogger(__name__)

BATCH = 4000  # changes read in one step
ROUNDS = 200  # steps of one run before it lets others have the worker process
LAG = 5000  # irrelevant revisions after which a cursor is moved all the same, for retention's sake
NEAR_MS = 1500  # timers due sooner are not left to beat's tick


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

        A group that could not be committed comes back as a due Timer of the kind RETRY with the group's key and the
        payload `{"error": message, "tries": n}`: at once the first time, later and later when it goes on failing.

        The changes have been applied to the state already, and the state may be newer than they are: after a load a
        consumer that hears changes gets those of the time in which it was away batch by batch.

        A plan may read the store, but what it finds there may be newer than the state. So what it takes over must be
        compared by revision, and is never put over something newer; and a plan never decides by it against what the
        state says.

        Each of several shards gets the changes of all keys, and acts on those of its own.
        """

    def lags(self, state: State, *, is_behind: bool) -> None:
        """Learn, before each plan, whether changes that the state shows have yet to be delivered.

        Who acts on what happened, and not only on what is, may want to hear
        all of it before he decides by a state that shows what came of it.
        """

    def key_of(self, change: Change) -> str:
        """Return the key by which the shards divide a change among them; it is empty for one that concerns every shard.

        By it a change is delivered once for its key, also when the number of shards becomes another. One that
        concerns every shard may then be delivered to some of them again.
        """
        return change.key

    def committed(self, state: State, groups: Sequence[Group], outcomes: Sequence[list[Stored] | ApiError]) -> None:
        """Learn what became of each group of the last plan, once its transaction has ended.

        The outcome of a group is its objects as they were written, one for each write, or the error that it met. A
        write that changed nothing gives the object as it was, with an older revision.
        """


class Outrun(Exception):
    """Another worker process has moved the cursor."""


class Runner(Generic[State]):
    """Runs one shard of one consumer in this process and keeps its state between runs.

    `holder` names the process to others; who runs several in one process names them himself.
    """

    def __init__(
        self, registration: Registration, shard: int, consumer: Consumer[State], using: Store = store, holder: str = ""
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
        self.delivered = -1  # the revision up to which plan() has got the changes
        self.written = 0
        self.has_taken_over = False  # what another number of shards left is taken over
        self.retries = Retries(registration.name, self.cursor, using.using)
        self.looks_at = 0.0  # when a run comes that was asked for, for a plan on its way

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
        if not self.has_taken_over:
            division.take_over(self.registration, self.store.using)
            self.has_taken_over = True
        try:
            if backend.owes(self.registration, self.shard, self.store):
                return self._carry_out(now)
            if not backend.may_plan(self.registration, self.shard, self.store):
                return False
            with self.store.reading() as head:
                cursor = self._read_cursor()
                if cursor is None or cursor.is_led_by_another(self.holder, now):
                    return False
                current = self.state if cursor.generation == self.generation else None
                state = self._load(cursor, head) if current is None else current
                changes = self._next(state, cursor.handled)
                timers = division.due_timers(self.cursor, now, BATCH, self.store.using)
            if current is not None and not changes and not timers:
                return self._skip(cursor, head)
            self.consumer.lags(state, is_behind=self.delivered < self.position)
            self._commit(cursor, self.consumer.plan(state, changes, timers, now), timers, now)
        except Exception as error:
            self.state = None
            self.retries.forget_memory()
            if not isinstance(error, Outrun):
                raise
        return True

    def _load(self, cursor: Position, head: int) -> State:
        """Load the state at `head`; changes before it have yet to be delivered to a consumer that hears them."""
        self.state = self.consumer.load(self.shard, head)
        self.generation, self.position = cursor.generation, head
        has_past = cursor.generation > 0 and self.registration.hears != "state"
        self.delivered = cursor.position if has_past else head
        return self.state

    def _next(self, state: State, handled: Layers) -> list[Change]:
        """Return the next changes to plan for, with the state at them or further."""
        if self.delivered < self.position:
            if self.position < self.written:
                self._advance(state)
            if missed := self._missed(handled):
                return missed
        changes = self._advance(state)
        self.delivered = self.position
        return changes

    def _missed(self, handled: Layers) -> list[Change]:
        """Return one batch of the changes that the state shows and plan() has not got; none at their end.

        Only among these are some that an earlier division delivered: the state was loaded later than that.
        """
        batch: list[Change] = []
        while self.delivered < self.position and not batch:
            try:
                batch = self._changes(self.delivered, until=self.position)
            except Expired:
                log.warning("consumer %s was away for longer than history is kept", self.cursor)
            self.delivered = batch[-1].revision if len(batch) == BATCH else self.position
            if handled:
                batch = [c for c in batch if not division.was_delivered(handled, self.consumer.key_of(c), c.revision)]
        return batch

    def _changes(self, after: int, until: int | None = None) -> list[Change]:
        kinds, edges = self.registration.resources, self.registration.hears == "edges"
        return self.store.changes(after, kinds, limit=BATCH, until=until, previous=edges)

    def _advance(self, state: State) -> list[Change]:
        """Bring the state up to the newest change, or through one batch; return the changes.

        Never short of what this runner wrote itself: a plan made from a state that does not show the last plan's writes
        would do them again, or give away twice what they took.
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
        self.delivered = self.position = max(self.position, head)
        if cursor.handled or head - cursor.position > LAG:
            self._commit(cursor, Plan(), [], clock.milliseconds())
        return False

    def _commit(self, cursor: Position, plan: Plan, timers: Sequence[Timer], now: int) -> None:
        with transaction.atomic(using=self.store.using):
            sql.lock_head(self.store.using)  # before the cursor's row, as who puts other shards in place
            self._move_cursor(cursor, now)
            outcomes = backend.commit(self.cursor, plan.groups, now, self.store)
            self._drop_timers([*((t.kind, t.key) for t in timers), *plan.cancel])
            self._set_timers(plan.timers)
            self.retries.outlived(timers, plan.groups, plan.timers)
            records.put(plan.records, using=self.store.using)
            following = [] if outcomes is None else self._conclude(plan.groups, outcomes, now)
        self.generation = cursor.generation + 1
        if outcomes is not None:
            self._learn(plan.groups, outcomes)
        self._wake_for([t.due for t in (*plan.timers, *following)], now)

    def _carry_out(self, now: int) -> bool:
        """Have the plan done that the backend owes; tell whether it is, so that the next can be made."""
        cursor = self._read_cursor()
        if cursor is None or cursor.is_led_by_another(self.holder, now):
            return False
        with transaction.atomic(using=self.store.using):
            self._hold(cursor, cursor.generation, now)
        carried = backend.carry_out(self.registration, self.shard, self.store)
        if carried == 0.0:
            return True
        if isinstance(carried, float):
            # Each run before the one that is asked for already would ask for another one.
            if self.looks_at <= (moment := clock.monotonic()):
                self.looks_at = moment + carried
                nudge.wake(self.registration, self.shard, delay_s=carried)
            return False
        with transaction.atomic(using=self.store.using):
            sql.lock_head(self.store.using)
            self._hold(cursor, cursor.generation + 1, now)
            outcomes = carried.settle()
            following = self._conclude(carried.groups, outcomes, now)
            head = self.store.revision()
        if self.generation == cursor.generation:
            self.generation += 1
            self._learn(carried.groups, outcomes)
            # A binding, or an end, was waited for in the log and has no revision in its outcome.
            self.written = max(self.written, head)
        self._wake_for([t.due for t in following], now)
        return True

    def _conclude(self, groups: Sequence[Group], outcomes: Sequence[list[Stored] | ApiError], now: int) -> list[Timer]:
        """Set the timers that follow from what became of groups, drop those that went with them, and keep what was decided.

        Return the new timers.
        """
        again = self.retries.timers(groups, outcomes, now)
        self._drop_timers([(t.kind, t.key) for t in again])  # of two the sooner would stay
        self._set_timers(again)
        done = [g for g, outcome in zip(groups, outcomes, strict=True) if not isinstance(outcome, ApiError)]
        self._drop_timers([key for group in done for key in group.cancel])
        self._set_timers(following := [timer for group in done for timer in group.timers])
        decisions.put([each for group in done for each in group.decisions], using=self.store.using)
        return [*again, *following]

    def _learn(self, groups: Sequence[Group], outcomes: Sequence[list[Stored] | ApiError]) -> None:
        """Tell the consumer what became of its plan, and how far its state must be read before the next."""
        rows = (row for outcome in outcomes if not isinstance(outcome, ApiError) for row in outcome)
        self.written = max((row.revision for row in rows), default=self.written)
        if self.state is not None:
            self.consumer.committed(self.state, groups, outcomes)

    def _wake_for(self, dues: Sequence[int], now: int) -> None:
        soon = min(dues, default=now + NEAR_MS) - now
        if soon < NEAR_MS:
            nudge.wake(self.registration, self.shard, delay_s=max(soon, 1) / 1000)

    def _read_cursor(self) -> Position | None:
        """Return the shard's cursor; None when another number of shards has taken this one's place."""
        cursors = division.read(self.registration, self.store.using)
        if not cursors:
            return Position(0, 0, "", 0)
        return cursors[self.cursor] if cursors.keys() == set(self.registration.cursors) else None

    def _move_cursor(self, cursor: Position, now: int) -> None:
        """Move the cursor unless somebody else did since it was read."""
        lead = self.holder, now + LEASE_MS
        if not division.move(self.registration, self.shard, cursor, self.delivered, lead, self.store.using):
            raise Outrun(self.cursor)

    def _hold(self, cursor: Position, generation: int, now: int) -> None:
        lead = self.holder, now + LEASE_MS
        if not division.hold(self.cursor, cursor, generation, lead, self.store.using):
            raise Outrun(self.cursor)

    def _drop_timers(self, keys: Sequence[tuple[str, str]]) -> None:
        division.drop_timers([(self.cursor, kind, key) for kind, key in keys], self.store.using)

    def _set_timers(self, timers: Sequence[Timer]) -> None:
        rows = [(self.cursor, t.kind, t.key, t.due, msgspec.json.encode(t.payload).decode()) for t in timers]
        division.put_timers(rows, self.store.using)


def timers_of(name: str, shard: int, kind: str, using: Store = store) -> list[Timer]:
    """Return all timers of a kind that a consumer's shard has set, also those that are not due."""
    return division.timers_of_kind(registry.get(name).cursor_of(shard), kind, using.using)


def timers_for(name: str, kind: str, key: str, using: Store = store) -> list[Timer]:
    """Return the timers of a kind that a consumer has set for a key, also those that are not due."""
    registration = registry.get(name)
    cursor = registration.cursor_of(registry.shard_of(key, registration.shards))
    return division.timers_of_kind(cursor, kind, using.using, key)


_runners: dict[str, Runner[Any]] = {}


def runner(name: str, shard: int) -> Runner[Any]:
    """Return this process's runner of a consumer's shard."""
    registration = registry.get(name)
    cursor = registration.cursor_of(shard)
    if cursor not in _runners:
        _runners[cursor] = Runner(registration, shard, registration.make())
    return _runners[cursor]
