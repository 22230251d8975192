"""Lists page by page, every page from the same state (reference: kubernetes-api §2.6, §4.2).

The objects are read as they are now; those that changed after the list's revision are put back to what they were, with
the rows of the log that were replaced since. Only the keys of all those changes are read, the objects piece by piece as
they are asked for. A list is exact as long as the log reaches back to its revision.

Keys are in bytewise order of `resource/namespace/name`, as in etcd.
"""

from __future__ import annotations

import heapq
from collections.abc import Container, Iterator, Mapping
from typing import Any

from cluster.store import sql
from cluster.store.query import Filter
from cluster.store.store import Store
from cluster.store.types import Stored, key_of
from kube.errors import Expired, Timeout
from kube.resources import Resource

CHUNK = 500  # objects of one query

EXPIRED = "The resourceVersion for the provided list is too old."


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

    `after` is the key behind which to begin; `filters` are fields of `query.Filter` that narrow the search by index and
    may be used only where what they filter by cannot have changed since `at`. Call it inside `store.reading()`. Raise
    Expired when history no longer reaches back to `at`, Timeout when it lies in the future.
    """
    span = _Span(store, resource, namespace, after, dict(filters or {}))
    if at is None:
        return span.current(frozenset())
    head, compacted = sql.log_row(store.using)
    if at > head:
        raise Timeout.too_large_resource_version(at, head)
    if at < compacted:
        raise Expired(EXPIRED)
    replaced = span.replaced(at) if at < head else {}
    # No key is in both.
    return heapq.merge(
        span.current(replaced),
        span.past(replaced),
        key=lambda stored: key_of(stored.resource, stored.namespace, stored.name),
    )


def remaining(store: Store, resource: Resource, namespace: str, after: str) -> int:
    """Return how many objects come behind a key now."""
    where, params = _Span(store, resource, namespace, after, {}).where()
    return int(sql.rows(store.using, f"SELECT COUNT(*) FROM cluster_object o WHERE {where}", params)[0][0])


class _Span:
    """The keys of one kind behind a key."""

    def __init__(self, store: Store, resource: Resource, namespace: str, after: str, filters: dict[str, Any]) -> None:
        self._using = store.using
        self._resource = resource
        self._namespace = namespace
        self._after = after
        self._filters = filters

    def where(self, after: str = "") -> tuple[str, list[Any]]:
        prefix = f"{self._resource.id}/{self._namespace}/" if self._namespace else f"{self._resource.id}/"
        start = after or self._after or prefix
        where, params = ("o.key > %s AND o.key < %s", [max(start, prefix), f"{prefix[:-1]}0"])  # 0 follows the slash
        if self._filters:
            # Without filters the key says it all, and counting needs no more than its index.
            narrow, more = Filter(**self._filters).where(self._resource.id, sql.vendor(self._using))
            where, params = f"{where} AND {narrow}", [*params, *more]
        return where, params

    def current(self, replaced: Container[str]) -> Iterator[Stored]:
        """Yield what is there now, except for the keys that were replaced."""
        after = ""
        while True:
            where, params = self.where(after)
            # Limited before it is joined: without statistics PostgreSQL would join all before it sorts.
            first = f"SELECT o.* FROM cluster_object o WHERE {where} ORDER BY o.key LIMIT {CHUNK}"
            text = (
                f"SELECT {sql.COLUMNS} FROM ({first}) o JOIN cluster_change c ON c.revision = o.revision ORDER BY o.key"
            )
            rows = sql.rows(self._using, text, params)
            for kind, namespace, name, uid, revision, created, body in rows:
                after = key_of(kind, namespace, name)
                if after not in replaced:
                    yield Stored(kind, namespace, name, uid, revision, created, bytes(body))
            if len(rows) < CHUNK:
                return

    def replaced(self, at: int) -> dict[str, int]:
        """Return the keys that changed after a revision, with the revision that each had then, 0 for nothing."""
        text = "SELECT namespace, name, previous FROM cluster_change WHERE revision > %s AND resource = %s"
        params: list[Any] = [at, self._resource.id]
        if self._namespace:
            text, params = f"{text} AND namespace = %s", [*params, self._namespace]
        revisions: dict[str, int] = {}
        # The newest first, so that the oldest stays.
        for namespace, name, previous in sql.rows(self._using, f"{text} ORDER BY revision DESC", params):
            if (key := key_of(self._resource.id, namespace, name)) > self._after:
                revisions[key] = previous
        return revisions

    def past(self, replaced: Mapping[str, int]) -> Iterator[Stored]:
        """Yield what the replaced keys held."""
        were = [revision for key, revision in sorted(replaced.items()) if revision]
        for start in range(0, len(were), CHUNK):
            chunk = were[start : start + CHUNK]
            text = (
                "SELECT revision, resource, namespace, name, uid, body FROM cluster_change"
                f" WHERE revision IN ({sql.marks(len(chunk))})"
            )
            by_revision = {row[0]: row for row in sql.rows(self._using, text, chunk)}
            if len(by_revision) < len(chunk):
                raise Expired(EXPIRED)
            for revision in chunk:
                _, kind, namespace, name, uid, body = by_revision[revision]
                yield Stored(kind, namespace, name, uid, revision, 0, bytes(body))
