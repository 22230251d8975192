"""An action on one job: asking for it on the job's page, and its outcome."""

from __future__ import annotations

from django.conf import settings
from django.db import transaction as database

from cluster import api, clock
from cluster.access import Actor
from cluster.store import Stored
from jobs.controller import commands
from jobs.lifecycle.reading import Job
from jobs.models import OperationItem
from jobs.operations import drafts
from jobs.rules import actions
from jobs.rules.actions import Action, Result, Retention, Verdict
from kube.errors import Conflict
from kube.resources import COMMANDS, JOBS


def send(actor: Actor, action: Action, job: Stored, uid: str) -> None:
    """Do an action on one job; raise ApiError if it cannot be done.

    `uid` is that of the job the actor looked at, "" for not known: another job of the name raises Conflict.
    """
    if uid and uid != job.uid:
        raise Conflict.of(JOBS.id, job.name, "another job has this name by now; look at it before you act")
    read = job.read(Job)
    if why := actions.problem(action, read):
        raise Conflict(f"The job {job.name} was left as it is. {why}", resource=JOBS.id, name=job.name)
    if action.order is None:
        api.delete(actor, JOBS, job.namespace, job.name, uid=job.uid)
        return
    api.create(actor, COMMANDS, commands.to_job(job.namespace, job.name, job.uid, action.order))
    note(actor, action, job)


def retention() -> Retention:
    """Return how long the history and logs of a deleted job are kept."""
    return Retention(settings.JOB_HISTORY_DAYS, settings.LOG_DAYS)


def note(actor: Actor, action: Action, job: Stored) -> None:
    """Note an action and the state of its job, so that the job's page can show the outcome."""
    now = clock.milliseconds()
    with database.atomic():
        operation = drafts.new(actor, action, total=1, is_bulk=False, confirmed=now)
        item = drafts.item_of(operation, f"{job.namespace}/{job.name}", job.uid)
        item.result, item.asked, item.marked = Result.ASKED, now, actions.mark(job.read(Job))
        item.save()


DISPLAY_MS = 120_000  # how long a job's page shows an outcome


def latest(uid: str, now: int) -> OperationItem | None:
    """Return what was last asked of a job; None if there is nothing or its outcome is older than DISPLAY_MS."""
    item = OperationItem.objects.filter(uid=uid, asked__gt=0).select_related("operation").order_by("-asked").first()
    return item if item is not None and now < _end(item) else None


def verdict(item: OperationItem, job: Job | None, now: int) -> Verdict | None:
    """Return the outcome of an item that was asked, None while it is open; `job` is None if it is gone."""
    if item.result != Result.ASKED:
        return Verdict(Result(item.result), item.why)
    action = actions.BY_NAME[item.operation.action]
    decided = actions.verdict(action, job, item.marked)
    if decided is None and job is not None and now - item.asked >= actions.TIME_LIMIT_MS:
        return actions.overdue(action, job)
    return decided


def again(item: OperationItem, decided: Verdict | None, now: int) -> int:
    """Return when (epoch ms) the display of an item changes by time alone."""
    limit = item.asked + actions.TIME_LIMIT_MS
    return limit if decided is None and now < limit else _end(item)


def _end(item: OperationItem) -> int:
    return max(item.asked, item.settled) + DISPLAY_MS
