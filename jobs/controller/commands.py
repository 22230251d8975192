"""Commands whose target is a job: how one is made, and the sentence about its effect (reference: volcano-job §6.3)."""

from __future__ import annotations

from jobs.controller.facts import JobFact
from jobs.controller.requests import Request
from jobs.lifecycle.phases import STEPS, TARGETED, action_of
from jobs.lifecycle.requester import Requester, Source
from kube.kinds.batch import Action, JobPhase
from kube.meta import Object
from kube.resources import JOBS
from kube.volcano.commands import CommandFact, order

_ALWAYS = frozenset({Action.SYNC_JOB, Action.ENQUEUE_JOB})


def to_job(namespace: str, name: str, uid: str, action: Action) -> Object:
    """Return a Command to a job, as vcctl makes it."""
    return order(JOBS, namespace, name, uid, action)


def request(command: CommandFact, job: JobFact) -> Request:
    """Return the request that a Command makes to a job; it names no task or pod."""
    action = action_of(command.action)
    by = None if action is None else Requester(source=Source.COMMAND, action=action)
    return Request(action=action, why=command_event(command, action, job), by=by, source=command)


def command_event(command: CommandFact, action: Action | None, job: JobFact) -> str:
    """Return a sentence that says who asked for what, and, where that has little or no effect, so much."""
    return f"{command.request_text}{_note(action, job)}."


def _note(action: Action | None, job: JobFact) -> str:
    if action is None:
        return ", which is no action of a job; nothing is done"
    if job.deleting:
        return "; the job is being deleted, so nothing is done"
    if action in _ALWAYS:
        return ""
    if action not in STEPS[job.phase]:
        return f"; a job that is {job.phase} stays so"
    if action in TARGETED:
        return ", but a Command names no task or pod, so that no pod ends"
    if job.phase == JobPhase.RESTARTING:
        return "; a job that is restarting ends its pods once more and goes on"
    return ""
