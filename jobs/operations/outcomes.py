"""What has become of an action on one job, judged by the job as it is."""

from __future__ import annotations

from jobs.lifecycle.reading import Job
from jobs.models import OperationItem
from jobs.rules import actions
from jobs.rules.actions import Result, Verdict

SHOWN_MS = 120_000  # how long a job's page tells of an outcome


def latest(uid: str, now: int) -> OperationItem | None:
    """Return what was last asked of a job, unless that is over for longer than it is told."""
    item = OperationItem.objects.filter(uid=uid, asked__gt=0).select_related("operation").order_by("-asked").first()
    return item if item is not None and now < _end(item) else None


def verdict(item: OperationItem, job: Job | None, now: int) -> Verdict | None:
    """Return what became of an item that was asked, None while it is not decided. job None means that it is gone."""
    if item.result != Result.ASKED:
        return Verdict(Result(item.result), item.why)
    action = actions.BY_NAME[item.operation.action]
    found = actions.verdict(action, job, item.marked)
    if found is None and job is not None and now - item.asked >= actions.TIME_LIMIT_MS:
        return actions.overdue(action, job)
    return found


def again(item: OperationItem, decided: Verdict | None, now: int) -> int:
    """Return when (epoch ms) time alone changes what is told of an item."""
    limit = item.asked + actions.TIME_LIMIT_MS
    return limit if decided is None and now < limit else _end(item)


def _end(item: OperationItem) -> int:
    return max(item.asked, item.settled) + SHOWN_MS
