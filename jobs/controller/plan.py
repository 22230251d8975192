"""Which writes bring a job's pods, pod group and status to what its spec says.

`reconcile` reads a job and everything made for it (`observed.Reading`), decides, and returns writes (`round.Round`); it
has no effect itself. Called again after its writes were carried out, it returns nothing. A large job takes several
rounds: no round creates or deletes more pods than `room`.
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
from jobs.lifecycle.causes import MAX_FAILURES, Causes
from jobs.lifecycle.phases import Decision, PhaseRule, Procedure, Step
from jobs.lifecycle.situation import Situation
from jobs.plugins.contract import KeyPair
from kube import events, pod_health
from kube.kinds.batch import Action, JobPhase
from kube.resources import COMMANDS, JOBS

MAX_EXIT_CODES = 32  # that a status lists
ROOM = 1000  # pods created or deleted in one round: a transaction of about a tenth of a second
_EVENT_REASONS = {  # reason → that of the event
    phases.UNSCHEDULABLE: "PodGroupPending",
    "FailedCreate": "FailedCreate",
    "PluginBlocked": "PluginError",
    phases.TASK_DEADLOCK: phases.TASK_DEADLOCK,
}
_UNHAPPY = (JobPhase.FAILED, JobPhase.TERMINATED, JobPhase.ABORTED)


class Outcome(NamedTuple):
    """The writes, to be carried out all or none, and whether to plan the job again (`again`) after them.

    `refused`: limit ranges or quotas do not allow some of the missing pods. `waiting`: the requests that the writes do
    not carry out, to be made again. `in_step`: after the writes, pod group and plugin objects match this version of the
    job. `is_unreported`: its first status was left out.
    """

    writes: list[Write]
    again: bool = False
    refused: bool = False
    waiting: Sequence[Request] = ()
    in_step: bool = False
    is_unreported: bool = False


class Verdict(NamedTuple):
    """The result of a procedure: the decided phase, and what else changes in the status."""

    decision: Decision
    changes: dict[str, Any]


def lacks_pods(observed: ObservedJob) -> bool:
    """Tell whether a job may get pods now: then `reconcile` needs its namespace's account with the existing pods counted."""
    return observed.group is not None and observed.group.is_admitted and pod_diff.lacks(observed.job, observed.pods)


def lacks_keys(observed: ObservedJob) -> bool:
    """Tell whether a job lacks its key pair; then `reconcile` needs a new one."""
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
    """Return the outcome that takes a job one step further: by the first of the requests, or else by its spec.

    In a large batch of jobs the first status of a new job, that it waits for its queue, is left out: it is likely to be
    outdated before anybody reads it.
    """
    # A new job becomes Pending before it heeds requests.
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
    """Send an event for each request of this round, and delete the Commands that made them."""
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
            # The rest of its pods end in the same round; a job without retries left makes no pods (§10, Q-19).
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
    """End the pods except retained ones, which stay counted (§10, Q-1), then decide (reference: volcano-job §2.2)."""
    job, step = reading.job, reading.step
    changes = round_.end_run(_ending(reading.own, _retained(job, step)), step.why)
    decision = _decide(reading, round_, step.rules, is_admitted=True)
    return Verdict(decision, changes | _duration(job, decision, round_.now) | _retry(job, step))


def _kill_target(reading: Reading, round_: Round) -> Verdict | None:
    """End the pods that the requests name and keep the pod group, then decide (reference: volcano-job §2.3).

    Return None, for no change, if the requests only name partitions without pods; a missing task or pod restarts the
    job all the same.
    """
    job, step = reading.job, reading.step
    named = pods_named(reading.requests, job, reading.own)
    if not named and all(request.action is Action.RESTART_PARTITION for request in reading.requests):
        return None
    round_.delete_pods(_ending(named, _retained(job, step)), step.why)
    return Verdict(_decide(reading, round_, step.rules, is_admitted=True), _retry(job, step))


def _kill_part(reading: Reading, round_: Round) -> Verdict | None:
    """End as many of the pods that the requests name as there is room for; None if there is room for all of them.

    The phase does not change until the round that ends the last of them.
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
    """Return the phases of the pods to retain; if no other run follows, those that ended stay for their logs."""
    is_last = job.retry_count + step.is_retry >= job.max_retry
    return phases.SOFT if is_last and step.why == phases.AGAIN else step.retain


def _ending(pods: Iterable[PodFact], retain: Collection[str]) -> list[PodFact]:
    """Return the pods to delete: those not being deleted yet and not in a phase to retain."""
    return [pod for pod in pods if not pod.deleting and pod.phase not in retain]


def _retry(job: JobFact, step: Step) -> dict[str, Any]:
    """Return the status change of a step that counts as a retry, {} for other steps."""
    return {"retryCount": job.retry_count + 1} if step.is_retry else {}


def _duration(job: JobFact, decision: Decision, now: int) -> dict[str, Any]:
    """Return the status change with the time from the job's creation to this phase, {} if the phase stays (§2.2, step 9)."""
    return {"runningDuration": status.running_duration(job, now)} if decision.phase != job.phase else {}


def _decide(
    reading: Reading, round_: Round, rules: tuple[PhaseRule, ...], *, is_admitted: bool | None = None
) -> Decision:
    """Return the phase that follows by `rules`; `is_admitted` overrides whether the pod group is admitted (None: as read)."""
    situation = _situation(reading, round_, is_admitted=reading.is_admitted if is_admitted is None else is_admitted)
    if reading.job.is_new and not situation.admitted:
        # Every job is Pending first; one that needs no pods becomes Running in the next round.
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
        failures=tuple(pod.how_failed for pod in diff.failed[:MAX_FAILURES]),
        obstacles=tuple(pod.obstacle for pod in diff.stuck[:MAX_FAILURES] if pod.obstacle is not None),
        stuck_pods=len(diff.stuck),
        obstacles_before=causes.in_status(job.status) if job.phase in phases.STOPPING else Causes(),
        foreign_names=tuple(diff.foreign),
        waiting_tasks=tuple(dependencies.waiting_tasks(job.dependencies, tasks, diff.named, diff.ready)),
        deadlock=f"{deadlock.why}; set minAvailable to {deadlock.enough}" if deadlock is not None else "",
        blocked=reading.blocked,
        refused=round_.refusal,
    )


def _is_first_wait(job: JobFact, decision: Decision) -> bool:
    """Tell whether the status of a new job would only say that it waits for its queue."""
    return job.is_new and decision.reason == phases.WAITING_FOR_QUEUE


def _write_status(reading: Reading, round_: Round, verdict: Verdict) -> None:
    """Write the status that follows from a verdict, and its event, if the status changes."""
    job, decision, changes = reading.job, verdict.decision, dict(verdict.changes)
    if job.is_new:
        changes["controlledResources"] = status.controlled_resources(job, round_.whole) or None
    changes |= _searched(job, reading.observed.group, reading.diff, decision) | _while_ending(reading, round_, decision)
    wanted = status.status_after(job, decision, round_.counts, round_.now, **changes)
    if wanted == job.status:
        return
    before = (job.status.get("state") or {}).get("reason")
    if decision.phase != job.phase:
        # The rules of the new phase may apply at once, so plan again, unless Running would stay as it is.
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
    """Return the status fields that keep, while the job ends its pods, what its last message needs.

    That is who asked for it, and what kept pods from running when it began; it cannot be found out later.
    """
    if decision.phase not in phases.STOPPING:
        return {requester.FIELD: None}
    obstacles = causes.in_status(reading.job.status)
    if decision.phase != reading.job.phase:
        obstacles = messages.obstacles(_situation(reading, round_, is_admitted=reading.is_admitted))
    return {requester.FIELD: requester.written(reading.by), causes.FIELD: causes.written(obstacles)}


def _searched(job: JobFact, group: GroupFact | None, diff: PodDiff, decision: Decision) -> dict[str, Any]:
    """Return the status fields that jobs are searched by: why the job waits, and how its pods ended."""
    codes = sorted({code for pod in diff.failed for code in pod.exit_codes})
    why = group.waiting_reason if group and decision.reason == phases.UNSCHEDULABLE else ""
    if decision.reason == pod_health.PODS_KEPT:
        why = Counter(pod.obstacle.obstacle for pod in diff.stuck if pod.obstacle is not None).most_common(1)[0][0]
    changes: dict[str, Any] = {"waitingReason": why or None}
    if decision.reason:
        changes[causes.FIELD] = causes.written(decision.text.causes)
    # A finished job keeps its exit codes when its failed pods are gone.
    if codes or job.phase not in phases.FINISHED:
        changes["exitCodes"] = codes[:MAX_EXIT_CODES] or None
    return changes
