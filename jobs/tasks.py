"""The Celery tasks of jobs."""

from __future__ import annotations

import logging

from celery import shared_task

from cluster import clock
from cluster.runtime.nudge import UNREACHABLE
from cluster.runtime.outage import AWAY, Outage
from jobs.operations import batches, drafts
from kube.errors import ServiceUnavailable

BUDGET_S = 0.5  # of one run: the worker has other controllers to run as well
log = logging.getLogger(__name__)
_outage = Outage("operations on jobs", log)


@shared_task(name="jobs.tasks.advance", ignore_result=True)
def advance(follow: bool = False) -> None:
    """Advance open operations: request actions on their jobs, then settle results.

    Beat sends this every second, so operations go on after a process is killed. With `follow` it is sent again at once
    while jobs remain to be asked; messages of other controllers can run in between.
    """
    try:
        left = batches.ask(BUDGET_S)
        if not (follow and left):
            batches.settle_all()
    except (*AWAY, ServiceUnavailable) as error:
        _outage.lasts(error)
        return
    _outage.over()
    if follow and left:
        hurry()


@shared_task(name="jobs.tasks.clean", ignore_result=True)
def clean() -> None:
    """Delete operations past their retention; beat sends this every minute."""
    try:
        drafts.prune(clock.milliseconds())
    except AWAY as error:
        _outage.lasts(error)


def hurry() -> None:
    """Have operations advanced at once; without Redis, beat does it within a second."""
    try:
        advance.apply_async((True,), retry=False)
    except UNREACHABLE:
        pass  # nothing is lost: the operation is stored
