"""The consumer that records the history of jobs before the log is trimmed.

A job is recorded when it is deleted, when its pods were ended for a restart or a suspension, and otherwise at long
intervals, so that most jobs cost no write before their end. Each record holds the revision up to which it has read, so
making it again does no harm.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.conf import settings

from cluster.consumers.consumer import Consumer, Plan
from cluster.store import Change, records, store
from cluster.store.types import read
from cluster.writes import Record, Timer
from jobs.consumers import gather
from jobs.consumers.gather import Ref
from jobs.history import record
from jobs.lifecycle.phases import FINISHED
from jobs.lifecycle.reading import Job
from kube.kinds.batch import JobPhase
from kube.resources import JOBS

MOST = 200  # jobs recorded in one transaction
SWEEP, LATER, SETTLE = "sweep", "record", "settle"
SETTLE_MS = 30_000  # the pods of a deleted job end after it
SETTLE_MAX_MS = 3_600_000
_TURNS = (b'"Restarting"', b'"Aborted"')


class HistoryState:
    """Remembers only whether the timer of the first sweep has been set."""

    is_swept = False


class HistoryConsumer(Consumer[HistoryState]):
    name = "history"

    def load(self, shard: int, revision: int) -> HistoryState:
        return HistoryState()

    def apply(self, state: HistoryState, change: Change) -> None:
        """Do nothing: the state keeps nothing of what changed."""

    def plan(self, state: HistoryState, changes: Sequence[Change], timers: Sequence[Timer], now: int) -> Plan:
        """Record the jobs that these changes and timers name; those that do not fit in one transaction get timers."""
        wanted = [  # jobs that did not fit in an earlier transaction, and jobs whose pods had not ended
            Ref(timer.payload["namespace"], timer.payload["name"], timer.key)
            for timer in timers
            if timer.kind in (LATER, SETTLE)
        ]
        wanted += [Ref(change.namespace, change.name, change.uid) for change in changes if _matters(change)]
        later: list[Timer] = []
        if not state.is_swept:
            later.append(Timer(SWEEP, "", now + sweep_ms()))
            state.is_swept = True
        for timer in timers:
            if timer.kind == SWEEP:
                refs, following = _sweep(timer, now)
                wanted += refs
                later.append(following)
        refs = list(dict.fromkeys(wanted))
        later += [_timer(LATER, ref, now) for ref in refs[MOST:]]
        updated: list[Record] = []
        if refs:
            with store.reading() as revision:
                updated = list(gather.up_to(revision, refs[:MOST]).values())
        later += _unsettled(updated, {timer.key: timer for timer in timers}, now)
        return Plan(records=updated, timers=later)


def sweep_ms() -> int:
    """Return the interval at which living jobs are recorded, in ms: a quarter of the time that the log keeps."""
    return settings.HISTORY_HOURS * 3600 * 1000 // 4


def _matters(change: Change) -> bool:
    """Tell whether a change of a job ends one of its runs, or the job."""
    if change.verb == "DELETED":
        return True
    if change.previous is None or not any(word in change.body for word in _TURNS):
        return False
    before, after = read(change.previous, Job).phase, read(change.body, Job).phase
    return before != after and (after == JobPhase.ABORTED or before == JobPhase.RESTARTING)


def _timer(kind: str, ref: Ref, due: int, **payload: int) -> Timer:
    return Timer(kind, ref.uid, due, {"namespace": ref.namespace, "name": ref.name, **payload})


def _sweep(timer: Timer, now: int) -> tuple[list[Ref], Timer]:
    """Return the next living jobs whose records are behind, and the timer that continues the sweep after them."""
    behind = records.behind(
        JOBS, created_before=now - sweep_ms(), finished=FINISHED, after=timer.payload.get("after", ""), limit=MOST
    )
    refs = [Ref(namespace, name, uid) for _, namespace, name, uid in behind]
    if len(behind) < MOST:
        return refs, Timer(SWEEP, "", now + sweep_ms())
    return refs, Timer(SWEEP, "", now, {"after": behind[-1][0]})


def _unsettled(written: Iterable[Record], due: dict[str, Timer], now: int) -> list[Timer]:
    """Return timers to look again at deleted jobs whose pods had not ended; each wait is twice the last."""
    timers = []
    for each in written:
        if each.deleted and not record.read(each.history).is_settled:
            before = due.get(each.uid)
            wait = 2 * before.payload.get("wait", SETTLE_MS // 2) if before else SETTLE_MS
            if wait <= SETTLE_MAX_MS:
                ref = Ref(each.namespace, each.name, each.uid)
                timers.append(_timer(SETTLE, ref, now + wait, wait=wait))
    return timers
