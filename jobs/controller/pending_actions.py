"""Actions that policies ask of a job, due now or after a delay, and not carried out yet (reference: volcano-job §3.5).

An event of a pod is delivered once, so the action it leads to must outlive the process that handled it: a timer holds
all pending actions of a job. It is set in the transaction that handles the event, and removed in the one that carries
out the actions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from cluster.writes import Timer
from jobs.controller.facts import JobFact
from jobs.controller.requests import Request, Target
from jobs.lifecycle.policy_firings import PolicyFiring
from jobs.lifecycle.requester import Requester, Source
from kube.kinds.batch import Action, JobEvent

PENDING_ACTION = "asked"  # the kind of the timer
SOON_MS = 60_000  # when the timer of an action that is due now fires, in case it was not carried out


class PendingAction(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An action that a policy for an event or an exit code asks for, when it is `due` (epoch ms), and `why` in a sentence."""

    action: Action
    event: JobEvent
    due: int
    why: str
    uid: str  # of the job
    firing: PolicyFiring | None = None  # what `why` says; None in a timer written by a version without it
    exit_code: int | None = None
    delay_ms: int = 0
    version: int = 0  # the job's version (its run) that the action is about
    task: str = ""
    pod: str = ""
    partition: int | None = None

    @property
    def target(self) -> Target:
        return Target(self.task, self.pod, self.partition)

    def request(self) -> Request:
        """Return the action as a request to the job."""
        event = self.event if self.exit_code is None else None
        by = Requester(source=Source.POLICY, action=self.action, event=event, exit_code=self.exit_code, task=self.task)
        return Request(action=self.action, why=self.why, by=by, target=self.target, firing=self.firing)


def add(pending: Sequence[PendingAction], new: PendingAction) -> tuple[PendingAction, ...]:
    """Return the pending actions with a new one added.

    An immediate action is added unless the same one with the same scope is pending. Of delayed actions each pod has one:
    an equal action is ignored, so that the first keeps its due time, and a different one replaces it.
    """
    if not new.delay_ms:
        same = new.action, new.version, scope(new.action, new.target)
        is_pending = any(
            not each.delay_ms and (each.action, each.version, scope(each.action, each.target)) == same
            for each in pending
        )
        return tuple(pending) if is_pending else (*pending, new)
    if any(each.delay_ms and each.pod == new.pod and each.action is new.action for each in pending):
        return tuple(pending)
    others = (each for each in pending if not each.delay_ms or each.pod != new.pod)
    return (*others, new)


def runs_again(pending: Sequence[PendingAction], pod: str) -> tuple[PendingAction, ...]:
    """Return the actions left when a pod of this name runs again: delayed ones for its failure or eviction are dropped."""
    called_off = (JobEvent.POD_FAILED, JobEvent.POD_EVICTED)
    return tuple(each for each in pending if not (each.delay_ms and each.pod == pod and each.event in called_off))


def current(pending: Sequence[PendingAction], job: JobFact) -> tuple[PendingAction, ...]:
    """Return the actions that still concern a job: none of an ended run, and none at all once it heeds no policies."""
    if not job.heeds_policies:
        return ()
    return tuple(each for each in pending if each.uid == job.uid and each.version >= job.version)


def due(pending: Sequence[PendingAction], now: int) -> list[Request]:
    """Return the requests of the actions that are immediate or due."""
    return [each.request() for each in pending if not each.delay_ms or each.due <= now]


def after(pending: Sequence[PendingAction], carried_out: Iterable[Request]) -> tuple[PendingAction, ...]:
    """Return the actions left when these requests have been carried out.

    All other actions with the scope of one of the requests are dropped.
    """
    done = {scope(request.action, request.target) for request in carried_out} - {()}
    return tuple(each for each in pending if scope(each.action, each.target) not in done)


def scope(action: Action | None, target: Target) -> tuple[Any, ...]:
    """Return what an action is about: the whole job, or a part by its name; () for an action that changes nothing."""
    if action in (None, Action.SYNC_JOB, Action.ENQUEUE_JOB):
        return ()
    if action is Action.RESTART_TASK:
        return ("task", target.task)
    if action is Action.RESTART_POD:
        return ("pod", target.pod)
    if action is Action.RESTART_PARTITION:
        return ("partition", target.task, target.partition)
    return ("job",)


def timers(key: str, pending: Sequence[PendingAction], now: int) -> list[Timer]:
    """Return the timer that holds all pending actions of a job, as a list; [] when there are none."""
    if not pending:
        return []
    first = min(each.due if each.delay_ms and each.due > now else now + SOON_MS for each in pending)
    return [Timer(PENDING_ACTION, key, first, {"asked": msgspec.to_builtins(pending)})]


def read(timer: Timer) -> tuple[PendingAction, ...]:
    """Return the pending actions that a timer holds."""
    return msgspec.convert(timer.payload["asked"], tuple[PendingAction, ...])
