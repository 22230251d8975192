"""Beginning, confirming, stopping and forgetting operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.db import transaction as database

from cluster import api, clock
from cluster.access.audit import DAY_MS
from cluster.api import transaction
from jobs.controller import commands
from jobs.models import Operation, OperationItem
from jobs.pages.reading import Job
from jobs.rules import actions
from jobs.rules.actions import Result
from kube.errors import Conflict
from kube.resources import COMMANDS, JOBS

if TYPE_CHECKING:
    from cluster.access import Actor
    from cluster.store import Stored
    from jobs.operations.selection import Selection
    from jobs.rules.actions import Action

PER_INSERT = 1000  # rows of one transaction, so that others can write between
DRAFT_MS = 3_600_000  # how long a draft waits to be confirmed


def draft(actor: Actor, action: Action, selection: Selection) -> Operation:
    """Store which jobs an action would be about; nothing is done before `confirm`."""
    operation = _new(actor, action, chosen_by=selection.said, total=len(selection.jobs), is_bulk=True)
    items = [_item(operation, key, uid) for uid, key in selection.jobs.items()]
    for start in range(0, len(items), PER_INSERT):
        OperationItem.objects.bulk_create(items[start : start + PER_INSERT])
    return operation


def confirm(operation: Operation) -> bool:
    """Let a draft begin; False where that was done before."""
    return bool(Operation.objects.filter(pk=operation.pk, confirmed=0).update(confirmed=clock.milliseconds()))


def stop(operation: Operation, by: Actor) -> int:
    """Ask no further jobs, and return how many were not asked; what was asked goes on."""
    # With the log's lock held no batch is under way.
    with transaction.transaction(dry_run=False):
        now = clock.milliseconds()
        running = Operation.objects.filter(pk=operation.pk, over=0, stopped=0).exclude(confirmed=0)
        if not running.update(stopped=now, stopped_by=by.name):
            return 0
        waiting = operation.items.filter(result=Result.WAITING)
        return waiting.update(result=Result.STOPPED, settled=now)


def send(actor: Actor, action: Action, job: Stored, uid: str) -> None:
    """Do an action to one job, the one that had a uid when the actor looked at it; ApiError says why it was not done."""
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


def note(actor: Actor, action: Action, job: Stored) -> None:
    """Note what was asked of one job as it was then, so that its page can say what became of it."""
    now = clock.milliseconds()
    with database.atomic():
        operation = _new(actor, action, total=1, is_bulk=False, confirmed=now)
        item = _item(operation, f"{job.namespace}/{job.name}", job.uid)
        item.result, item.asked, item.marked = Result.ASKED, now, actions.mark(job.read(Job))
        item.save()


def _new(
    actor: Actor, action: Action, *, total: int, is_bulk: bool, chosen_by: str = "", confirmed: int = 0
) -> Operation:
    return Operation.objects.create(
        action=action.name,
        actor=actor.name,
        user_id=actor.user_id,
        is_bulk=is_bulk,
        chosen_by=chosen_by,
        total=total,
        drafted=clock.milliseconds(),
        confirmed=confirmed,
    )


def _item(operation: Operation, key: str, uid: str) -> OperationItem:
    namespace, _, name = key.partition("/")
    return OperationItem(operation=operation, namespace=namespace, name=name, uid=uid)


def prune(now: int) -> int:
    """Forget drafts that nobody confirmed, and what is older than the audit keeps; return how many operations went."""
    old = Operation.objects.filter(drafted__lt=now - settings.AUDIT_DAYS * DAY_MS)
    forgotten = Operation.objects.filter(confirmed=0, drafted__lt=now - DRAFT_MS)
    numbers = [pk for found in (old, forgotten) for pk in found.values_list("pk", flat=True)]
    Operation.objects.filter(pk__in=numbers).delete()
    return len(numbers)
