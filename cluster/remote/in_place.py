"""The backend of a cluster on which our controllers and scheduler work: a plan is written down, sent, and settled.

Plan and cursor are one transaction, in which the plan's groups go into the outbox. Then they are sent, and when the
cluster has answered to all, a second transaction mirrors the answers and empties the outbox. The next plan is made
after that, from a mirror that has every answer; so nothing is assumed, and a process that starts again sends
first what it finds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from random import Random
from typing import NamedTuple

from django.db import transaction
from msgspec import structs

from cluster import clock
from cluster.backend import Backend, Carried
from cluster.remote import outbox, outcomes, recorder
from cluster.remote.backend import Remote
from cluster.remote.dispatch import order, requests, sending, verdicts
from cluster.remote.dispatch.sending import Pace, Sending
from cluster.remote.dispatch.verdicts import Again, Refused
from cluster.remote.door import server
from cluster.remote.http import encoding
from cluster.remote.http.request import RestClient
from cluster.remote.leader_election import election
from cluster.remote.leader_election.election import Leadership
from cluster.remote.mirroring import reflection
from cluster.remote.mirroring.ways import READERS, WRITERS
from cluster.remote.outbox import Row
from cluster.remote.outcomes import Answered, Dropped
from cluster.runtime.registry import Registration
from cluster.store import Group, Patch, Store, Stored
from cluster.writes import Minimum
from kube.errors import ApiError, NotFound

PASS_S = 1.0  # how long one look at what is under way lasts at most
SEEN_LOOK_S = 0.03
COMMAND_LOOK_S = 1.0  # while the server does not answer, or the mirror is behind
FOLLOWER_LOOK_S = 2.0


class _Plan(NamedTuple):
    """A plan on its way in this process, and the ids of its rows."""

    ids: tuple[int, ...]
    sending: Sending


class InPlace(Remote):
    """The backend whose controllers are ours, and whose cluster is not; it asks by the connection that `connect` returns."""

    def __init__(
        self,
        connect: Callable[[], RestClient] = server.connection,
        threads: Callable[[], Executor] = sending.pool,
        random: Random | None = None,
    ) -> None:
        self._connect, self._threads = connect, threads
        self._fresh: dict[str, list[bytes]] = {}  # cursor → what this process has written down and not sent
        self._plans: dict[str, _Plan] = {}
        self._pace = Pace(random)

    def runs(self, registration: Registration) -> bool:
        """Volcano's part is ours; what kube-controller-manager does is the cluster's own business."""
        return registration.name in WRITERS | READERS

    def may_plan(self, registration: Registration, shard: int, using: Store) -> bool:
        """Plans are made by who leads, from kinds that were listed whole."""
        if registration.name in READERS:
            return True
        if shard and _own(registration, using) - set(registration.cursors):
            return False  # what shards that are no more have left is sent by the first one
        kinds = [kind.id for kind in registration.kinds]
        is_leading = election.current().is_held(clock.milliseconds())
        return is_leading and not reflection.incomplete(recorder.statuses(), kinds)

    def commit(
        self, cursor: str, groups: Sequence[Group], now: int, using: Store
    ) -> list[list[Stored] | ApiError] | None:
        """Write a plan down, with every name that it gives and every status as a whole."""
        if not groups:
            return []
        settled = [_settled(group, using) for group in using.named(groups)]
        bodies = [encoding.encode(group) for group in settled]
        commands_seen = [not any(verdicts.is_claim(write) for write in group.writes) for group in settled]
        outbox.put(cursor, election.current().term, bodies, using.using, commands_seen=commands_seen)
        transaction.on_commit(lambda: self._fresh.update({cursor: bodies}), using=using.using)
        return None

    def owes(self, registration: Registration, shard: int, using: Store) -> bool:
        """Whether the outbox has something of a shard, or the first one something of shards that are no more."""
        if registration.name in READERS:
            return False
        return bool(_mine(registration, shard, using))

    def carry_out(self, registration: Registration, shard: int, using: Store) -> Carried | float:
        """Send what is owed. What was planned under another leadership is dropped: others may have worked since."""
        rows = outbox.rows(_mine(registration, shard, using), using.using)
        leadership = election.current()
        cursor = registration.cursor_of(shard)
        if any(row.term != leadership.term for row in rows) and leadership.is_held(clock.milliseconds()):
            self._plans.pop(cursor, None)
            return Dropped(rows, using)
        unseen = [row for row in rows if not row.commands_seen]
        if unseen:
            return self._look_for_commands(unseen, leadership, using)
        under_way = self._sending_of(cursor, rows)
        try:
            is_answered = under_way.go_on(
                PASS_S, lambda: leadership.is_held(clock.milliseconds()), partial(outcomes.ended, using)
            )
        except Exception:
            del self._plans[cursor]
            raise
        if not is_answered:
            return under_way.next_look_s if leadership.is_held(clock.milliseconds()) else FOLLOWER_LOOK_S
        if outcomes.unseen(under_way.progress, using):
            return SEEN_LOOK_S
        return Answered(under_way.progress, rows, using)

    def _look_for_commands(self, rows: Sequence[Row], leadership: Leadership, using: Store) -> Dropped | float:
        """Look for the Commands that groups delete before any of these is sent; note it when all are there.

        A Command is carried out by who deletes it, and a mirror that is behind shows one that an earlier leadership has
        carried out. Of a second deletion a lost answer would hide that it came too late.
        """
        now = clock.monotonic()
        if not leadership.is_held(clock.milliseconds()):
            return FOLLOWER_LOOK_S
        if now < self._pace.paused_until:
            return self._pace.paused_until - now
        writes = [write for row in rows for write in encoding.decode(row.body).writes]
        claims = [write for write in writes if verdicts.is_claim(write)]
        replies = list(self._threads().map(partial(sending.look, self._connect), claims))
        for verdict in replies:
            self._pace.note_verdict(verdict, now)
        if any(isinstance(verdict, Again) for verdict in replies):
            return COMMAND_LOOK_S
        errors = {
            claim.uid: each.error for claim, each in zip(claims, replies, strict=True) if isinstance(each, Refused)
        }
        if using.living([uid for uid, error in errors.items() if isinstance(error, NotFound)]):
            return COMMAND_LOOK_S  # the next plan would delete them as well
        if errors:
            return Dropped(rows, using, next(iter(errors.values())))
        outbox.note_commands_seen(rows, using.using)
        return 0.0  # nothing is sent before the note is stored

    def _sending_of(self, cursor: str, rows: Sequence[Row]) -> Sending:
        """Return the sending of these rows; those that another process has written may have been sent before."""
        ids = tuple(row.id for row in rows)
        fresh = self._fresh.pop(cursor, None)
        plan = self._plans.get(cursor)
        if plan is None or plan.ids != ids:
            groups, is_repeat = [encoding.decode(row.body) for row in rows], fresh != [row.body for row in rows]
            threads = self._threads()
            sender = Sending(groups, is_repeat=is_repeat, connect=self._connect, threads=threads, pace=self._pace)
            plan = self._plans[cursor] = _Plan(ids, sender)
        return plan.sending


def _own(registration: Registration, using: Store) -> set[str]:
    """Return the cursors of a consumer that have something in the outbox, whatever number of shards it had."""
    return {each for each in outbox.cursors(using.using) if each.partition("/")[0] == registration.name}


def _mine(registration: Registration, shard: int, using: Store) -> list[str]:
    """Return the cursors whose plans a shard sends: its own, and the first one those of shards that are no more."""
    own, left = registration.cursor_of(shard), _own(registration, using)
    gone = left - set(registration.cursors) if shard == 0 else set()
    return sorted(gone | (left & {own}))


def _settled(group: Group, using: Store) -> Group:
    """Return a group whose writes mean the same whenever they are sent, the announced ones first."""
    all_writes = [*group.announced, *group.writes]
    patched = [each for each in all_writes if isinstance(each, Patch) and each.subresource == "status"]
    olds = {
        order.key_of(each): stored.object
        for each in patched
        for stored in using.by_keys(each.resource, [f"{each.namespace}/{each.name}"]).values()
    }
    writes = [requests.settled(write, olds.get(order.key_of(write))) for write in all_writes]
    first = len(group.announced)
    minima = [Minimum(each.need, [first + index for index in each.among]) for each in group.minima]
    return structs.replace(group, writes=writes, minima=minima, announced=(), within_quota=False)


_is_a_backend: Backend = InPlace()
