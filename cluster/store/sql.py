"""The store's SQL, the same text for SQLite and PostgreSQL."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from django.db import connections, transaction

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

COLUMNS = "o.resource, o.namespace, o.name, o.uid, o.revision, o.created, c.body"
FROM = "FROM cluster_object o JOIN cluster_change c ON c.revision = o.revision"
CHUNK = 500  # keys in one IN list

INSERT_CHANGE = (
    "INSERT INTO cluster_change (revision, resource, namespace, name, uid, verb, previous, at, body)"
    " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)"
)
PUT_OBJECT = (
    "INSERT INTO cluster_object"
    " (key, resource, namespace, name, uid, revision, created, phase, queue, node, owner, creator)"
    " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
    " ON CONFLICT (key) DO UPDATE SET uid = excluded.uid, revision = excluded.revision,"
    " created = excluded.created, phase = excluded.phase, queue = excluded.queue, node = excluded.node,"
    " owner = excluded.owner, creator = excluded.creator"
)
DROP_OBJECT = "DELETE FROM cluster_object WHERE key = %s"


def marks(count: int) -> str:
    """Return `count` placeholders for an IN list."""
    return ", ".join(["%s"] * count)


def rows(using: str, text: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """Run one query and return its rows."""
    with connections[using].cursor() as cursor:
        cursor.execute(text, params)
        found: list[tuple[Any, ...]] = cursor.fetchall()
        return found


def lock_head(using: str) -> int:
    """Take the writers' lock and return the newest revision; call inside a transaction.

    On SQLite the transaction is IMMEDIATE and holds the lock already; on
    PostgreSQL the row lock puts writers in order, so that revisions become
    visible in the order of their numbers.
    """
    suffix = " FOR UPDATE" if connections[using].vendor == "postgresql" else ""
    text = "SELECT head FROM cluster_log WHERE id = 1" + suffix
    found = rows(using, text)
    if not found:
        with connections[using].cursor() as cursor:
            cursor.execute(
                "INSERT INTO cluster_log (id, head, compacted) VALUES (1, 0, 0) ON CONFLICT DO NOTHING"
            )
        found = rows(using, text)
    return int(found[0][0])


def log_row(using: str) -> tuple[int, int]:
    """Return the newest revision and the newest compacted one; zeros before the first write."""
    found = rows(using, "SELECT head, compacted FROM cluster_log WHERE id = 1")
    return (int(found[0][0]), int(found[0][1])) if found else (0, 0)


@contextmanager
def snapshot(using: str) -> Iterator[None]:
    """Read several queries from one state of the database; inside a transaction, from that."""
    connection = connections[using]
    if connection.in_atomic_block:
        yield
    elif connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            # Django's atomic() would take the writers' lock (transaction_mode IMMEDIATE).
            cursor.execute("BEGIN DEFERRED")
            try:
                yield
            finally:
                cursor.execute("ROLLBACK")
    else:
        with transaction.atomic(using=using), connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield


@contextmanager
def reading(using: str) -> Iterator[int]:
    """Read several queries from one state; yield its revision. A block inside a block costs nothing."""
    connection = connections[using]
    around: int | None = getattr(connection, "snapshot_revision", None)
    if around is not None:
        yield around
        return
    # Inside a transaction somebody may write, so that the revision grows.
    lasting = not connection.in_atomic_block
    with snapshot(using):
        revision = log_row(using)[0]
        connection.snapshot_revision = revision if lasting else None  # type: ignore[attr-defined]
        try:
            yield revision
        finally:
            connection.snapshot_revision = None  # type: ignore[attr-defined]
