"""Forgetting old history and old events.

A log row is removed when it is older than the retention, has been superseded
(it is nobody's newest revision) and every consumer has read past it. After
that a reader that asks for what came before gets Expired and lists again.

Events are objects of their own; the oldest go when they are too old or too many.
"""

from __future__ import annotations

import time

from django.conf import settings
from django.db import connections, transaction

from cluster.store import Delete, Group, clock, sql, store
from kube.resources import EVENTS

BATCH = 2000
MOST_EVENTS = 200_000


def run(until: float, *, now: int | None = None) -> int:
    """Remove expired history in small transactions until time.monotonic() is `until`; return the rows removed."""
    removed = 0
    horizon = _horizon(clock() if now is None else now)
    while time.monotonic() < until:
        count, done = _step(horizon)
        removed += count
        if done:
            break
    return removed


def expire_events(until: float, *, now: int | None = None) -> int:
    """Delete the events that are too old or too many until time.monotonic() is `until`; return how many."""
    oldest = (clock() if now is None else now) - settings.EVENT_HOURS * 3600 * 1000
    excess = sum(store.count(EVENTS, by="namespace").values()) - MOST_EVENTS
    removed = 0
    while time.monotonic() < until:
        found = store.find(EVENTS, order="created", limit=BATCH)
        doomed = [event for n, event in enumerate(found) if event.created < oldest or n < excess - removed]
        store.commit([Group([Delete(EVENTS, event.namespace, event.name)]) for event in doomed])
        removed += len(doomed)
        if len(doomed) < BATCH:
            break
    return removed


def _horizon(now: int) -> int:
    """Return the newest revision that may go: old enough, and read by every consumer."""
    oldest = now - settings.HISTORY_HOURS * 3600 * 1000
    old = sql.rows(store.using, "SELECT MAX(revision) FROM cluster_change WHERE at < %s", [oldest])[0][0] or 0
    slowest = sql.rows(store.using, "SELECT MIN(position) FROM cluster_cursor")[0][0]
    return min(old, old if slowest is None else slowest)


def _step(horizon: int) -> tuple[int, bool]:
    """Remove one batch of superseded rows up to the horizon; tell how many, and whether all are gone."""
    with transaction.atomic(using=store.using):
        sql.lock_head(store.using)
        doomed = [
            row[0]
            for row in sql.rows(
                store.using,
                "SELECT c.revision FROM cluster_change c WHERE c.revision <= %s AND NOT EXISTS"
                " (SELECT 1 FROM cluster_object o WHERE o.revision = c.revision) ORDER BY c.revision LIMIT %s",
                [horizon, BATCH],
            )
        ]
        if not doomed:
            return 0, True
        with connections[store.using].cursor() as cursor:
            cursor.executemany("DELETE FROM cluster_change WHERE revision = %s", [(r,) for r in doomed])
            cursor.execute(
                "UPDATE cluster_log SET compacted = %s WHERE id = 1 AND compacted < %s",
                [doomed[-1], doomed[-1]],
            )
        return len(doomed), len(doomed) < BATCH
