"""What happened to a job's pods between one version and the next, in Volcano's names (reference: volcano-job §3.3).

Only the difference between consecutive versions shows what happened. Each pair of versions is compared once, also those
written while no controller ran.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from jobs.controller.facts import JobFact, PodFact
from jobs.lifecycle import messages
from kube.kinds.batch import JobEvent
from kube.kinds.core import PodPhase
from kube.kinds.pod import OUT_OF_SYNC

MAX_PODS_NAMED = 3  # pods that a sentence names
REPORTED = (JobEvent.POD_FAILED, JobEvent.POD_EVICTED)  # sent as Events, whether or not a policy answers
_MARKED = f'"{OUT_OF_SYNC}":"true"'.encode()
_PHASE = {
    JobEvent.POD_FAILED: (PodPhase.FAILED,),
    JobEvent.TASK_COMPLETED: (PodPhase.SUCCEEDED,),
    JobEvent.POD_RUNNING: (PodPhase.RUNNING,),
    JobEvent.TASK_FAILED: (PodPhase.RUNNING, PodPhase.PENDING),
}
_ALIVE = (PodPhase.RUNNING.value, PodPhase.PENDING.value)
_RETRIES = 3  # of a task that says 0 (reference: volcano-job §3.3, task-failed test)


class PodEvent(NamedTuple):
    """An event, and the last version of the pod that it happened to."""

    event: JobEvent
    pod: PodFact


def marks(events: Iterable[JobEvent]) -> tuple[bytes, ...]:
    """Return the byte strings, one of which a pod's body contains if one of these events may have happened to it."""
    phases = dict.fromkeys(phase for event in events for phase in _PHASE.get(event, ()))
    return tuple(f'"{phase}"'.encode() for phase in phases)


def is_worth_a_look(body: bytes, sought: Collection[bytes], *, is_deleted: bool) -> bool:
    """Tell whether anything can have happened to the pod, without decoding it: for nearly all changes nothing has."""
    return (is_deleted or any(mark in body for mark in sought)) and _MARKED not in body


def happened(before: PodFact | None, after: PodFact, *, is_deleted: bool) -> JobEvent | None:
    """Return what happened to a pod between two versions, or None; `before` is None for a new pod.

    PodFailed      its phase became Failed; later writes of the failed pod do not count
    PodEvicted     it was deleted, and not by the controller, which marks what it deletes (§10, Q-3)
    TaskCompleted  it succeeded, perhaps as the last of its task, see `happened_to_task`
    PodRunning     it began to run
    TaskFailed     one of its containers was restarted, perhaps once too often for its task
    """
    if after.out_of_sync:
        return None
    if is_deleted:
        return JobEvent.POD_EVICTED
    if before is None:
        return None
    if after.phase == before.phase:
        is_again = after.phase in _ALIVE and after.restarts > before.restarts
        return JobEvent.TASK_FAILED if is_again else None
    return _NEW_PHASE.get(after.phase)


_NEW_PHASE = {
    PodPhase.FAILED.value: JobEvent.POD_FAILED,
    PodPhase.SUCCEEDED.value: JobEvent.TASK_COMPLETED,
    PodPhase.RUNNING.value: JobEvent.POD_RUNNING,
}


def concerns(pod_event: PodEvent, job: JobFact) -> bool:
    """Tell whether an event of a pod matters to the job that now has the name of the pod's job.

    It does not if the job is being deleted, if the pod is of an earlier run or of another job, or if the job is
    finished and the event is PodEvicted (§3.4).
    """
    pod = pod_event.pod
    is_of_earlier_run = job.runs_on and -1 < pod.version < job.version
    if pod.owner != job.uid or job.deleting or is_of_earlier_run:
        return False
    return not (job.is_finished and pod_event.event is JobEvent.POD_EVICTED)


def happened_to_task(pod_event: PodEvent, job: JobFact, pods: Iterable[PodFact]) -> bool:
    """Tell whether this pod's whole task has completed or failed, by the job's current pods (§3.3).

    TaskCompleted  as many pods of the task succeeded as it has replicas
    TaskFailed     the containers of its Pending and Running pods were restarted at least maxRetry times in all
    """
    name = pod_event.pod.task
    own = [pod for pod in pods if pod.owner == job.uid and pod.task == name and pod.is_in_run]
    replicas = next((task.replicas for task in job.tasks if task.name == name), 0)
    if pod_event.event is JobEvent.TASK_COMPLETED:
        return 0 < replicas <= sum(pod.phase == PodPhase.SUCCEEDED for pod in own)
    most = job.task_retries.get(name, 0) or _RETRIES
    return replicas > 0 and -1 < most <= sum(pod.restarts for pod in own if pod.phase in _ALIVE)


def event_text(event: JobEvent, pods: Sequence[PodFact]) -> str:
    """Return a sentence that says which pods it happened to and how; at most MAX_PODS_NAMED are named."""
    named = [pod.failed_with() if event is JobEvent.POD_FAILED else pod.name for pod in pods[:MAX_PODS_NAMED]]
    more = f" and {len(pods) - MAX_PODS_NAMED} more" if len(pods) > MAX_PODS_NAMED else ""
    verb = "failed"
    if event is not JobEvent.POD_FAILED:
        verb = f"{'was' if len(pods) == 1 else 'were'} deleted, and not by the job controller"
    return f"{messages.pods(len(pods))} {verb}: {', '.join(named)}{more}."
