"""The Celery tasks of the cluster: thin shells around consumers and periodic work."""

from __future__ import annotations

import logging
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from celery import shared_task

from cluster import consumer, nudge, registry
from cluster.outage import AWAY, Outage
from cluster.store import clock, sql, store
from kube.errors import Expired

if TYPE_CHECKING:
    from collections.abc import Iterator

log = logging.getLogger(__name__)
_outages: dict[str, Outage] = {}


@contextmanager
def _patiently(what: str) -> Iterator[None]:
    """Put a task off when the database is away or full: nothing was committed, and beat's next tick tries again."""
    outage = _outages.setdefault(what, Outage(what, log))
    try:
        yield
    except AWAY as error:
        outage.lasts(error)
    else:
        outage.over()


@shared_task(name="cluster.tasks.consume", ignore_result=True)
def consume(name: str, shard: int) -> None:
    """Run one shard of a consumer until nothing is new."""
    with _patiently(f"consumer {name}"):
        consumer.runner(name, shard).run()


@shared_task(name="cluster.tasks.tick", ignore_result=True)
def tick() -> None:
    """Wake every consumer that is behind the log or has a timer due; beat sends this each second.

    It makes up for lost nudges. A consumer that has read everything but had
    nothing to write is behind by its cursor only; looking again costs it a
    few queries.
    """
    with _patiently("the tick"):
        behind = _behind(clock())
        for registration in registry.every():
            for shard in range(registration.shards):
                if registration.cursor_of(shard) in behind:
                    nudge.wake(registration, shard)


_seen: dict[str, int] = {}


def _behind(now: int) -> set[str]:
    """Return the cursors with unread changes of their kinds, with due timers, or so far back that they hold up retention."""
    head = store.revision()
    names = {r.cursor_of(s): r for r in registry.every() for s in range(r.shards)}
    at = dict(sql.rows(store.using, "SELECT name, position FROM cluster_cursor"))
    late = {
        row[0]
        for row in sql.rows(store.using, "SELECT DISTINCT cursor FROM cluster_timer WHERE due <= %s", [now])
    }
    behind = {cursor for cursor in names if cursor not in at or cursor in late}
    for cursor, registration in names.items():
        if cursor in behind:
            continue
        if head - at[cursor] > consumer.LAG or _has_news(cursor, registration, at[cursor], head):
            behind.add(cursor)
    return behind


def _has_news(cursor: str, registration: registry.Registration, position: int, head: int) -> bool:
    """Look for relevant changes after the cursor, never twice at the same stretch of the log."""
    start = max(position, _seen.get(cursor, 0))
    if start >= head:
        return False
    try:
        if store.changes(start, registration.resources, limit=1, until=head):
            return True
    except Expired:
        return True  # it may have missed something, and has to look at everything anew
    _seen[cursor] = head
    return False


@shared_task(name="cluster.tasks.clean", ignore_result=True)
def clean() -> None:
    """Remove history, events, audit rows and tokens that are older than is kept; beat sends this every minute."""
    from cluster import audit, retention, tokens

    with _patiently("cleaning"):
        retention.expire_events(time.monotonic() + 2)
        retention.run(time.monotonic() + 5)
        audit.prune(clock())
        tokens.prune(clock())
