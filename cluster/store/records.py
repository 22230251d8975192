"""Records: what is kept of objects beyond their life, and of living ones before the log forgets it.

The log and the objects are the truth; a record is what somebody made of them, up to a revision. So a record may be made
again from an older one and the log after it, and of two records of one object the one that has read further stays.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from django.conf import settings
from django.db import connections, transaction
from msgspec.structs import replace

from cluster.store import sql
from cluster.store.query import Filter, ordered
from cluster.writes import Record
from kube.resources import Resource

BATCH = 500
DAY_MS = 24 * 3600 * 1000

_LISTED = (  # what is read of a record without its history
    *("uid", "namespace", "name", "phase", "queue", "creator", "trouble", "terms"),
    *("created", "deleted", "revision", "object"),
)
_COLUMNS = ", ".join(f"o.{field}" for field in _LISTED)
_FIELDS = (*_LISTED, "resource", "history")
_PUT = (
    f"INSERT INTO cluster_record ({', '.join(_FIELDS)}) VALUES ({sql.marks(len(_FIELDS))})"
    f" ON CONFLICT (uid) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in _FIELDS[1:])}"
    " WHERE cluster_record.revision <= excluded.revision"
)


def put(records: Sequence[Record], *, using: str = "default") -> None:
    """Keep records; one that has read less far than what is kept changes nothing."""
    if not records:
        return
    rows = [[each.resource.id if name == "resource" else getattr(each, name) for name in _FIELDS] for each in records]
    with transaction.atomic(using=using), connections[using].cursor() as cursor:
        cursor.executemany(_PUT, rows)


def by_uid(resource: Resource, uids: Sequence[str], *, using: str = "default") -> dict[str, Record]:
    """Return the records of these objects, with their histories."""
    records: dict[str, Record] = {}
    text = f"SELECT {_COLUMNS}, o.history FROM cluster_record o WHERE o.uid IN ()"
    for *row, history in sql.rows_among(using, text, uids):
        record = _record(resource, row)
        records[record.uid] = replace(record, history=bytes(history))
    return records


def newest(resource: Resource, namespace: str, name: str, *, using: str = "default") -> Record | None:
    """Return the record, without its history, of the last that had a name; None when nothing is kept of it."""
    text = (
        f"SELECT {_COLUMNS} FROM cluster_record o WHERE o.resource = %s AND o.namespace = %s AND o.name = %s"
        " ORDER BY o.created DESC, o.revision DESC LIMIT 1"
    )
    rows = sql.rows(using, text, [resource.id, namespace, name])
    return _record(resource, rows[0]) if rows else None


def find(
    resource: Resource, *, order: str = "-created", limit: int, offset: int = 0, using: str = "default", **filters: Any
) -> list[Record]:
    """Return the records, without their histories, of deleted objects that match; the filters are `query.Filter`'s."""
    where, params = Filter(**filters).where(resource.id, sql.vendor(using))
    text = (
        f"SELECT {_COLUMNS} FROM cluster_record o WHERE {where} AND o.deleted > 0"
        f" ORDER BY {ordered(order)} LIMIT %s OFFSET %s"
    )
    return [_record(resource, row) for row in sql.rows(using, text, [*params, limit, offset])]


def count(resource: Resource, *, using: str = "default", **filters: Any) -> int:
    """Return how many deleted objects match and have a record."""
    where, params = Filter(**filters).where(resource.id, sql.vendor(using))
    text = f"SELECT COUNT(*) FROM cluster_record o WHERE {where} AND o.deleted > 0"
    return int(sql.rows(using, text, params)[0][0])


def values(resource: Resource, *, using: str = "default", **filters: Any) -> dict[str, list[str]]:
    """Return the namespaces, queues and creators of the deleted objects that match, by these names and in order."""
    where, params = Filter(**filters).where(resource.id, sql.vendor(using))
    text = f"SELECT DISTINCT o.namespace, o.queue, o.creator FROM cluster_record o WHERE {where} AND o.deleted > 0"
    columns = zip(*sql.rows(using, text, params), strict=True)
    by_column = dict(zip(("namespace", "queue", "creator"), columns, strict=False))
    return {name: sorted({*by_column.get(name, ())} - {""}) for name in ("namespace", "queue", "creator")}


def behind(
    resource: Resource,
    *,
    created_before: int,
    finished: Collection[str],
    after: str = "",
    limit: int = BATCH,
    using: str = "default",
) -> list[tuple[str, str, str, str]]:
    """Return (key, namespace, name, uid) of living objects whose records may lack something, in the order of keys.

    An object in a finished phase lacks nothing once a record has read its
    newest change; of any other something that belongs to it may have changed.
    """
    ended = sorted(finished)
    text = (
        "SELECT o.key, o.namespace, o.name, o.uid FROM cluster_object o"
        " LEFT JOIN cluster_record r ON r.uid = o.uid"
        # The plus keeps databases from sorting all that is old enough for each piece.
        " WHERE o.key > %s AND o.key < %s AND +o.created < %s"
        f" AND (r.uid IS NULL OR r.revision < o.revision OR NOT (o.phase IN ({sql.marks(len(ended))})))"
        " ORDER BY o.key LIMIT %s"
    )
    start, end = max(after, f"{resource.id}/"), f"{resource.id}0"  # 0 follows the slash
    return [
        (key, namespace, name, uid)
        for key, namespace, name, uid in sql.rows(using, text, [start, end, created_before, *ended, limit])
    ]


def expire(until: float, *, now: int, using: str = "default") -> int:
    """Remove records of what was deleted longer ago than is kept, in small transactions; return how many.

    It ends at clock.monotonic() `until` at the latest.
    """
    oldest = now - settings.JOB_HISTORY_DAYS * DAY_MS
    where = "deleted > 0 AND deleted < %s"
    return sql.delete_until(until, using, "cluster_record", "uid", where, [oldest], BATCH)


def _record(resource: Resource, row: Sequence[Any]) -> Record:
    *values, body = row
    return Record(resource=resource, **dict(zip(_LISTED, values, strict=False)), object=bytes(body))
