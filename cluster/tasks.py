"""The Celery tasks of the cluster: thin shells around consumers and periodic work."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from celery import shared_task
from django.db.models import F, Value
from django.db.models.functions import Greatest

from cluster import clock
from cluster.consumers import consumer
from cluster.consumers.backlog import Backlog
from cluster.models import Timer
from cluster.runtime import nudge, registry
from cluster.runtime.outage import AWAY, Outage

log = logging.getLogger(__name__)
_outages: dict[str, Outage] = {}
_backlog = Backlog()


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

    Beat sends this to each queue each second, so that a slow worker delays nobody but itself. It makes up for lost
    nudges. A consumer that has read everything but had nothing to write is behind by its cursor only; looking again
    costs it a few queries.
    """
    with _patiently("the tick"):
        for registration, shard in _backlog.of(queue, clock.milliseconds()):
            nudge.wake(registration, shard)


@shared_task(name="cluster.tasks.clock_set_back", ignore_result=True)
def clock_set_back(back_ms: int) -> None:
    """Bring forward what timers wait for, after the wall clock was set back by so many milliseconds.

    What was set between that and now comes too early by as much; whoever noticed it looks each second.
    """
    now = clock.milliseconds()
    Timer.objects.filter(due__gt=now).update(due=Greatest(F("due") - back_ms, Value(now)))
    log.warning("timers were brought forward by %.0f s, because the clock was set back", back_ms / 1000)


@shared_task(name="cluster.tasks.clean", ignore_result=True)
def clean() -> None:
    """Remove history, events, records, decisions, audit rows and tokens older than is kept; beat sends this every minute."""
    from cluster.access import audit, tokens
    from cluster.api import backend
    from cluster.runtime import retention
    from cluster.store import decisions, records

    with _patiently("cleaning"):
        if not backend.is_mirror:  # another cluster sees to its events itself
            retention.expire_events(clock.monotonic() + 2)
        retention.run(clock.monotonic() + 5)
        records.expire(clock.monotonic() + 2, now=clock.milliseconds())
        decisions.expire(clock.monotonic() + 2, now=clock.milliseconds())
        audit.prune(clock.milliseconds())
        tokens.prune(clock.milliseconds())
