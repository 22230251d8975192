"""The Celery tasks of the scheduler, other than its cycles, which run as a consumer."""

from __future__ import annotations

import logging

from celery import shared_task

from cluster import clock
from cluster.runtime.outage import AWAY, Outage
from scheduler.idle_watch import IdleWatch

log = logging.getLogger(__name__)
_outage = Outage("the check for idle room", log)
_watch = IdleWatch()


@shared_task(name="scheduler.tasks.check_idle_room", ignore_result=True)
def check_idle_room() -> None:
    """Look for jobs that wait for room that nobody uses; beat calls this every ten seconds, and it checks every thirty.

    It runs among the controllers, so that no scheduling cycle waits for it.
    """
    try:
        _watch.check(clock.milliseconds())
    except AWAY as error:
        _outage.lasts(error)
    else:
        _outage.over()
