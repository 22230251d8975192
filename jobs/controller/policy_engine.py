"""Which actions a job's policies ask for when its pods or pod group change (reference: volcano-job §3.3 to §3.5)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from jobs.controller import pending_actions, pod_events
from jobs.controller.facts import JobFact, PodFact
from jobs.controller.pending_actions import PendingAction
from jobs.controller.pod_events import PodEvent
from jobs.lifecycle.policies import Policy
from jobs.lifecycle.policy_firings import PolicyFiring
from kube import meta
from kube.kinds.batch import Action, JobEvent
from kube.kinds.core import PodPhase

_ENDS_NO_POD = (Action.RESUME_JOB, Action.SYNC_JOB, Action.ENQUEUE_JOB)
OF_TASKS = (JobEvent.TASK_COMPLETED, JobEvent.TASK_FAILED)


class PolicyActions(NamedTuple):
    """A job's pending actions after some events, and the new ones among them that are delayed, for which Events are sent."""

    pending_actions: tuple[PendingAction, ...]
    delayed: tuple[PendingAction, ...] = ()


def to_pods(
    job: JobFact, pods: Collection[PodFact], pending: Sequence[PendingAction], happened: Iterable[PodEvent], now: int
) -> PolicyActions:
    """Return a job's actions after these events, handled in order; `pending` are those before, `pods` the job's pods now."""
    actions, delayed = tuple(pending), list[PendingAction]()
    if not job.heeds_policies:
        return PolicyActions(actions)
    judged: set[tuple[JobEvent, str]] = set()
    for pod_event in happened:
        event, pod = pod_event
        if event is JobEvent.POD_RUNNING:
            actions = pending_actions.runs_again(actions, pod.name)
            continue
        if event in OF_TASKS:
            # An event of a whole task is judged once per task.
            if (event, pod.task) in judged:
                continue
            judged.add((event, pod.task))
        policy = job.policy_for(event, pod.task, pod.exit_codes)
        if policy is None or -1 < pod.version < job.version:
            continue
        if event in OF_TASKS and not pod_events.happened_to_task(pod_event, job, pods):
            continue
        new = _pending_action(job, pod, event, policy, now)
        before, actions = actions, pending_actions.add(actions, new)
        if new.delay_ms and new in actions and new not in before:
            delayed.append(new)
    return PolicyActions(actions, tuple(delayed))


def to_group(job: JobFact, pending: Sequence[PendingAction], now: int) -> PolicyActions:
    """Return a job's actions when its pod group became Unknown: some pods run, and others cannot be placed."""
    policy = job.policy_for(JobEvent.UNKNOWN) if job.heeds_policies else None
    if policy is None:
        return PolicyActions(tuple(pending))
    firing = PolicyFiring(
        event=JobEvent.UNKNOWN,
        what="some of the job's pods run, and there is no room for the others it needs",
        action=policy.action,
        delay_ms=policy.delay_ms,
    )
    new = PendingAction(
        action=policy.action,
        event=JobEvent.UNKNOWN,
        due=now + policy.delay_ms,
        why=firing.sentence,
        firing=firing,
        delay_ms=policy.delay_ms,
        uid=job.uid,
        version=job.version,
    )
    actions = pending_actions.add(pending, new)
    return PolicyActions(actions, (new,) if new.delay_ms and new in actions and new not in pending else ())


class Overdue(NamedTuple):
    """The actions for pods that were Pending for too long, and when to look again (epoch ms; None: no other pod waits)."""

    pending_actions: tuple[PendingAction, ...]
    next: int | None


def to_pending(job: JobFact, pods: Iterable[PodFact], now: int) -> Overdue:
    """Return the actions for pods that have been Pending since their creation for as long as a policy's delay.

    Nothing has to be remembered, since the pod itself shows that it is Pending. An action that would leave the pod as it
    is would be repeated for ever, so it is ignored.
    """
    actions: tuple[PendingAction, ...] = ()
    following: list[int] = []
    if not (job.heeds_policies and JobEvent.POD_PENDING in job.answered):
        return Overdue(actions, None)
    for pod in pods:
        if pod.owner != job.uid or pod.phase != PodPhase.PENDING or not pod.is_in_run or not pod.created:
            continue
        policy = job.policy_for(JobEvent.POD_PENDING, pod.task)
        if policy is None or -1 < pod.version < job.version or policy.action in _ENDS_NO_POD:
            continue
        if policy.action is Action.RESTART_PARTITION and job.partition_of(pod) is None:
            continue
        due = meta.parse_time(pod.created) + policy.delay_ms
        if due > now:
            following.append(due)
        else:
            actions = pending_actions.add(
                actions, replace(_pending_action(job, pod, JobEvent.POD_PENDING, policy, now), delay_ms=0)
            )
    return Overdue(actions, min(following, default=None))


def _pending_action(job: JobFact, pod: PodFact, event: JobEvent, policy: Policy, now: int) -> PendingAction:
    firing = _firing(pod, event, policy)
    return PendingAction(
        action=policy.action,
        event=event,
        due=now + policy.delay_ms,
        why=firing.sentence,
        firing=firing,
        exit_code=policy.exit_code,
        delay_ms=policy.delay_ms,
        uid=job.uid,
        version=job.version,
        task=pod.task,
        pod=pod.name,
        partition=job.partition_of(pod) if policy.action is Action.RESTART_PARTITION else None,
    )


def _firing(pod: PodFact, event: JobEvent, policy: Policy) -> PolicyFiring:
    exit_code = None
    if event is JobEvent.POD_FAILED:
        exit_code = policy.exit_code if policy.exit_code is not None else next(iter(pod.exit_codes), None)
    return PolicyFiring(
        event=event,
        what=_what(event, pod, policy),
        action=policy.action,
        pod="" if event is JobEvent.TASK_COMPLETED else pod.name,
        exit_code=exit_code,
        # A pod that was Pending for as long as its policy says has waited already.
        delay_ms=0 if event is JobEvent.POD_PENDING else policy.delay_ms,
    )


def _what(event: JobEvent, pod: PodFact, policy: Policy) -> str:
    match event:
        case JobEvent.POD_FAILED:
            return pod.failed_with(policy.exit_code)
        case JobEvent.POD_EVICTED:
            return f"{pod.name} was deleted, and not by the job controller"
        case JobEvent.POD_PENDING:
            return f"{pod.name} was Pending for {meta.duration_text(policy.delay_ms)}"
        case JobEvent.TASK_COMPLETED:
            return f"all pods of task {pod.task} succeeded"
        case _:
            return f"containers of task {pod.task} were started again too often, last of {pod.name}"
