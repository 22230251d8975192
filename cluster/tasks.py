"""The Celery tasks of the cluster: thin shells around consumers and periodic work."""

from __future__ import annotations

import logging
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

from celery import shared_task

from cluster import clock
from cluster.runtime import consumer, nudge, registry
from cluster.runtime.outage import AWAY, Outage
from cluster.store import sql, store
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
    """Run one shard of a consumer until nothing is new; a message of a time in which more ran is dropped."""
    if not any(each.name == name and shard < each.shards for each in registry.running()):
        return
    with _patiently(f"consumer {name}"):
        consumer.runner(name, shard).run()


@shared_task(name="cluster.tasks.tick", ignore_result=True)
def tick(queue: str) -> None:
    """Wake every consumer of a queue that is behind the log or has a timer due.

    Beat sends this to each queue each second, so that a slow worker delays nobody but itself.
    It makes up for lost nudges. A consumer that has read everything but had
    nothing to write is behind by its cursor only; looking again costs it a
    few queries.
    """
    with _patiently("the tick"):
        for registration, shard in _behind(queue, clock.milliseconds()):
            nudge.wake(registration, shard)


_seen: dict[str, int] = {}


def _behind(queue: str, now: int) -> list[tuple[registry.Registration, int]]:
    """Return the shards of a queue with unread changes of their kinds, with due timers, or so far back that they hold up retention."""
    head = store.revision()
    at = dict(sql.rows(store.using, "SELECT name, position FROM cluster_cursor"))
    late = sql.rows(store.using, "SELECT DISTINCT cursor FROM cluster_timer WHERE due <= %s", [now])
    with_timers = {cursor.partition("/")[0] for (cursor,) in late}
    known = Counter(cursor.partition("/")[0] for cursor in at)
    return [
        (each, shard)
        for each in registry.running()
        for shard, cursor in enumerate(each.cursors)
        if each.queue_of(shard) == queue
        # Shards that are no more have left something that those that are look for, and so have their timers.
        and (
            cursor not in at
            or known[each.name] > each.shards
            or each.name in with_timers
            or _is_behind(cursor, each, at[cursor], head)
        )
    ]


def _is_behind(cursor: str, registration: registry.Registration, position: int, head: int) -> bool:
    return head - position > consumer.LAG or _has_news(cursor, registration, position, head)


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
    from cluster.access import audit, tokens
    from cluster.store import retention

    with _patiently("cleaning"):
        retention.expire_events(clock.monotonic() + 2)
        retention.run(clock.monotonic() + 5)
        audit.prune(clock.milliseconds())
        tokens.prune(clock.milliseconds())
