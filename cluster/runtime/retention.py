"""Forgetting old history and old events.

A log row is removed when what superseded it is older than the retention and every registered consumer has read past
that. So the state of every revision that is young enough stays whole, as after a compaction of etcd, however old its
objects are. A reader that asks for what came before gets Expired and lists again. The cursor of a consumer that is no
more holds nothing back, and goes when history has left it behind.

Events are objects of their own; the oldest go when they are too old or too many.
"""

from __future__ import annotations

from django.conf import settings
from django.db import connections, transaction

from cluster import clock
from cluster.runtime import registry
from cluster.store import Delete, Group, Store, sql, store
from kube.resources import EVENTS

BATCH = 2000
MAX_EVENTS = 200_000


def run(until: float, *, now: int | None = None, source: Store | None = None) -> int:
    """Remove expired history in small transactions until clock.monotonic() is `until`; return the rows removed."""
    source = source or store
    removed = 0
    horizon = _horizon(clock.milliseconds() if now is None else now, source)
    while clock.monotonic() < until:
        count, done = _step(horizon, source)
        removed += count
        if done:
            break
    if registry.running():  # where nobody runs, nobody is a stranger
        _forget_strangers(source)
    return removed


def expire_events(until: float, *, now: int | None = None) -> int:
    """Delete the events that are too old or too many until clock.monotonic() is `until`; return how many."""
    oldest = (clock.milliseconds() if now is None else now) - settings.EVENT_HOURS * 3600 * 1000
    excess = sum(store.count(EVENTS, by="namespace").values()) - MAX_EVENTS
    removed = 0
    while clock.monotonic() < until:
        oldest_events = store.find(EVENTS, order="created", limit=BATCH)
        doomed = [event for n, event in enumerate(oldest_events) if event.created < oldest or n < excess - removed]
        store.commit([Group([Delete(EVENTS, event.namespace, event.name)]) for event in doomed])
        removed += len(doomed)
        if len(doomed) < BATCH:
            break
    return removed


def _horizon(now: int, source: Store) -> int:
    """Return the newest revision whose past may go: old enough, and read by every registered consumer."""
    oldest = now - settings.HISTORY_HOURS * 3600 * 1000
    old = sql.rows(source.using, "SELECT MAX(revision) FROM cluster_change WHERE at < %s", [oldest])[0][0] or 0
    cursors = sql.rows(source.using, "SELECT name, position FROM cluster_cursor")
    return min([int(old), *(int(position) for name, position in cursors if registry.has_reader(name))])


def _forget_strangers(source: Store) -> None:
    """Remove cursors that nobody moves, once history does not reach back to them, and timers of no cursor.

    Until then a consumer that other processes run, of an older or newer release, goes on where it was.
    """
    with transaction.atomic(using=source.using), connections[source.using].cursor() as cursor:
        cursors = dict(sql.rows(source.using, "SELECT name, position FROM cluster_cursor"))
        compacted = source.compacted()
        gone = {name for name, position in cursors.items() if position < compacted and not registry.has_reader(name)}
        timers = (row[0] for row in sql.rows(source.using, "SELECT DISTINCT cursor FROM cluster_timer"))
        lost = [name for name in timers if name in gone or not (name in cursors or registry.has_reader(name))]
        cursor.executemany("DELETE FROM cluster_cursor WHERE name = %s", [(name,) for name in sorted(gone)])
        cursor.executemany("DELETE FROM cluster_timer WHERE cursor = %s", [(name,) for name in lost])


def _step(horizon: int, source: Store) -> tuple[int, bool]:
    """Remove what one batch of changes up to the horizon replaced; tell how many rows, and whether that was all."""
    with transaction.atomic(using=source.using):
        sql.lock_head(source.using)
        changes = sql.rows(
            source.using,
            "SELECT revision, previous, verb FROM cluster_change"
            " WHERE revision > %s AND revision <= %s ORDER BY revision LIMIT %s",
            [source.compacted(), horizon, BATCH],
        )
        if not changes:
            return 0, True
        doomed = [(previous,) for _, previous, _ in changes if previous]
        doomed += [(revision,) for revision, _, verb in changes if verb == "DELETED"]
        with connections[source.using].cursor() as cursor:
            cursor.executemany("DELETE FROM cluster_change WHERE revision = %s", doomed)
            cursor.execute("UPDATE cluster_log SET compacted = %s WHERE id = 1", [changes[-1][0]])
        return len(doomed), len(changes) < BATCH
