"""The store: objects and the log of their changes, in one database.

A write checks its preconditions, changes objects and appends to the log in
one transaction; the number of its log row is the object's resourceVersion.
kine is the model: an object's JSON is stored once, in the log row that wrote
it. One lock puts writers in order, so revisions have no gaps and become
visible in order.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from django.db import connections, transaction

from cluster.store import log, sql
from cluster.store.ledger import Ledger, Row, keys_of
from cluster.store.query import GROUPS, ORDERS, Filter
from cluster.store.types import Group, Stored, Write, decode, key_of
from kube import resources
from kube.errors import ApiError, NotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from cluster.store.ledger import Entry
    from cluster.store.types import AllBut, Change
    from kube.resources import Resource


def clock() -> int:
    """Return the time in epoch milliseconds."""
    return time.time_ns() // 1_000_000


class Store:
    """Objects and log in the database `using`. Thread-safe, as Django's connections are per thread."""

    def __init__(self, using: str = "default") -> None:
        self.using = using
        self.listeners: list[Callable[[frozenset[str], int], None]] = []

    def write(self, *writes: Write, now: int | None = None) -> list[Stored]:
        """Do all the writes or raise the first ApiError; return the objects after them.

        A deleted object is returned as it last was.
        """
        outcome = self.commit([Group(writes)], now=now)[0]
        if isinstance(outcome, ApiError):
            raise outcome
        return outcome

    def commit(self, groups: Sequence[Group], now: int | None = None) -> list[list[Stored] | ApiError]:
        """Do many groups in one transaction.

        A group that fails is left out whole and its error stands in its
        place; the others are done. Inside `transaction.atomic()` the writes
        belong to that transaction.
        """
        if not groups:
            return []
        with transaction.atomic(using=self.using):
            head = sql.lock_head(self.using)
            keys = {key for group in groups for key in keys_of(group)}
            kinds = {write.resource.id: write.resource for group in groups for write in group.writes}
            ledger = Ledger(self._load(sorted(keys), kinds), clock() if now is None else now)
            outcomes = [_attempt(ledger, group) for group in groups]
            if ledger.entries:
                self._append(ledger, head)
        return [o if isinstance(o, ApiError) else [row.stored() for row in o] for o in outcomes]

    def _load(self, keys: Sequence[str], kinds: dict[str, Resource]) -> dict[str, Row | None]:
        found: dict[str, Row | None] = dict.fromkeys(keys)
        for start in range(0, len(keys), sql.CHUNK):
            chunk = keys[start : start + sql.CHUNK]
            text = f"SELECT {sql.COLUMNS} {sql.FROM} WHERE o.key IN ({sql.marks(len(chunk))})"
            for resource, namespace, name, uid, revision, created, blob in sql.rows(self.using, text, chunk):
                body = bytes(blob)
                row = Row(kinds[resource], namespace, name, uid, created, revision, decode(body), body)
                found[row.key] = row
        return found

    def _append(self, ledger: Ledger, head: int) -> None:
        ledger.number(head + 1)
        last = head + len(ledger.entries)
        with connections[self.using].cursor() as cursor:
            cursor.execute("UPDATE cluster_log SET head = %s WHERE id = 1", [last])
            cursor.executemany(sql.INSERT_CHANGE, [_log_row(e, ledger.now) for e in ledger.entries])
            self._put_objects(cursor, ledger)
            self._put_owners(cursor, ledger)
        touched = frozenset(entry.row.resource.id for entry in ledger.entries)
        transaction.on_commit(lambda: self._tell(touched, last), using=self.using, robust=True)

    def _put_objects(self, cursor: Any, ledger: Ledger) -> None:
        puts, drops = [], []
        for key, row in ledger.final():
            if row is None:
                drops.append((key,))
            else:
                puts.append(_object_row(row))
        if puts:
            cursor.executemany(sql.PUT_OBJECT, puts)
        if drops:
            cursor.executemany(sql.DROP_OBJECT, drops)

    def _put_owners(self, cursor: Any, ledger: Ledger) -> None:
        """Keep the owners beyond the controller, who has a column of his own."""
        added = [
            (entry.row.key, reference["uid"])
            for entry in ledger.entries
            for reference in _other_owners(entry)
        ]
        if added:
            cursor.executemany("INSERT INTO cluster_ownership (key, owner) VALUES (%s, %s)", added)
        gone = [(e.row.key,) for e in ledger.entries if e.verb == "DELETED" and _has_other_owners(e.row)]
        if gone:
            cursor.executemany("DELETE FROM cluster_ownership WHERE key = %s", gone)

    def _tell(self, touched: frozenset[str], revision: int) -> None:
        for listener in self.listeners:
            listener(touched, revision)

    def get(self, resource: Resource, namespace: str, name: str) -> Stored:
        """Return one object or raise NotFound."""
        found = self._select("o.key = %s", [key_of(resource.id, namespace, name)])
        if not found:
            raise NotFound.of(resource.id, name)
        return found[0]

    def find(
        self,
        resource: Resource,
        *,
        order: str = "name",
        limit: int | None = None,
        offset: int = 0,
        **filters: Any,
    ) -> list[Stored]:
        """Return the objects that match; the filters are the fields of `query.Filter`."""
        where, params = Filter(**filters).where(resource.id)
        tail = f" ORDER BY {ORDERS[order]}"
        if limit is not None:
            tail += " LIMIT %s OFFSET %s"
            params = [*params, limit, offset]
        return self._select(where, params, tail)

    def names(self, resource: Resource, **filters: Any) -> dict[str, str]:
        """Return the namespace/name key of each object that matches, by uid, without reading the objects."""
        where, params = Filter(**filters).where(resource.id)
        text = f"SELECT o.uid, o.namespace, o.name FROM cluster_object o WHERE {where}"
        return {uid: f"{namespace}/{name}" for uid, namespace, name in sql.rows(self.using, text, params)}

    def by_keys(self, resource: Resource, keys: Sequence[str]) -> dict[str, Stored]:
        """Return the objects with these namespace/name keys that exist."""
        found: dict[str, Stored] = {}
        for start in range(0, len(keys), sql.CHUNK):
            chunk = [f"{resource.id}/{key}" for key in keys[start : start + sql.CHUNK]]
            for stored in self._select(f"o.key IN ({sql.marks(len(chunk))})", chunk):
                found[stored.key] = stored
        return found

    def dependents(self, uid: str, *, limit: int | None = None) -> list[Stored]:
        """Return the objects of any kind that name uid among their owners; events about it are none of them."""
        where = (
            "((o.owner = %s AND NOT (o.owner = '') AND o.resource <> %s)"
            " OR o.key IN (SELECT key FROM cluster_ownership WHERE owner = %s))"
        )
        tail = " ORDER BY o.revision" + ("" if limit is None else f" LIMIT {int(limit)}")
        return self._select(where, [uid, resources.EVENTS.id, uid], tail)

    def living(self, uids: Sequence[str]) -> frozenset[str]:
        """Return those of the uids that belong to a stored object."""
        found: set[str] = set()
        for start in range(0, len(uids), sql.CHUNK):
            chunk = list(uids[start : start + sql.CHUNK])
            text = f"SELECT uid FROM cluster_object WHERE uid IN ({sql.marks(len(chunk))})"
            found.update(row[0] for row in sql.rows(self.using, text, chunk))
        return frozenset(found)

    def count(self, resource: Resource, *, by: str = "phase", **filters: Any) -> dict[str, int]:
        """Return how many objects match, grouped by one column of the index."""
        if by not in GROUPS:
            raise ValueError(f"count by {by!r}; use one of {', '.join(GROUPS)}")
        where, params = Filter(**filters).where(resource.id)
        text = f"SELECT o.{by}, COUNT(*) FROM cluster_object o WHERE {where} GROUP BY o.{by}"
        return dict(sql.rows(self.using, text, params))

    def revision(self) -> int:
        """Return the newest revision."""
        return sql.log_row(self.using)[0]

    def changes(
        self,
        after: int,
        kinds: Sequence[Resource] | AllBut | None = None,
        *,
        limit: int = 1000,
        until: int | None = None,
        previous: bool = False,
    ) -> list[Change]:
        """Return the log after a revision as `log.after` does; Expired when some of it may be gone."""
        return log.after(after, kinds, limit=limit, until=until, previous=previous, using=self.using)

    def compacted(self) -> int:
        """Return the newest revision that retention removed; 0 when history is whole."""
        return sql.log_row(self.using)[1]

    def history(self, resource: Resource, namespace: str, name: str, *, limit: int = 100) -> list[Change]:
        """Return what the log still knows of one name, newest first, also after its deletion."""
        return log.history(resource, namespace, name, limit=limit, using=self.using)

    def reading(self) -> AbstractContextManager[int]:
        """Read everything inside the block from one state; yield its revision. A block inside a block costs nothing."""
        return sql.reading(self.using)

    def _select(self, where: str, params: Sequence[Any], tail: str = "") -> list[Stored]:
        text = f"SELECT {sql.COLUMNS} {sql.FROM} WHERE {where}{tail}"
        return [
            Stored(resource, namespace, name, uid, revision, created, bytes(body))
            for resource, namespace, name, uid, revision, created, body in sql.rows(self.using, text, params)
        ]


def _attempt(ledger: Ledger, group: Group) -> list[Row] | ApiError:
    try:
        if group.check is not None:
            group.check()
        return ledger.apply(group)
    except ApiError as error:
        return error


def _log_row(entry: Entry, now: int) -> tuple[Any, ...]:
    row, previous = entry.row, entry.previous
    return (
        row.revision,
        row.resource.id,
        row.namespace,
        row.name,
        row.uid,
        entry.verb,
        previous.revision if previous else 0,
        now,
        row.body,
    )


def _object_row(row: Row) -> tuple[Any, ...]:
    index = row.resource.index(row.object)
    return (
        row.key,
        row.resource.id,
        row.namespace,
        row.name,
        row.uid,
        row.revision,
        row.created,
        index.phase,
        index.queue,
        index.node,
        index.owner,
        index.creator,
    )


def _references(row: Row) -> Sequence[dict[str, Any]]:
    return row.object["metadata"].get("ownerReferences") or ()


def _has_other_owners(row: Row) -> bool:
    return any(not reference.get("controller") for reference in _references(row))


def _other_owners(entry: Entry) -> Sequence[dict[str, Any]]:
    """Owner references that the entry brings and that are not the controller's."""
    if entry.verb == "DELETED":
        return ()
    known = {r["uid"] for r in _references(entry.previous)} if entry.previous else set()
    return [r for r in _references(entry.row) if not r.get("controller") and r["uid"] not in known]


store = Store()
