"""Lists page by page, every page from the same state (reference: kubernetes-api §2.6, §4.2).

The objects are read as they are now; those that changed after the list's
revision are put back to what they were, with the rows of the log that were
replaced since. So a page costs what has changed meanwhile, and a list is
exact as long as the log reaches back to its revision.

Keys are in bytewise order of `resource/namespace/name`, as in etcd.
"""

from __future__ import annotations

import heapq
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from django.db import connections

from cluster.store import sql
from cluster.store.query import Filter
from cluster.store.types import Stored, key_of
from kube.errors import Expired, Timeout

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cluster.store.store import Store
    from kube.resources import Resource

CHUNK = 1000  # rows of one query

EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result."
    " You can start a new list without the continue parameter."
)


def read(
    store: Store,
    resource: Resource,
    *,
    namespace: str = "",
    after: str = "",
    at: int | None = None,
    filters: Mapping[str, Any] | None = None,
) -> Iterator[Stored]:
    """Yield the objects of one kind in order of their keys, as they were at a revision (None: now).

    `after` is the key behind which to begin; `filters` are fields of
    `query.Filter` that narrow the search by index and may be used only where
    what they filter by cannot have changed since `at`. Call it inside `store.reading()`.
    Raise Expired when history no longer reaches back to `at`, Timeout when it lies in the future.
    """
    span = _Span(store, resource, namespace, after, dict(filters or {}))
    if at is None:
        yield from _merged(span.current(frozenset()), [])
        return
    head, compacted = sql.log_row(store.using)
    if at > head:
        raise Timeout.too_large_resource_version(at, head)
    if at < compacted:
        raise Expired(EXPIRED)
    past = span.past(at)
    were = [(key, stored) for key, stored in sorted(past.items(), key=itemgetter(0)) if stored is not None]
    yield from _merged(span.current(frozenset(past)), were)


def remaining(store: Store, resource: Resource, namespace: str, after: str) -> int:
    """Return how many objects come behind a key now."""
    span = _Span(store, resource, namespace, after, {})
    where, params = span.where()
    return int(sql.rows(store.using, f"SELECT COUNT(*) FROM cluster_object o WHERE {where}", params)[0][0])


class _Span:
    """The keys of one kind behind a key."""

    def __init__(
        self, store: Store, resource: Resource, namespace: str, after: str, filters: dict[str, Any]
    ) -> None:
        self._using = store.using
        self._resource = resource
        self._namespace = namespace
        self._after = after
        self._filters = filters
        # PostgreSQL's own order depends on the locale of the database.
        self._column = "o.key" if connections[store.using].vendor == "sqlite" else 'o.key COLLATE "C"'

    def where(self, after: str = "") -> tuple[str, list[Any]]:
        prefix = f"{self._resource.id}/{self._namespace}/" if self._namespace else f"{self._resource.id}/"
        where, params = Filter(**self._filters).where(self._resource.id)
        start = after or self._after or prefix
        where += f" AND {self._column} > %s AND {self._column} < %s"
        return where, [*params, max(start, prefix), f"{prefix[:-1]}0"]  # 0 follows the slash

    def current(self, changed: frozenset[str]) -> Iterator[tuple[str, Stored]]:
        """Yield key and object of what is there now, except for the keys that changed."""
        after = ""
        while True:
            where, params = self.where(after)
            text = f"SELECT {sql.COLUMNS} {sql.FROM} WHERE {where} ORDER BY {self._column} LIMIT {CHUNK}"
            rows = sql.rows(self._using, text, params)
            for kind, namespace, name, uid, revision, created, body in rows:
                stored = Stored(kind, namespace, name, uid, revision, created, bytes(body))
                after = key_of(stored.resource, stored.namespace, stored.name)
                if after not in changed:
                    yield after, stored
            if len(rows) < CHUNK:
                return

    def past(self, at: int) -> dict[str, Stored | None]:
        """Return the keys that changed after a revision with what they held then, None for nothing."""
        first = "SELECT MIN(revision) FROM cluster_change WHERE revision > %s AND resource = %s"
        params: list[Any] = [at, self._resource.id]
        if self._namespace:
            first += " AND namespace = %s"
            params.append(self._namespace)
        first += " GROUP BY namespace, name"
        text = (
            "SELECT n.resource, n.namespace, n.name, p.uid, p.revision, p.body, n.previous"
            " FROM cluster_change n LEFT JOIN cluster_change p ON p.revision = n.previous"
            f" WHERE n.revision IN ({first})"
        )
        found: dict[str, Stored | None] = {}
        for kind, namespace, name, uid, revision, body, previous in sql.rows(self._using, text, params):
            key = key_of(kind, namespace, name)
            if previous and body is None:
                raise Expired(EXPIRED)
            if key > self._after:
                found[key] = (
                    Stored(kind, namespace, name, uid, revision, 0, bytes(body)) if previous else None
                )
        return found


def _merged(current: Iterator[tuple[str, Stored]], past: list[tuple[str, Stored]]) -> Iterator[Stored]:
    """Merge two sequences of which no key is in both."""
    for _, stored in heapq.merge(current, past, key=itemgetter(0)):
        yield stored
