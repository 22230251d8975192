"""The Celery tasks of jobs."""

from __future__ import annotations

import logging

from celery import shared_task

from cluster import clock
from cluster.runtime.nudge import UNREACHABLE
from cluster.runtime.outage import AWAY, Outage
from jobs.operations import batches, drafts
from kube.errors import ServiceUnavailable

# Of each second. The worker has other controllers to run, and others want to write to the log.
BUDGET_S = 0.5
log = logging.getLogger(__name__)
_outage = Outage("operations on jobs", log)


@shared_task(name="jobs.tasks.advance", ignore_result=True)
def advance() -> None:
    """Carry operations on; beat sends this each second, so one that a killed process left goes on by itself."""
    try:
        batches.advance(BUDGET_S)
    except (*AWAY, ServiceUnavailable) as error:
        _outage.lasts(error)
    else:
        _outage.over()


@shared_task(name="jobs.tasks.clean", ignore_result=True)
def clean() -> None:
    """Forget operations that are older than is kept; beat sends this every minute."""
    try:
        drafts.prune(clock.milliseconds())
    except AWAY as error:
        _outage.lasts(error)


def hurry() -> None:
    """Have operations carried on at once; without Redis they are at beat's next second."""
    try:
        advance.apply_async(retry=False)
    except UNREACHABLE:
        pass  # nothing is lost: the operation is stored
