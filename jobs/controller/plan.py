"""What must be written so that a job's pods, pod group and status are as they should be.

`reconcile` reads a job and everything made for it (`observed.Reading`), decides, and returns writes (`round.Round`); it does nothing by
itself. Asked again after its writes were carried out, it returns nothing. A large job is brought about in several rounds: no round makes or
deletes more pods than it has room for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from cluster.writes import Delete, Update, Write
from jobs.controller import plugin_objects, pod_diff, status
from jobs.controller.facts import GroupFact, JobFact, PodFact
from jobs.controller.job_events import about
from jobs.controller.observed import ObservedJob, Reading, World
from jobs.controller.pod_diff import PodDiff
from jobs.controller.requests import Request, pods_named, together
from jobs.controller.round import Round
from jobs.lifecycle import causes, dependencies, messages, phases, requester
from jobs.lifecycle.causes import MOST_FAILURES, Causes
from jobs.lifecycle.phases import Decision, PhaseRule, Procedure, Step
from jobs.lifecycle.situation import Situation
from jobs.plugins.contract import KeyPair
from kube import events, pod_health
from kube.kinds.batch import Action, JobPhase
from kube.resources import COMMANDS, JOBS

MOST_EXIT_CODES = 32  # that a status lists
ROOM = 1000  # pods made or deleted in one round: a transaction of about a tenth of a second
_EVENT_REASONS = {  # reason → that of the event
    phases.UNSCHEDULABLE: "PodGroupPending",
    "FailedCreate": "FailedCreate",
    "PluginBlocked": "PluginError",
    phases.TASK_DEADLOCK: phases.TASK_DEADLOCK,
}
_UNHAPPY = (JobPhase.FAILED, JobPhase.TERMINATED, JobPhase.ABORTED)


class Outcome(NamedTuple):
    """The writes, all or none to be carried out, and whether to ask again when they have been.

    `refused` says that pods are missing which the namespace's bounds do not let exist. `waiting` are the requests that
    the writes do not carry out: they are to be made again. With the writes, pod group and plugin objects are `in_step` with
    this version of the job. `is_unreported`: its first status was left out.
    """

    writes: list[Write]
    again: bool = False
    refused: bool = False
    waiting: Sequence[Request] = ()
    in_step: bool = False
    is_unreported: bool = False


class Verdict(NamedTuple):
    """What a procedure comes to: the phase that is decided, and what else changes in the status."""

    decision: Decision
    changes: dict[str, Any]


def lacks_pods(observed: ObservedJob) -> bool:
    """Say whether a job may be given pods: before it is, the account of its namespace has to have counted them."""
    return observed.group is not None and observed.group.is_admitted and pod_diff.lacks(observed.job, observed.pods)


def lacks_keys(observed: ObservedJob) -> bool:
    """Return whether a job lacks its key pair; then `reconcile` needs a new one."""
    return plugin_objects.lacks_keys(observed.job, observed.plugin_objects)


def reconcile(
    observed: ObservedJob,
    world: World,
    now: int,
    *,
    requests: Sequence[Request] = (),
    keys: KeyPair | None = None,
    room: int = ROOM,
    is_large_batch: bool = False,
) -> Outcome:
    """Return what brings a job one step further: the first of what is requested, or else what its spec says.

    In a large batch of jobs that come at once, a new one is not told that it waits for its queue: that is likely to
    be over before anybody could read it.
    """
    # A job that no controller has seen is Pending first.
    current = () if observed.job.is_new else together(requests)
    reading = Reading.of(observed, world, current)
    round_ = Round(reading, now, room, keys)
    verdict = _kill_part(reading, round_)
    if verdict is not None:
        _write_status(reading, round_, verdict)
        return Outcome(round_.writes, again=True, waiting=requests, in_step=round_.in_step)
    _take_requests(reading, round_)
    is_idle = bool(current) and (observed.job.is_finished or current[0].action is None)
    if not (is_idle or observed.job.deleting):
        verdict = _PROCEDURES[reading.step.procedure](reading, round_)
    is_unreported = is_large_batch and verdict is not None and _is_first_wait(observed.job, verdict.decision)
    if verdict is not None and not is_unreported:
        _write_status(reading, round_, verdict)
    again, postponed = round_.again or bool(current), requests[len(current) :]
    return Outcome(round_.writes, again, bool(round_.refusal), postponed, round_.in_step, is_unreported)


def _take_requests(reading: Reading, round_: Round) -> None:
    """Say which requests are heeded, and delete the Commands that made them."""
    for request in reading.requests:
        command = request.source
        if command is not None:
            round_.writes.append(Delete(COMMANDS, command.namespace, command.name, uid=command.uid))
        kind = events.WARNING if request.action is None else events.NORMAL
        round_.send_event(request.reason, request.why, kind, request.firing)


def _sync(reading: Reading, round_: Round) -> Verdict:
    """Bring group, plugin objects and pods in line with the spec, then decide (reference: volcano-job §2.4)."""
    job, rules = reading.job, reading.step.rules
    if not job.is_new and any(rule.phase in phases.FINISHED for rule in rules):
        decision = _decide(reading, round_, rules)
        if decision.phase in phases.FINISHED:
            # What still runs ends in the same round; a job without retries left makes no pods (§10, Q-19).
            changes = round_.end_run(_ending(reading.own, phases.SOFT), "the job is over")
            return Verdict(decision, changes | _duration(job, decision, round_.now))
    round_.bring_in_step()
    round_.delete_pods(reading.diff.leftovers.values(), "they belong to a run that was ended")
    if reading.is_admitted:
        if not reading.blocked:
            round_.make_pods()
        round_.delete_pods(reading.diff.surplus, "they are more than the job's replicas", is_surplus=True)
    round_.again = round_.room == 0
    return Verdict(_decide(reading, round_, rules), {"runningDuration": None})


def _kill(reading: Reading, round_: Round) -> Verdict:
    """End the pods that are not to be retained, which stay counted (§10, Q-1), then decide (reference: volcano-job §2.2)."""
    job, step = reading.job, reading.step
    changes = round_.end_run(_ending(reading.own, _retained(job, step)), step.why)
    decision = _decide(reading, round_, step.rules, is_admitted=True)
    return Verdict(decision, changes | _duration(job, decision, round_.now) | _retry(job, step))


def _kill_target(reading: Reading, round_: Round) -> Verdict | None:
    """End the pods that are requested to end and keep the pod group, then decide (reference: volcano-job §2.3).

    A partition without pods changes nothing; a task or a pod that is not there restarts the job all the same.
    """
    job, step = reading.job, reading.step
    named = pods_named(reading.requests, job, reading.own)
    if not named and all(request.action is Action.RESTART_PARTITION for request in reading.requests):
        return None
    round_.delete_pods(_ending(named, _retained(job, step)), step.why)
    return Verdict(_decide(reading, round_, step.rules, is_admitted=True), _retry(job, step))


def _kill_part(reading: Reading, round_: Round) -> Verdict | None:
    """End some of the pods that are requested to end if they are more than there is room for; None if they are not.

    The phase stays: it changes with the last of them.
    """
    job, step = reading.job, reading.step
    if step.procedure is not Procedure.KILL_TARGET or job.deleting:
        return None
    ending = _ending(pods_named(reading.requests, job, reading.own), _retained(job, step))
    if len(ending) <= round_.room:
        return None
    round_.delete_pods(ending, step.why)
    return Verdict(_decide(reading, round_, phases.UNCHANGED, is_admitted=True), {})


_PROCEDURES = {Procedure.SYNC: _sync, Procedure.KILL: _kill, Procedure.KILL_TARGET: _kill_target}


def _retained(job: JobFact, step: Step) -> Collection[str]:
    """Return the phases of the pods that stay; those that ended do when no other run follows, for their logs."""
    is_last = job.retry_count + step.is_retry >= job.max_retry
    return phases.SOFT if is_last and step.why == phases.AGAIN else step.retain


def _ending(pods: Iterable[PodFact], retain: Collection[str]) -> list[PodFact]:
    """Return the pods that are to be deleted: those that nobody has deleted yet, but for the phases to retain."""
    return [pod for pod in pods if not pod.deleting and pod.phase not in retain]


def _retry(job: JobFact, step: Step) -> dict[str, Any]:
    """Return the changes of a status by which a step counts as a retry."""
    return {"retryCount": job.retry_count + 1} if step.is_retry else {}


def _duration(job: JobFact, decision: Decision, now: int) -> dict[str, Any]:
    """Return how long the job took when its pods are ended, from its creation to this phase (§2.2, step 9)."""
    return {"runningDuration": status.running_duration(job, now)} if decision.phase != job.phase else {}


def _decide(
    reading: Reading, round_: Round, rules: tuple[PhaseRule, ...], *, is_admitted: bool | None = None
) -> Decision:
    """Return the phase that follows by some rules. is_admitted: whether the gang may be taken for admitted, if not as it is."""
    situation = _situation(reading, round_, is_admitted=reading.is_admitted if is_admitted is None else is_admitted)
    if reading.job.is_new and not situation.admitted:
        # Every job is Pending first, also one that needs no pod to be Running: that follows at once.
        round_.again |= rules[0].when(situation)
        return phases.decide(JobPhase.PENDING, rules[1:], situation)
    return phases.decide(reading.job.phase, rules, situation)


def _situation(reading: Reading, round_: Round, *, is_admitted: bool) -> Situation:
    job, diff, group = reading.job, reading.diff, reading.observed.group
    tasks = {task.name: task for task in job.tasks}
    deadlock = dependencies.deadlock(job.tasks, job.dependencies, job.min_available)
    return Situation(
        tasks=job.tasks,
        counts=round_.counts,
        min_available=job.min_available,
        min_success=job.min_success,
        by=reading.by,
        retry_count=job.retry_count,
        max_retry=job.max_retry,
        admitted=is_admitted,
        waiting=group.waiting if group else "",
        failures=tuple(pod.how_failed for pod in diff.failed[:MOST_FAILURES]),
        obstacles=tuple(pod.obstacle for pod in diff.stuck[:MOST_FAILURES] if pod.obstacle is not None),
        stuck_pods=len(diff.stuck),
        obstacles_before=causes.in_status(job.status) if job.phase in phases.STOPPING else Causes(),
        foreign_names=tuple(diff.foreign),
        waiting_tasks=tuple(dependencies.waiting_tasks(job.dependencies, tasks, diff.named, diff.ready)),
        deadlock=f"{deadlock.why}; set minAvailable to {deadlock.enough}" if deadlock is not None else "",
        blocked=reading.blocked,
        refused=round_.refusal,
    )


def _is_first_wait(job: JobFact, decision: Decision) -> bool:
    """Tell whether all that a new job is to be told is that it waits for its queue."""
    return job.is_new and decision.reason == phases.WAITING_FOR_QUEUE


def _write_status(reading: Reading, round_: Round, verdict: Verdict) -> None:
    """Write the status that follows from a verdict if it is another one, with the event that people read of it."""
    job, decision, changes = reading.job, verdict.decision, dict(verdict.changes)
    if job.is_new:
        changes["controlledResources"] = status.controlled_resources(job, round_.whole) or None
    changes |= _searched(job, reading.observed.group, reading.diff, decision) | _while_ending(reading, round_, decision)
    wanted = status.status_after(job, decision, round_.counts, round_.now, **changes)
    if wanted == job.status:
        return
    before = (job.status.get("state") or {}).get("reason")
    if decision.phase != job.phase:
        # What holds in the next phase may lead further at once, unless the job has come to run and has no more to say.
        following = None
        if decision.phase is JobPhase.RUNNING:
            situation = _situation(reading, round_, is_admitted=reading.is_admitted)
            following = phases.decide(decision.phase, phases.RUNNING_RULES, situation)
        round_.again |= following != decision
        kind = events.WARNING if decision.phase in _UNHAPPY else events.NORMAL
        round_.send_event(decision.reason, f"{decision.phase}: {decision.text.whole}", kind)
    elif decision.reason in _EVENT_REASONS and decision.reason != before:
        round_.send_event(_EVENT_REASONS[decision.reason], decision.text.whole, events.WARNING)
    round_.writes.append(Update(JOBS, {**about(job), "status": wanted}, "status"))


def _while_ending(reading: Reading, round_: Round, decision: Decision) -> dict[str, Any]:
    """Return what a status holds while the job ends its pods, for the message of the end: later nobody knows it.

    That is who asked for it, and what kept pods from running when it began.
    """
    if decision.phase not in phases.STOPPING:
        return {requester.FIELD: None}
    obstacles = causes.in_status(reading.job.status)
    if decision.phase != reading.job.phase:
        obstacles = messages.obstacles(_situation(reading, round_, is_admitted=reading.is_admitted))
    return {requester.FIELD: requester.written(reading.by), causes.FIELD: causes.written(obstacles)}


def _searched(job: JobFact, group: GroupFact | None, diff: PodDiff, decision: Decision) -> dict[str, Any]:
    """Return the fields of a status by which jobs are searched: why a job waits, and how its pods ended."""
    codes = sorted({code for pod in diff.failed for code in pod.exit_codes})
    why = group.waiting_reason if group and decision.reason == phases.UNSCHEDULABLE else ""
    if decision.reason == pod_health.PODS_KEPT:
        why = Counter(pod.obstacle.obstacle for pod in diff.stuck if pod.obstacle is not None).most_common(1)[0][0]
    changes: dict[str, Any] = {"waitingReason": why or None}
    if decision.reason:
        changes[causes.FIELD] = causes.written(decision.text.causes)
    # Pods that a job which is over does without have ended all the same.
    if codes or job.phase not in phases.FINISHED:
        changes["exitCodes"] = codes[:MOST_EXIT_CODES] or None
    return changes
