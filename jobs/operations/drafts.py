"""Operations from draft to pruning; `jobs.operations.batches` carries them out."""

from __future__ import annotations

from typing import NamedTuple

from django.conf import settings

from cluster import clock
from cluster.access import Actor
from cluster.access.audit import DAY_MS
from cluster.api import transaction
from jobs.models import Operation, OperationItem
from jobs.rules.actions import Action, Result

PER_INSERT = 1000  # rows in one transaction, so that others can write in between
DRAFT_MS = 3_600_000  # how long a draft waits to be confirmed


class Selection(NamedTuple):
    """Jobs (uid → namespace/name key, in the order of the keys), and a description of how they were chosen."""

    jobs: dict[str, str]
    description: str


def draft(actor: Actor, action: Action, selection: Selection) -> Operation:
    """Store an operation with an item for each selected job; nothing is done before `confirm`."""
    operation = new(actor, action, chosen_by=selection.description, total=len(selection.jobs), is_bulk=True)
    items = [item_of(operation, key, uid) for uid, key in selection.jobs.items()]
    for start in range(0, len(items), PER_INSERT):
        OperationItem.objects.bulk_create(items[start : start + PER_INSERT])
    return operation


def confirm(operation: Operation) -> bool:
    """Confirm a draft, so that it begins; return False if it was confirmed before."""
    return bool(Operation.objects.filter(pk=operation.pk, confirmed=0).update(confirmed=clock.milliseconds()))


def stop(operation: Operation, by: Actor) -> int:
    """Stop asking jobs, and return how many were not asked; what was asked goes on."""
    # With the log's lock held, no batch is running.
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
    """Store an operation without items."""
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
    """Delete unconfirmed drafts, and operations older than the audit keeps; return how many operations were deleted."""
    old = Operation.objects.filter(drafted__lt=now - settings.AUDIT_DAYS * DAY_MS)
    forgotten = Operation.objects.filter(confirmed=0, drafted__lt=now - DRAFT_MS)
    numbers = [pk for operations in (old, forgotten) for pk in operations.values_list("pk", flat=True)]
    Operation.objects.filter(pk__in=numbers).delete()
    return len(numbers)
