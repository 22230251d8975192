"""How a consumer's shards divide its work, and how another number of them takes it over.

Each shard has a cursor, which says up to where the changes of its keys were delivered. Another number of shards divides
the keys otherwise: then a cursor cannot say it for all of its keys. So the new cursors start at the oldest position,
and carry along what was delivered beyond it as layers: the positions of an earlier division, by which each change's key
finds the one that counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec
from django.db import connections, transaction

from cluster.runtime.registry import Registration, shard_of
from cluster.store import sql
from cluster.writes import Timer

Layers: TypeAlias = "Sequence[Sequence[int]]"  # of each earlier division, the positions of its shards


LEASE_MS = 5000  # how long a silent leader keeps other worker processes out


@dataclass(frozen=True, slots=True)
class Position:
    """A cursor as read: position, generation, who leads, and what was delivered beyond the position."""

    position: int
    generation: int
    holder: str
    held_until: int
    handled: Layers = ()

    def is_led_by_another(self, holder: str, now: int) -> bool:
        """Say whether another worker process leads.

        None leads for longer than LEASE_MS: one that seems to got its lease
        before the clock was set back, and may be dead.
        """
        return self.holder not in ("", holder) and 0 < self.held_until - now <= LEASE_MS


def was_delivered(layers: Layers, key: str, revision: int) -> bool:
    """Say whether an earlier division has delivered a change; one without a key is new to every shard."""
    return bool(key) and any(revision <= layer[shard_of(key, len(layer))] for layer in layers)


def beyond(layers: Layers, position: int) -> Layers:
    """Return the layers that say anything about changes after a position."""
    return [layer for layer in layers if max(layer) > position]


def divided_anew(old: Mapping[int, Position], shards: int) -> list[Position]:
    """Return the cursors of so many shards that go on where these, by their shards, have stopped.

    All start at the oldest position, with a generation that is higher than
    any, so that no process goes on with what it knows of an old one.
    """
    last = min(old.values(), key=lambda cursor: cursor.position)  # no other has layers that it lacks
    start = last.position
    layer = [old[shard].position if shard in old else start for shard in range(max(old) + 1)]
    generation = 1 + max(cursor.generation for cursor in old.values())
    return [Position(start, generation, "", 0, beyond([layer, *last.handled], start))] * shards


def read(registration: Registration, using: str) -> dict[str, Position]:
    """Return the cursors of a consumer by their names, also those of another number of shards."""
    rows = sql.rows(
        using,
        "SELECT name, position, generation, holder, held_until, handled FROM cluster_cursor WHERE name LIKE %s",
        [_names(registration)],
    )
    return {
        name: Position(position, generation, holder, held_until, decoded(layers))
        for name, position, generation, holder, held_until, layers in rows
    }


def move(
    registration: Registration, shard: int, cursor: Position, position: int, lead: tuple[str, int], using: str
) -> bool:
    """Move a shard's cursor unless somebody else did since it was read, and say so; the first to do so makes those of all shards.

    lead is who leads now, and until when (epoch ms).
    """
    name = registration.cursor_of(shard)
    handled = _encoded(beyond(cursor.handled, position))
    with connections[using].cursor() as db:
        if cursor.generation == 0:
            db.executemany(
                "INSERT INTO cluster_cursor (name, position, generation, holder, held_until, handled)"
                " VALUES (%s, %s, %s, '', 0, '[]') ON CONFLICT (name) DO NOTHING",
                [(each, position, int(each != name)) for each in registration.cursors],
            )
        db.execute(
            "UPDATE cluster_cursor SET position = %s, generation = generation + 1, holder = %s,"
            " held_until = %s, handled = %s WHERE name = %s AND generation = %s",
            [position, *lead, handled, name, cursor.generation],
        )
        return bool(db.rowcount == 1)


def hold(name: str, cursor: Position, generation: int, lead: tuple[str, int], using: str) -> bool:
    """Set a cursor's holder and generation; say whether nobody else has moved the cursor since it was read."""
    with connections[using].cursor() as db:
        db.execute(
            "UPDATE cluster_cursor SET generation = %s, holder = %s, held_until = %s"
            " WHERE name = %s AND generation = %s",
            [generation, *lead, name, cursor.generation],
        )
        return bool(db.rowcount == 1)


def skip(names: Sequence[str], position: int, using: str) -> None:
    """Let cursors pass what somebody else has handled; this process's runners then have to load their state again."""
    with connections[using].cursor() as db:
        db.executemany(
            "UPDATE cluster_cursor SET position = %s, generation = generation + 1, handled = '[]'"
            " WHERE name = %s AND position < %s",
            [(position, name, position) for name in names],
        )


def take_over(registration: Registration, using: str) -> None:
    """Put a consumer's shards in the place of another number of them; nothing, where they are in place.

    With the log's lock held, which each commit of a consumer takes first: so positions stand still, and of two
    processes that do this the second has nothing left to do. A timer with a key goes to the shard of its key, one
    without to nobody when its shard is no more.
    """
    with transaction.atomic(using=using):
        sql.lock_head(using)
        cursors = read(registration, using)
        is_new = bool(cursors) and cursors.keys() != set(registration.cursors)
        if is_new:
            old = {int(name.rpartition("/")[2]): cursor for name, cursor in cursors.items()}
            new = zip(registration.cursors, divided_anew(old, registration.shards), strict=True)
            with connections[using].cursor() as db:
                db.execute("DELETE FROM cluster_cursor WHERE name LIKE %s", [_names(registration)])
                db.executemany(
                    "INSERT INTO cluster_cursor (name, position, generation, holder, held_until, handled)"
                    " VALUES (%s, %s, %s, '', 0, %s)",
                    [(name, each.position, each.generation, _encoded(each.handled)) for name, each in new],
                )
        _hand_out_timers(registration, using, everywhere=is_new)


def decoded(value: Any) -> Any:
    """Return what a JSON column holds, which one of the databases gives as text."""
    return msgspec.json.decode(value) if isinstance(value, str) else value


def _names(registration: Registration) -> str:
    return f"{registration.name}/%"


def _hand_out_timers(registration: Registration, using: str, *, everywhere: bool) -> None:
    cursors = registration.cursors
    text = "SELECT cursor, kind, key, due, payload FROM cluster_timer WHERE cursor LIKE %s"
    if not everywhere:
        text += f" AND cursor NOT IN ({sql.marks(len(cursors))})"
    rows = sql.rows(using, text, [_names(registration), *(() if everywhere else cursors)])
    moved, gone = [], []
    for cursor, kind, key, due, payload in rows:
        home = registration.cursor_of(shard_of(key, registration.shards)) if key else cursor
        if home != cursor:
            moved.append((home, kind, key, due, _encoded(decoded(payload))))
        if home != cursor or cursor not in cursors:
            gone.append((cursor, kind, key))
    drop_timers(gone, using)
    put_timers(moved, using)


def due_timers(cursor: str, now: int, most: int, using: str) -> list[Timer]:
    """Return so many of a cursor's timers that are due, the first of them."""
    text = "SELECT kind, key, due, payload FROM cluster_timer WHERE cursor = %s AND due <= %s ORDER BY due LIMIT %s"
    return _timers(sql.rows(using, text, [cursor, now, most]))


def timers_of_kind(cursor: str, kind: str, using: str, key: str | None = None) -> list[Timer]:
    """Return all of a cursor's timers of a kind, or those for one key."""
    text = "SELECT kind, key, due, payload FROM cluster_timer WHERE cursor = %s AND kind = %s"
    if key is None:
        return _timers(sql.rows(using, text, [cursor, kind]))
    return _timers(sql.rows(using, f"{text} AND key = %s", [cursor, kind, key]))


def _timers(rows: Iterable[Sequence[Any]]) -> list[Timer]:
    return [Timer(kind, key, due, decoded(payload)) for kind, key, due, payload in rows]


def put_timers(timers: Sequence[tuple[str, str, str, int, str]], using: str) -> None:
    """Set timers: cursor, kind, key, due and payload. Of two for one key the sooner time stays, and the new payload."""
    if timers:
        with connections[using].cursor() as db:
            db.executemany(
                "INSERT INTO cluster_timer (cursor, kind, key, due, payload) VALUES (%s, %s, %s, %s, %s)"
                " ON CONFLICT (cursor, kind, key) DO UPDATE SET payload = excluded.payload, due ="
                " CASE WHEN excluded.due < cluster_timer.due THEN excluded.due ELSE cluster_timer.due END",
                timers,
            )


def drop_timers(timers: Sequence[tuple[str, str, str]], using: str) -> None:
    """Drop timers by cursor, kind and key."""
    if timers:
        with connections[using].cursor() as db:
            db.executemany("DELETE FROM cluster_timer WHERE cursor = %s AND kind = %s AND key = %s", timers)


def _encoded(value: Any) -> str:
    return msgspec.json.encode(value).decode()
