"""What happened to a job's pods between one version and the next, in Volcano's names (reference: volcano-job §3.3).

State says what should exist; what happened is in the difference of consecutive
versions alone. Each pair of them is looked at once, also those of the time in
which no controller ran.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from jobs.controller.facts import OUT_OF_SYNC
from jobs.lifecycle import messages
from kube.kinds.batch import JobEvent
from kube.kinds.core import PodPhase

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobs.controller.facts import JobFact, PodFact

SHOWN = 3  # pods that a sentence names
_FAILED = f'"{PodPhase.FAILED}"'.encode()
_MARKED = f'"{OUT_OF_SYNC}":"true"'.encode()


class Happening(NamedTuple):
    """An event, and the last version of the pod that it happened to."""

    event: JobEvent
    pod: PodFact


def is_worth_a_look(body: bytes, *, is_gone: bool) -> bool:
    """Say whether anything can have happened; nearly all changes are told from others without decoding them."""
    return (is_gone or _FAILED in body) and _MARKED not in body


def happened(before: PodFact | None, after: PodFact, *, is_gone: bool) -> JobEvent | None:
    """Return what happened to a pod.

    PodFailed   it failed, however often it is written afterwards
    PodEvicted  somebody else deleted it: the controller marks what it deletes (§10, Q-3)
    """
    if after.out_of_sync:
        return None
    if is_gone:
        return JobEvent.POD_EVICTED
    if after.phase == PodPhase.FAILED and before is not None and before.phase != PodPhase.FAILED:
        return JobEvent.POD_FAILED
    return None


def concerns(happening: Happening, job: JobFact) -> bool:
    """Say whether what happened to a pod means something to the job that stands under its job's name now.

    A job that is being deleted loses its pods, one that is finished may lose
    them, and those of a run that was ended are none of its own any more (§3.4).
    """
    pod = happening.pod
    is_of_earlier_run = job.runs_on and -1 < pod.version < job.version
    if pod.owner != job.uid or job.deleting or is_of_earlier_run:
        return False
    return not (job.is_finished and happening.event is JobEvent.POD_EVICTED)


def told(event: JobEvent, pods: Sequence[PodFact]) -> str:
    """Say in a sentence which pods it happened to and how; some are named, the others counted."""
    named = [pod.failure if event is JobEvent.POD_FAILED else pod.name for pod in pods[:SHOWN]]
    more = f" and {len(pods) - SHOWN} more" if len(pods) > SHOWN else ""
    return f"{messages.pods(len(pods))} {_verb(event, len(pods))}: {', '.join(named)}{more}."


def _verb(event: JobEvent, number: int) -> str:
    if event is JobEvent.POD_FAILED:
        return "failed"
    return f"{'was' if number == 1 else 'were'} deleted, and not by the job controller"
