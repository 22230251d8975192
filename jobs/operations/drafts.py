"""Operations from their draft until they are forgotten; what becomes of their jobs is in `jobs.operations.batches`."""

from __future__ import annotations

from typing import NamedTuple

from django.conf import settings

from cluster import clock
from cluster.access import Actor
from cluster.access.audit import DAY_MS
from cluster.api import transaction
from jobs.models import Operation, OperationItem
from jobs.rules.actions import Action, Result

PER_INSERT = 1000  # rows of one transaction, so that others can write between
DRAFT_MS = 3_600_000  # how long a draft waits to be confirmed


class Selection(NamedTuple):
    """Jobs by uid with their namespace/name keys, in the order of the keys, and how they were chosen."""

    jobs: dict[str, str]
    description: str


def draft(actor: Actor, action: Action, selection: Selection) -> Operation:
    """Store which jobs an action would be about; nothing is done before `confirm`."""
    operation = new(actor, action, chosen_by=selection.description, total=len(selection.jobs), is_bulk=True)
    items = [item_of(operation, key, uid) for uid, key in selection.jobs.items()]
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


def new(
    actor: Actor, action: Action, *, total: int, is_bulk: bool, chosen_by: str = "", confirmed: int = 0
) -> Operation:
    """Store an operation that has no items yet."""
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


def item_of(operation: Operation, key: str, uid: str) -> OperationItem:
    """Return an item about the job with a namespace/name key and a uid."""
    namespace, _, name = key.partition("/")
    return OperationItem(operation=operation, namespace=namespace, name=name, uid=uid)


def prune(now: int) -> int:
    """Forget drafts that nobody confirmed, and what is older than the audit keeps; return how many operations went."""
    old = Operation.objects.filter(drafted__lt=now - settings.AUDIT_DAYS * DAY_MS)
    forgotten = Operation.objects.filter(confirmed=0, drafted__lt=now - DRAFT_MS)
    numbers = [pk for operations in (old, forgotten) for pk in operations.values_list("pk", flat=True)]
    Operation.objects.filter(pk__in=numbers).delete()
    return len(numbers)
