"""What policies ask of a job and is not carried out yet: now, or when a delay is over (reference: volcano-job §3.5).

What happened to a pod is told once, so what a policy makes of it must outlive the process that heard it: all that is
asked of a job stands in a timer, which is set in the transaction that takes the news, and goes in the one that does
what was asked.
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
SOON_MS = 60_000  # what is to be done now is looked at again so late should everybody forget it


class PendingAction(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An action that the policy for an event, or for an exit code, asks for, when it is due (epoch ms), and why in a sentence."""

    action: Action
    event: JobEvent
    due: int
    why: str
    uid: str  # of the job
    firing: PolicyFiring | None = None  # what `why` says; None in a timer of a version that did not write it
    exit_code: int | None = None
    delay_ms: int = 0
    version: int = 0  # of the run that it is about
    task: str = ""
    pod: str = ""
    partition: int | None = None

    @property
    def target(self) -> Target:
        return Target(self.task, self.pod, self.partition)

    def request(self) -> Request:
        """Return what is asked of the job."""
        event = self.event if self.exit_code is None else None
        by = Requester(source=Source.POLICY, action=self.action, event=event, exit_code=self.exit_code, task=self.task)
        return Request(action=self.action, why=self.why, by=by, target=self.target, firing=self.firing)


def add(pending: Sequence[PendingAction], new: PendingAction) -> tuple[PendingAction, ...]:
    """Return what is asked for after one thing more.

    What is to be done at once is asked for once for what it is about. What waits has one place for each pod: there the
    first of equal actions stays, with its time, and another action takes its place.
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
    """Return what is left when a pod of that name runs: what waits since it failed or was evicted is called off."""
    called_off = (JobEvent.POD_FAILED, JobEvent.POD_EVICTED)
    return tuple(each for each in pending if not (each.delay_ms and each.pod == pod and each.event in called_off))


def current(pending: Sequence[PendingAction], job: JobFact) -> tuple[PendingAction, ...]:
    """Return what still concerns a job: nothing of a run that was ended, and nothing once the job ends its pods."""
    if not job.heeds_policies:
        return ()
    return tuple(each for each in pending if each.uid == job.uid and each.version >= job.version)


def due(pending: Sequence[PendingAction], now: int) -> list[Request]:
    """Return what is to be done now."""
    return [each.request() for each in pending if not each.delay_ms or each.due <= now]


def after(pending: Sequence[PendingAction], carried_out: Iterable[Request]) -> tuple[PendingAction, ...]:
    """Return what is left to be done when requests have been carried out.

    Whatever else was to be done with the same part of the job is called off.
    """
    done = {scope(request.action, request.target) for request in carried_out} - {()}
    return tuple(each for each in pending if scope(each.action, each.target) not in done)


def scope(action: Action | None, target: Target) -> tuple[Any, ...]:
    """Return what an action is about: the whole job, or a part by its name; () for what changes nothing."""
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
    """Return the timer in which everything that is asked of a job stands; none when nothing is."""
    if not pending:
        return []
    first = min(each.due if each.delay_ms and each.due > now else now + SOON_MS for each in pending)
    return [Timer(PENDING_ACTION, key, first, {"asked": msgspec.to_builtins(pending)})]


def read(timer: Timer) -> tuple[PendingAction, ...]:
    """Return what is asked of the job that a timer is for."""
    return msgspec.convert(timer.payload["asked"], tuple[PendingAction, ...])
