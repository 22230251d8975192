"""Carrying operations out: requests to jobs batch by batch through the API, and results by what the jobs then show.

A batch is one transaction that changes jobs and notes that in their items, so a process that is killed has done both or
neither, and no job is asked twice. Others can write between batches. The rights that count are those that the person has
when the batch begins.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TypeVar

from django.contrib.auth.models import User
from django.db import connection
from django.db import transaction as database

from cluster import access, api, clock
from cluster.access import Actor
from cluster.api import bulk, transaction
from cluster.store import Stored, store
from jobs.controller import commands
from jobs.lifecycle.reading import Job
from jobs.models import Operation, OperationItem
from jobs.operations import single
from jobs.rules import actions
from jobs.rules.actions import OPEN, Action, Result, Verdict
from kube.errors import ApiError, Conflict, NotFound, ServiceUnavailable
from kube.resources import COMMANDS, JOBS

# The pause between two batches, which leaves the log's lock and the processor to others.
PAUSE_S = 0.05
T = TypeVar("T")
GONE = Verdict(Result.GONE, "It was deleted before its turn came.")
ASKED = Verdict(Result.ASKED)
UPDATE = "UPDATE jobs_operationitem SET result = %s, why = %s, marked = %s, asked = %s, settled = %s WHERE id = %s"


def running() -> list[Operation]:
    """Return the confirmed operations that are not over, the oldest first."""
    return list(Operation.objects.filter(over=0).exclude(confirmed=0).order_by("pk"))


def ask(budget_s: float) -> bool:
    """Ask jobs for about `budget_s` seconds, a batch of each running operation in turn; tell whether some are left."""
    until = clock.monotonic() + budget_s
    asking = running()
    while asking := [operation for operation in asking if ask_batch(operation)]:
        if clock.monotonic() >= until:
            break
        time.sleep(PAUSE_S)
    return bool(asking)


def ask_batch(operation: Operation) -> bool:
    """Ask the next batch of an operation's jobs; tell whether there may be more."""
    with transaction.transaction(dry_run=False):
        # Read the items only with the log's lock held: nobody else can work on the operation or stop it now.
        waiting = operation.items.filter(result=Result.WAITING)
        items = list(waiting.order_by("pk")[: api.backend.batch])
        if items:
            # With today's rights, and none if the account is gone. The account may not be in this database: with
            # several clusters the first one keeps them.
            user = User.objects.filter(pk=operation.user_id or 0).first()
            actor = access.for_user(user) if user is not None else Actor(operation.actor)
            _ask(actor, actions.BY_NAME[operation.action], items)
    return len(items) == api.backend.batch


def _ask(actor: Actor, action: Action, items: Sequence[OperationItem]) -> None:
    """Ask the jobs to which the action applies, and note the result of each item."""
    jobs = store.by_keys(JOBS, [item.key for item in items])
    verdicts: dict[int, Verdict] = {}
    asking: list[OperationItem] = []
    for item in items:
        job = _job_of(item, jobs)
        if job is None:
            verdicts[item.pk] = GONE
        elif why := actions.problem(action, job):
            verdicts[item.pk] = Verdict(Result.SKIPPED, why)
        else:
            item.marked = actions.mark(job)
            asking.append(item)
    if action.order is None:
        keys = [(item.namespace, item.name) for item in asking]
        sent = api.delete_many(actor, JOBS, keys, uids=[item.uid for item in asking])
    else:
        orders = [commands.to_job(item.namespace, item.name, item.uid, action.order) for item in asking]
        sent = api.create_many(actor, COMMANDS, orders)
    for item, outcome in answered(asking, sent):
        if isinstance(outcome, NotFound | Conflict):
            verdicts[item.pk] = GONE
        elif isinstance(outcome, ApiError):
            verdicts[item.pk] = Verdict(Result.REFUSED, "; ".join(map(str, outcome.causes)) or outcome.message)
        else:
            verdicts[item.pk] = ASKED
    _write([(item, verdicts[item.pk]) for item in items if item.pk in verdicts])


def answered(items: Sequence[T], outcomes: Sequence[Stored | ApiError]) -> list[tuple[T, Stored | ApiError]]:
    """Return the items that the cluster answered with their outcomes; the others wait for the next batch.

    Raise ServiceUnavailable if it answered none: then the batch is undone.
    """
    pairs = [pair for pair in zip(items, outcomes, strict=True) if not isinstance(pair[1], ServiceUnavailable)]
    if outcomes and not pairs:
        raise next(outcome for outcome in outcomes if isinstance(outcome, ServiceUnavailable))
    return pairs


def settle_all() -> None:
    """Settle all running operations."""
    for operation in running():
        settle(operation)


def settle(operation: Operation) -> None:
    """Look at the jobs that were asked, and note the result of each that shows it or whose time limit has passed."""
    requested = operation.items.filter(result=Result.ASKED).order_by("pk")
    after = 0
    while items := list(requested.filter(pk__gt=after)[: bulk.BATCH]):
        after = items[-1].pk
        jobs = store.by_keys(JOBS, [item.key for item in items])
        now = clock.milliseconds()
        verdicts = [(item, single.verdict(item, _job_of(item, jobs), now)) for item in items]
        with database.atomic():
            _write([(item, verdict) for item, verdict in verdicts if verdict is not None])
    if not operation.items.filter(result__in=OPEN).exists():
        Operation.objects.filter(pk=operation.pk, over=0).update(over=clock.milliseconds())


def _job_of(item: OperationItem, jobs: Mapping[str, Stored]) -> Job | None:
    """Return the job that an item is about; None if it no longer exists."""
    stored = jobs.get(item.key)
    return stored.read(Job) if stored is not None and stored.uid == item.uid else None


def _write(results: Sequence[tuple[OperationItem, Verdict]]) -> None:
    """Write results with one statement: there are hundreds in each transaction."""
    if not results:
        return
    now = clock.milliseconds()
    rows = [
        (
            str(verdict.result),
            verdict.why,
            item.marked,
            now if verdict.result is Result.ASKED else item.asked,
            0 if verdict.result is Result.ASKED else now,
            item.pk,
        )
        for item, verdict in results
    ]
    with connection.cursor() as cursor:
        cursor.executemany(UPDATE, rows)
