"""The store's SQL, the same text for SQLite and PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from django.db import IntegrityError, connections, transaction

from cluster import clock

COLUMNS = "o.resource, o.namespace, o.name, o.uid, o.revision, o.created, c.body"
# What an object's row says of it beside its name and revision: by most of these it is searched.
INDEXED = ("uid", "created", "phase", "queue", "node", "owner", "creator", "trouble", "terms")
FROM = "FROM cluster_object o JOIN cluster_change c ON c.revision = o.revision"
CHUNK = 500  # keys in one IN list
MAX_PARAMETERS = 1_000  # for the values of one column
LIKE = {"sqlite": "LIKE", "postgresql": "ILIKE"}  # in which capitals are small letters

INSERT_CHANGE = (
    "INSERT INTO cluster_change (revision, resource, namespace, name, uid, verb, previous, at, body)"
    " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)"
)
# Each statement must find what the ledger says is there: a creation no row, the others theirs.
INSERT_OBJECT = (
    "INSERT INTO cluster_object"
    f" ({', '.join(INDEXED)}, revision, key, resource, namespace, name)"
    " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
)
DELETE_OBJECT = "DELETE FROM cluster_object WHERE key = %s AND revision = %s"
INSERT_OWNER = "INSERT INTO cluster_ownership (key, owner) VALUES (%s, %s)"
DELETE_OWNER = "DELETE FROM cluster_ownership WHERE key = %s AND owner = %s"


@cache
def update_object(changed: tuple[str, ...]) -> str:
    """Return the statement that gives an object its next revision and new values in these columns.

    Databases touch every index of a column that a statement names, also when its value stays.
    """
    named = ", ".join(f"{column} = %s" for column in (*changed, "revision"))
    return f"UPDATE cluster_object SET {named} WHERE key = %s AND revision = %s"


def marks(count: int) -> str:
    """Return `count` placeholders for an IN list."""
    return ", ".join(["%s"] * count)


def vendor(using: str) -> str:
    """Return which kind of database it is, in Django's word: sqlite or postgresql."""
    name: str = connections[using].vendor
    return name


def rows(using: str, text: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """Run one query and return its rows."""
    with connections[using].cursor() as cursor:
        cursor.execute(text, params)
        result: list[tuple[Any, ...]] = cursor.fetchall()
        return result


def rows_among(using: str, text: str, values: Sequence[Any], params: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a query that has ` IN ()` for a list of these values, CHUNK of them at a time.

    `params` are those of the placeholders before the list.
    """
    for start in range(0, len(values), CHUNK):
        chunk = values[start : start + CHUNK]
        yield from rows(using, text.replace(" IN ()", f" IN ({marks(len(chunk))})"), [*params, *chunk])


def is_among(column: str, values: Sequence[str], vendor: str) -> tuple[str, list[Any]]:
    """Return the condition that a column has one of some values, and its parameters.

    SQLite takes 32,766 parameters where nobody has raised that: many values are one.
    """
    if not values:
        return "1 = 0", []
    if len(values) <= MAX_PARAMETERS:
        return f"{column} IN ({marks(len(values))})", list(values)
    if vendor == "sqlite":
        return f"{column} IN (SELECT value FROM json_each(%s))", [json.dumps(values)]
    return f"{column} = ANY(%s)", [values]


def contains(column: str, text: str, vendor: str) -> tuple[str, list[Any]]:
    """Return the condition that a text is in a column; an escape costs SQLite as much again, and few texts need one."""
    pattern = text.replace("!", "!!").replace("%", "!%").replace("_", "!_")
    escape = " ESCAPE '!'" if pattern != text or "\\" in text else ""
    return f"{column} {LIKE[vendor]} %s{escape}", [f"%{pattern}%"]


def delete_until(until: float, using: str, table: str, key: str, where: str, params: Sequence[Any], batch: int) -> int:
    """Delete the rows that match, a batch in a transaction, and return how many; end at clock.monotonic() `until`."""
    removed = 0
    while clock.monotonic() < until:
        keys = rows(using, f"SELECT {key} FROM {table} WHERE {where} LIMIT %s", [*params, batch])
        with transaction.atomic(using=using), connections[using].cursor() as cursor:
            cursor.executemany(f"DELETE FROM {table} WHERE {key} = %s", keys)
        removed += len(keys)
        if len(keys) < batch:
            break
    return removed


def run_many(cursor: Any, text: str, params: Sequence[Sequence[Any]]) -> None:
    """Run a statement that touches one row for each of its parameters; IntegrityError when it does not."""
    if not params:
        return
    cursor.executemany(text, params)
    if cursor.rowcount != len(params):
        raise IntegrityError(f"{len(params)} rows were to be touched and {cursor.rowcount} were: {text}")


def lock_head(using: str) -> int:
    """Take the writers' lock and return the newest revision; call inside a transaction.

    On SQLite the transaction is IMMEDIATE and holds the lock already; on PostgreSQL the row lock puts writers in order,
    so that revisions become visible in the order of their numbers.
    """
    suffix = " FOR UPDATE" if connections[using].vendor == "postgresql" else ""
    text = "SELECT head FROM cluster_log WHERE id = 1" + suffix
    heads = rows(using, text)
    if not heads:
        with connections[using].cursor() as cursor:
            cursor.execute("INSERT INTO cluster_log (id, head, compacted) VALUES (1, 0, 0) ON CONFLICT DO NOTHING")
        heads = rows(using, text)
    return int(heads[0][0])


def end_sessions(using: str, instance: str) -> None:
    """End what another `up` has open in PostgreSQL, by its name, and so free what it has locked; needs no right but that of its own role.

    No timeout of PostgreSQL does that for all: one amid a pipeline of statements is not idle, and who waits for a
    sleeper's lock may get it asleep.
    """
    if connections[using].vendor == "postgresql":
        text = (
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s"
            " AND datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()"
        )
        rows(using, text, [instance])


def log_row(using: str) -> tuple[int, int]:
    """Return the newest revision and the newest compacted one; zeros before the first write.

    Inside of `reading` they are asked for once: nothing in a snapshot changes.
    """
    cached: tuple[int, int] | None = getattr(connections[using], "snapshot_log_row", None)
    if cached is not None:
        return cached
    result = rows(using, "SELECT head, compacted FROM cluster_log WHERE id = 1")
    return (int(result[0][0]), int(result[0][1])) if result else (0, 0)


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
    around: tuple[int, int] | None = getattr(connection, "snapshot_log_row", None)
    if around is not None:
        yield around[0]
        return
    # Inside a transaction somebody may write, so that the revision grows.
    lasting = not connection.in_atomic_block
    with snapshot(using):
        row = log_row(using)
        connection.snapshot_log_row = row if lasting else None  # type: ignore[attr-defined]
        try:
            yield row[0]
        finally:
            connection.snapshot_log_row = None  # type: ignore[attr-defined]


def values(
    using: str, table: str, column: str, where: str, params: Sequence[Any], limit: int | None = None
) -> list[str]:
    """Return the values that a column has in the rows that match, in order, all or the first; the table is `o` in the condition.

    Each value is one look into an index that begins with what the condition names and the column, however many rows have it.
    """
    first = f"SELECT MIN(o.{column}) FROM {table} o WHERE {where}"
    text = (
        f"WITH RECURSIVE found(value) AS ({first} UNION ALL SELECT ({first} AND o.{column} > found.value)"
        " FROM found WHERE found.value IS NOT NULL) SELECT value FROM found WHERE value IS NOT NULL"
        f"{'' if limit is None else f' LIMIT {int(limit)}'}"
    )
    return [value for (value,) in rows(using, text, [*params, *params])]
