"""What becomes of a Command whose target is a job, in words (reference: volcano-job §6.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobs.lifecycle import STEPS, TARGETED
from kube.kinds.batch import Action, JobPhase

if TYPE_CHECKING:
    from jobs.facts import JobFact
    from kube.commands import CommandFact

_ALWAYS = frozenset({Action.SYNC_JOB, Action.ENQUEUE_JOB})


def told(command: CommandFact, action: Action | None, job: JobFact) -> str:
    """Say who asked for what, and what is to be expected of it where that is nothing or little."""
    return f"{command.asked}{_note(action, job)}."


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
