"""The store: objects and the log of their changes, in one database.

A write checks its preconditions, changes objects and appends to the log in one transaction; the number of its log row
is the object's revision, and its resourceVersion too unless it is mirrored from another API server. kine is the model:
an object's JSON is stored once, in the log row that wrote it. One lock puts writers in order, so revisions have no gaps
and become visible in order.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from random import Random, SystemRandom
from typing import Any, TypeGuard

from django.db import connections, transaction
from msgspec.structs import replace

from cluster import clock
from cluster.store import log, owners, sql, strategy
from cluster.store.ledger import KeyChange, Ledger, Row, keys_of, no_name
from cluster.store.query import GROUPS, RARE, VALUES, Filter, Span, is_sooner_sorted, ordered
from cluster.store.types import AllBut, Change, Single, Stored, decode, key_of
from cluster.writes import Create, Group, Write
from kube import resources
from kube.errors import ApiError, NotFound
from kube.resources import Resource

NAME_TRIES = 8
_LOADED = f"o.key, o.resource, o.namespace, o.name, o.revision, c.body, o.{', o.'.join(sql.INDEXED)}"


def _uid() -> str:
    """Return a random UUID (RFC 9562, version 4) as text; `uuid.uuid4` takes three times as long."""
    digits = os.urandom(16).hex()
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


class Store:
    """Objects and log in the database `using`. Thread-safe, as Django's connections are per thread.

    Generated names come from `random`, uids from `uids`; whoever repeats a run hands in his own.
    """

    def __init__(self, using: str = "default", *, random: Random | None = None, uids: Callable[[], str] = _uid) -> None:
        self.using = using
        self.random = SystemRandom() if random is None else random
        self.uids = uids
        self.listeners: list[Callable[[frozenset[str], int], None]] = []

    def write(self, *writes: Write, now: int | None = None) -> list[Stored]:
        """Do all the writes or raise the first ApiError; return the objects after them.

        A deleted object is returned as it last was.
        """
        outcome = self.commit([Group(writes)], now=now)[0]
        if isinstance(outcome, ApiError):
            raise outcome
        return outcome

    def commit(
        self, groups: Sequence[Group], now: int | None = None, judge: Callable[[Group], None] | None = None
    ) -> list[list[Stored] | ApiError]:
        """Do many groups in one transaction.

        A group that fails is left out whole, with its error as the outcome; the others are done. Inside
        `transaction.atomic()` the writes belong to that transaction. `judge` is asked about each group just before its
        writes, when nobody else can write; with the ApiError that it raises the group fails.
        """
        if not groups:
            return []
        with transaction.atomic(using=self.using):
            head = sql.lock_head(self.using)
            groups, free = self._named(groups)
            keys = {key for group in groups for key in keys_of(group)}.difference(free)
            kinds = {write.resource.id: write.resource for group in groups for write in group.writes}
            rows = self._load(sorted(keys), kinds) | dict.fromkeys(free)
            ledger = Ledger(rows, head, clock.milliseconds() if now is None else now, self.uids)
            outcomes: list[list[Row] | ApiError] = []
            for group in groups:
                try:
                    if judge is not None:
                        judge(group)
                    outcomes.append(ledger.apply(group))
                except ApiError as error:
                    outcomes.append(error)
            if ledger.entries:
                self._append(ledger)
        return [o if isinstance(o, ApiError) else [row.stored() for row in o] for o in outcomes]

    def _load(self, keys: Sequence[str], kinds: dict[str, Resource]) -> dict[str, Row | None]:
        loaded: dict[str, Row | None] = dict.fromkeys(keys)
        text = f"SELECT {_LOADED} {sql.FROM} WHERE o.key IN ()"
        for key, resource, namespace, name, revision, body, *indexed in sql.rows_among(self.using, text, keys):
            uid, created, *_ = indexed
            loaded[key] = Row(
                kinds[resource], namespace, name, uid, created, revision, decode(body), body, indexed=tuple(indexed)
            )
        return loaded

    def named(self, groups: Sequence[Group]) -> Sequence[Group]:
        """Return groups with the names that `commit` would give to what wishes for generated ones."""
        return self._named(groups)[0]

    def _named(self, groups: Sequence[Group]) -> tuple[Sequence[Group], Collection[str]]:
        """Return the groups with generated names where they are wished for, and the keys of these, which are free."""
        creates = [w for group in groups for w in group.writes if _is_unnamed(w)]
        if not creates:
            return groups, ()
        used = {key for group in groups for key in keys_of(group)}
        names = iter(self._free_names(creates, used))
        named, free = [], []
        for group in groups:
            writes = list(group.writes)
            for at, write in enumerate(writes):
                if not _is_unnamed(write):
                    continue
                metadata = {**write.object["metadata"], "name": next(names)}
                writes[at] = replace(write, object={**write.object, "metadata": metadata})
                if metadata["name"]:
                    free.append(key_of(write.resource.id, metadata.get("namespace") or "", metadata["name"]))
            named.append(replace(group, writes=writes))
        return named, free

    def free_name(self, resource: Resource, namespace: str, base: str, used: Collection[str] = ()) -> str:
        """Return a name for `generateName` that nothing has now, and whose key is not among those used.

        AlreadyExists when none is found.
        """
        wish = Create(resource, {"metadata": {"namespace": namespace, "generateName": base}})
        if name := self._free_names([wish], used)[0]:
            return name
        raise no_name(resource, base)

    def _free_names(self, creates: Sequence[Create], used: Collection[str]) -> list[str]:
        """Return a name for each, that no object has and no other gets, and whose key is not among those used.

        "" stands for one for which none was found in NAME_TRIES tries.
        """
        names = [""] * len(creates)
        taken = set(used)
        for _ in range(NAME_TRIES):
            tried: dict[str, tuple[int, str]] = {}
            for index, create in enumerate(creates):
                if names[index]:
                    continue
                metadata = create.object["metadata"]
                name = strategy.generated_name(metadata["generateName"], self.random)
                key = key_of(create.resource.id, metadata.get("namespace") or "", name)
                if key not in taken:
                    taken.add(key)
                    tried[key] = index, name
            there = self._used_keys(list(tried))
            for key, (index, name) in tried.items():
                if key not in there:
                    names[index] = name
        return names

    def _used_keys(self, keys: Sequence[str]) -> set[str]:
        """Return those of the keys that stored objects have."""
        return {key for (key,) in sql.rows_among(self.using, "SELECT key FROM cluster_object WHERE key IN ()", keys)}

    def _append(self, ledger: Ledger) -> None:
        ledger.encode()
        last = ledger.head + len(ledger.entries)
        turns = ledger.turns()
        changes = []
        for entry in ledger.entries:
            row, replaced = entry.row, entry.previous.revision if entry.previous else 0
            about = row.resource.id, row.namespace, row.name, row.uid
            changes.append((row.revision, *about, entry.verb, replaced, ledger.now, row.body))
        with connections[self.using].cursor() as cursor:
            cursor.execute("UPDATE cluster_log SET head = %s WHERE id = 1", [last])
            sql.run_many(cursor, sql.INSERT_CHANGE, changes)
            self._put_objects(cursor, turns)
            self._put_owners(cursor, turns)
        touched = frozenset(entry.row.resource.id for entry in ledger.entries)

        def tell() -> None:
            for listener in self.listeners:
                listener(touched, last)

        transaction.on_commit(tell, using=self.using, robust=True)

    def _put_objects(self, cursor: Any, turns: Sequence[KeyChange]) -> None:
        inserts, drops = [], []
        updates: dict[tuple[str, ...], list[tuple[Any, ...]]] = {}
        for key, before, after in turns:
            if after is None:
                if before is not None:
                    drops.append((key, before.revision))
                continue
            index = after.resource.index(after.object)
            values = after.uid, after.created, *(getattr(index, column) for column in sql.INDEXED[2:])
            if before is None:
                inserts.append((*values, after.revision, key, after.resource.id, after.namespace, after.name))
                continue
            pairs = zip(values, before.indexed, sql.INDEXED, strict=True)
            new = {column: value for value, old, column in pairs if value != old}
            updates.setdefault(tuple(new), []).append((*new.values(), after.revision, key, before.revision))
        sql.run_many(cursor, sql.DELETE_OBJECT, drops)
        for columns, rows in updates.items():
            sql.run_many(cursor, sql.update_object(columns), rows)
        sql.run_many(cursor, sql.INSERT_OBJECT, inserts)

    def _put_owners(self, cursor: Any, turns: Sequence[KeyChange]) -> None:
        """Keep the owners beyond the controller, who has a column of his own."""
        added, gone = [], []
        for key, before, after in turns:
            old = owners.beyond_controller(before.resource, before.object) if before else owners.NONE
            new = owners.beyond_controller(after.resource, after.object) if after else owners.NONE
            if old == new:
                continue
            added += [(key, uid) for uid in sorted(new - old)]
            gone += [(key, uid) for uid in sorted(old - new)]
        sql.run_many(cursor, sql.DELETE_OWNER, gone)
        sql.run_many(cursor, sql.INSERT_OWNER, added)

    def get(self, resource: Resource, namespace: str, name: str) -> Stored:
        """Return one object or raise NotFound."""
        stored = self.get_or_none(resource, namespace, name)
        if stored is None:
            raise NotFound.of(resource.id, name)
        return stored

    def get_or_none(self, resource: Resource, namespace: str, name: str) -> Stored | None:
        """Return one object, None when there is none of that name."""
        return next(iter(self._select("o.key = %s", [key_of(resource.id, namespace, name)])), None)

    def find(
        self,
        resource: Resource,
        *,
        order: str = "name",
        limit: int | None = None,
        offset: int = 0,
        total: int | None = None,
        **filters: Any,
    ) -> list[Stored]:
        """Return the objects that match; the filters are the fields of `query.Filter`.

        Whoever knows how many match in all says so with `total`: a page is then read from the nearer end.
        """
        where, params = Filter(**filters).where(resource.id, sql.vendor(self.using))
        is_sorted = is_sooner_sorted(order, filters, total)
        if limit is None:
            return self._select(where, params, f" ORDER BY {ordered(order, is_sorted=is_sorted)}")
        span = Span.of(limit, offset, total)
        # Only the uids of a page are looked for: the objects before it are passed over by index, and never read. An
        # expression in place of the kind keeps SQLite from walking all objects in their order to find those again.
        text = (
            f"SELECT {sql.COLUMNS} FROM (SELECT o.uid FROM cluster_object o WHERE {where}"
            f" ORDER BY {ordered(order, backwards=span.backwards, is_sorted=is_sorted)} LIMIT %s OFFSET %s) p"
            " JOIN cluster_object o ON o.uid = p.uid JOIN cluster_change c ON c.revision = o.revision"
            f" WHERE o.resource || '' = %s ORDER BY {ordered(order)}"
        )
        rows = sql.rows(self.using, text, [*params, span.limit, span.offset, resource.id])
        return [Stored(*row) for row in rows]

    def names(self, resource: Resource, **filters: Any) -> dict[str, str]:
        """Return the namespace/name key of each object that matches, by uid, without reading the objects."""
        where, params = Filter(**filters).where(resource.id, sql.vendor(self.using))
        text = f"SELECT o.uid, o.namespace, o.name FROM cluster_object o WHERE {where}"
        return {uid: f"{namespace}/{name}" for uid, namespace, name in sql.rows(self.using, text, params)}

    def phases(self, resource: Resource, **filters: Any) -> dict[str, str]:
        """Return the phase of each object that matches, by name, without reading the objects; one namespace's at a time."""
        where, params = Filter(**filters).where(resource.id, sql.vendor(self.using))
        return dict(sql.rows(self.using, f"SELECT o.name, o.phase FROM cluster_object o WHERE {where}", params))

    def by_keys(self, resource: Resource, keys: Sequence[str]) -> dict[str, Stored]:
        """Return the objects with these namespace/name keys that exist."""
        text = f"SELECT {sql.COLUMNS} {sql.FROM} WHERE o.key IN ()"
        rows = sql.rows_among(self.using, text, [f"{resource.id}/{key}" for key in keys])
        return {stored.key: stored for stored in (Stored(*row) for row in rows)}

    def dependents(self, uid: str, *, after: int = 0, limit: int | None = None) -> list[Stored]:
        """Return the objects of any kind that name uid among their owners; events about it are none of them.

        The longest unchanged come first, `after` being the revision behind which to begin.
        """
        where = (
            "((o.owner = %s AND NOT (o.owner = '') AND o.resource <> %s)"
            " OR o.key IN (SELECT key FROM cluster_ownership WHERE owner = %s))"
        )
        params: list[Any] = [uid, resources.EVENTS.id, uid]
        if after:
            # The plus keeps databases from reading all objects behind the revision instead.
            where, params = f"{where} AND +o.revision > %s", [*params, after]
        tail = " ORDER BY o.revision" + ("" if limit is None else f" LIMIT {int(limit)}")
        return self._select(where, params, tail)

    def living(self, uids: Sequence[str]) -> frozenset[str]:
        """Return those of the uids that belong to a stored object."""
        result = sql.rows_among(self.using, "SELECT uid FROM cluster_object WHERE uid IN ()", uids)
        return frozenset(uid for (uid,) in result)

    def unbound(self, uids: Sequence[str]) -> frozenset[str]:
        """Return those of the uids that belong to a stored pod without a node."""
        result = sql.rows_among(self.using, "SELECT uid FROM cluster_object WHERE node = '' AND uid IN ()", uids)
        return frozenset(uid for (uid,) in result)

    def count(self, resource: Resource, *, by: str = "phase", **filters: Any) -> dict[str, int]:
        """Return how many objects match, grouped by one column of the index."""
        if by not in GROUPS:
            raise ValueError(f"count by {by!r}; use one of {', '.join(GROUPS)}")
        where, params = Filter(**filters).where(resource.id, sql.vendor(self.using))
        # As an expression a column does not tempt SQLite to read rows in the order of an index that lacks the filters. That of jobs by
        # phase has them all, but what few objects have is sooner found by an index of its own.
        is_covered = resource.id == resources.JOBS.id and by == "phase" and not any(filters.get(each) for each in RARE)
        column = f"o.{by}" if len(params) == 1 or is_covered else f"o.{by} || ''"
        text = f"SELECT {column}, COUNT(*) FROM cluster_object o WHERE {where} GROUP BY {column}"
        return dict(sql.rows(self.using, text, params))

    def tally(self, resource: Resource, by: Sequence[str], **filters: Any) -> dict[tuple[str, ...], int]:
        """Return how many objects match, grouped by several columns of the index."""
        if not set(by) <= set(GROUPS):
            raise ValueError(f"tally by {', '.join(by)}; use some of {', '.join(GROUPS)}")
        where, params = Filter(**filters).where(resource.id, sql.vendor(self.using))
        columns = ", ".join(f"o.{column} || ''" for column in by)  # as in count
        text = f"SELECT {columns}, COUNT(*) FROM cluster_object o WHERE {where} GROUP BY {columns}"
        return {tuple(row[:-1]): row[-1] for row in sql.rows(self.using, text, params)}

    def values(self, resource: Resource, column: str, *, limit: int | None = None) -> list[str]:
        """Return the values that a column of VALUES has among the objects of a kind, in order, the first `limit` of them.

        Each value is one look into an index, however many objects have it.
        """
        if column not in VALUES:
            raise ValueError(f"values of {column!r}; use one of {', '.join(VALUES)}")
        return sql.values(self.using, "cluster_object", column, "o.resource = %s", [resource.id], limit)

    def count_owned(self, resource: Resource, owners: Sequence[str]) -> dict[str, dict[str, int]]:
        """Return how many objects of a kind each controller has, by its uid and their phase."""
        where, params = Filter(owner=owners).where(resource.id, sql.vendor(self.using))
        text = f"SELECT o.owner, o.phase, COUNT(*) FROM cluster_object o WHERE {where} GROUP BY o.owner, o.phase"
        counts: dict[str, dict[str, int]] = {}
        for owner, phase, number in sql.rows(self.using, text, params):
            counts.setdefault(owner, {})[phase] = number
        return counts

    def revision(self) -> int:
        """Return the newest revision."""
        return sql.log_row(self.using)[0]

    def changes(
        self,
        after: int,
        kinds: Sequence[Resource | Single] | AllBut | None = None,
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
        return [Stored(*row) for row in sql.rows(self.using, text, params)]


def _is_unnamed(write: Write) -> TypeGuard[Create]:
    """Say whether a write makes an object that wishes for a generated name."""
    if not isinstance(write, Create):
        return False
    metadata = write.object.get("metadata") or {}
    return bool(metadata.get("generateName") and not metadata.get("name"))


store = Store()
