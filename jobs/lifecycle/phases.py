"""What a job does in each phase, and which phase comes next, as tables.

`STEPS` maps a phase and a requested action to a step (reference: volcano-job §2.6): bring the pods in line with the spec
(SYNC) or end them (KILL), then try the rules in order; the first that holds decides the phase with its reason and
message. An action that is not in the phase's row gets its SyncJob step, as in Volcano. `TRANSITIONS` lists the allowed
changes of phase (reference: volcano-job §2.5, §2.7); a rule that makes another one is a defect and raises ValueError.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from jobs.lifecycle import messages
from jobs.lifecycle.messages import Text
from jobs.lifecycle.situation import Situation
from kube import pod_health
from kube.kinds.batch import Action, JobPhase
from kube.kinds.pod import ENDED

RUNS = (JobPhase.PENDING, JobPhase.RUNNING, JobPhase.RESTARTING)  # the job is not being ended for good
FINISHED = frozenset({JobPhase.COMPLETED, JobPhase.FAILED, JobPhase.TERMINATED})
DELETED = "Deleted"  # shown as the phase of a job that was deleted
WAITING_FOR_QUEUE = "WaitingForQueue"  # the reason of a job whose pod group is not admitted yet
UNSCHEDULABLE = "Unschedulable"  # the reason of a job whose pod group cannot be placed
TASK_DEADLOCK = "TaskDeadlock"  # the reason of a job whose gang needs pods that are made only once it runs
RETRIES_USED_UP = "RetriesUsedUp"  # the reason of a job that failed instead of restarting once more
SOFT = frozenset(ENDED)  # phases of the pods that a kill leaves for their logs


class PhaseRule(NamedTuple):
    """When the rule holds, the job enters `phase`, or keeps its phase (None), with a reason and a text."""

    when: Callable[[Situation], bool]
    phase: JobPhase | None
    reason: str
    text: Callable[[Situation], Text]


class Decision(NamedTuple):
    """The next phase, and why; an empty reason leaves the status' reason and message as they are."""

    phase: JobPhase
    reason: str
    text: Text


class Procedure(Enum):
    """What is done to the pods before the rules are tried."""

    SYNC = "sync"
    KILL = "kill"
    KILL_TARGET = "kill target"  # only the pods that the action is about; the pod group stays


class Step(NamedTuple):
    """What an action does in a phase."""

    procedure: Procedure
    rules: tuple[PhaseRule, ...]
    retain: frozenset[str] = frozenset()  # phases of pods that a kill leaves
    why: str = "the job is over"  # why the pods end, for their event
    is_retry: bool = False


def always(_: Situation) -> bool:
    """Hold in every situation: the last rule of a list."""
    return True


PENDING_RULES = (
    PhaseRule(
        lambda s: s.min_available <= s.counts.started,
        JobPhase.RUNNING,
        "PodsRunning",  # the same reason as in RUNNING_RULES, so that it is reported once
        messages.progress,
    ),
    PhaseRule(lambda s: bool(s.blocked), None, "PluginBlocked", messages.plugin_blocked),
    PhaseRule(lambda s: bool(s.refused), None, "FailedCreate", messages.refused),
    # Before the scheduler's reason: it only counts missing pods, and here it is known why they are missing.
    PhaseRule(lambda s: bool(s.waiting_tasks and s.deadlock), None, TASK_DEADLOCK, messages.deadlock),
    PhaseRule(lambda s: not s.admitted and not s.waiting, None, WAITING_FOR_QUEUE, messages.waiting_for_queue),
    PhaseRule(lambda s: bool(s.waiting), None, UNSCHEDULABLE, messages.unschedulable),
    PhaseRule(lambda s: bool(s.foreign_names), None, "NamesTaken", messages.names_taken),
    PhaseRule(lambda s: bool(s.obstacles), None, pod_health.PODS_KEPT, messages.obstacle_summary),
    PhaseRule(lambda s: bool(s.waiting_tasks), None, "WaitingForTasks", messages.waiting_for_tasks),
    PhaseRule(always, None, "WaitingForPods", messages.progress),
)

RUNNING_RULES = (
    PhaseRule(lambda s: s.replicas == 0, None, "NoReplicas", messages.no_replicas),
    PhaseRule(
        lambda s: s.min_success is not None and s.counts.succeeded >= s.min_success,
        JobPhase.COMPLETED,
        "MinSuccessReached",
        messages.min_success_reached,
    ),
    PhaseRule(
        lambda s: s.all_ended and s.short_task is not None,
        JobPhase.FAILED,
        "TaskMinimumMissed",
        messages.task_minimum_missed,
    ),
    PhaseRule(
        lambda s: s.all_ended and s.min_success is not None,
        JobPhase.FAILED,
        "MinSuccessMissed",
        messages.min_success_missed,
    ),
    PhaseRule(
        lambda s: s.all_ended and s.counts.succeeded >= s.min_available,
        JobPhase.COMPLETED,
        "AllPodsEnded",
        messages.outcome,
    ),
    PhaseRule(lambda s: s.all_ended, JobPhase.FAILED, "TooFewSucceeded", messages.outcome),
    PhaseRule(
        lambda s: s.counts.pending + s.pods_outside > s.replicas - s.min_available,
        JobPhase.PENDING,
        "TooManyPending",
        messages.progress,
    ),
    PhaseRule(lambda s: bool(s.blocked), None, "PluginBlocked", messages.plugin_blocked),
    PhaseRule(lambda s: bool(s.refused), None, "FailedCreate", messages.refused),
    PhaseRule(lambda s: bool(s.obstacles), None, pod_health.PODS_KEPT, messages.obstacle_summary),
    PhaseRule(lambda s: bool(s.waiting_tasks), None, "WaitingForTasks", messages.waiting_for_tasks),
    PhaseRule(always, None, "PodsRunning", messages.progress),
)

RESTARTING_RULES = (
    PhaseRule(lambda s: s.retry_count >= s.max_retry, JobPhase.FAILED, RETRIES_USED_UP, messages.retries_used_up),
    PhaseRule(
        lambda s: s.replicas - s.counts.terminating >= s.min_available,
        JobPhase.PENDING,
        "Restarted",
        messages.restarted,
    ),
    PhaseRule(always, None, "WaitingForPodsToEnd", messages.restarting),
)

UNCHANGED = (PhaseRule(always, None, "", lambda _: Text("")),)


def _is_over(s: Situation) -> bool:
    return not (s.counts.terminating or s.counts.pending or s.counts.running)


def _until_ended(what: str, *ended: PhaseRule) -> tuple[PhaseRule, ...]:
    """Return the rules of a phase that only waits for its pods to end (AliveEval); `what` is done to the job: `Suspended`."""
    return (*ended, PhaseRule(always, None, "WaitingForPodsToEnd", messages.ending(what)))


def _kill(
    phase: JobPhase,
    reason: str,
    text: Callable[[Situation], Text],
    why: str,
    *,
    retain: frozenset[str] = SOFT,
    is_retry: bool = False,
) -> Step:
    """Return the step that ends all pods and always enters `phase`."""
    return Step(Procedure.KILL, (PhaseRule(always, phase, reason, text),), retain, why, is_retry)


_SUSPENDED, AGAIN = "the job is suspended", "the job starts again"
RESTART = _kill(JobPhase.RESTARTING, "RestartRequested", messages.restarting, AGAIN, retain=frozenset(), is_retry=True)
RESTART_TARGET = RESTART._replace(procedure=Procedure.KILL_TARGET)
# Resuming uses no retry, and keeps no pod of the previous run (reference: volcano-job §10, Q-7, Q-22).
RESUME = _kill(JobPhase.RESTARTING, "Resumed", messages.resuming, AGAIN, retain=frozenset())
# A restarting job ignores what an action asks for and only ends its pods once more (reference: volcano-job §10, Q-13).
RESTART_ANEW = Step(Procedure.KILL, RESTARTING_RULES, why=AGAIN)
_ALIVE = {
    Action.RESTART_JOB: RESTART,
    Action.RESTART_TASK: RESTART_TARGET,
    Action.RESTART_POD: RESTART_TARGET,
    Action.RESTART_PARTITION: RESTART_TARGET,
    Action.ABORT_JOB: _kill(JobPhase.ABORTING, "AbortRequested", messages.ending("Suspended"), _SUSPENDED),
    Action.TERMINATE_JOB: _kill(
        JobPhase.TERMINATING, "TerminateRequested", messages.ending("Terminated"), "the job is terminated"
    ),
    Action.COMPLETE_JOB: _kill(
        JobPhase.COMPLETING, "CompleteRequested", messages.ending("Completed"), "the job is completed"
    ),
}
_WHOLE = (Action.RESTART_JOB, Action.ABORT_JOB, Action.TERMINATE_JOB, Action.COMPLETE_JOB, Action.RESUME_JOB)
TARGETED = (Action.RESTART_TASK, Action.RESTART_POD, Action.RESTART_PARTITION)
OF_JOBS = frozenset({*_WHOLE, *TARGETED, Action.SYNC_JOB, Action.ENQUEUE_JOB})

STEPS: dict[JobPhase, dict[Action, Step]] = {
    JobPhase.PENDING: {Action.SYNC_JOB: Step(Procedure.SYNC, PENDING_RULES), **_ALIVE},
    JobPhase.RUNNING: {Action.SYNC_JOB: Step(Procedure.SYNC, RUNNING_RULES), **_ALIVE},
    JobPhase.RESTARTING: {
        Action.SYNC_JOB: Step(Procedure.SYNC, RESTARTING_RULES),
        **dict.fromkeys(_WHOLE, RESTART_ANEW),
        **dict.fromkeys(TARGETED, Step(Procedure.KILL_TARGET, RESTARTING_RULES, why=AGAIN)),
    },
    JobPhase.ABORTING: {
        Action.SYNC_JOB: Step(
            Procedure.KILL,
            _until_ended("Suspended", PhaseRule(_is_over, JobPhase.ABORTED, "Aborted", messages.aborted)),
            SOFT,
            _SUSPENDED,
        ),
        Action.RESUME_JOB: RESUME,
    },
    JobPhase.ABORTED: {Action.SYNC_JOB: Step(Procedure.KILL, UNCHANGED, SOFT, _SUSPENDED), Action.RESUME_JOB: RESUME},
    JobPhase.COMPLETING: {
        Action.SYNC_JOB: Step(
            Procedure.KILL,
            _until_ended(
                "Completed",
                PhaseRule(
                    lambda s: _is_over(s) and s.by is not None and s.by.is_policy,
                    JobPhase.COMPLETED,
                    "CompletedByPolicy",
                    messages.completed,
                ),
                PhaseRule(_is_over, JobPhase.COMPLETED, "CompletedOnRequest", messages.completed),
            ),
            SOFT,
        )
    },
    JobPhase.COMPLETED: {Action.SYNC_JOB: Step(Procedure.KILL, UNCHANGED, SOFT)},
    JobPhase.TERMINATING: {
        Action.SYNC_JOB: Step(
            Procedure.KILL,
            _until_ended("Terminated", PhaseRule(_is_over, JobPhase.TERMINATED, "Terminated", messages.terminated)),
            SOFT,
        )
    },
    JobPhase.TERMINATED: {Action.SYNC_JOB: Step(Procedure.KILL, UNCHANGED, SOFT)},
    JobPhase.FAILED: {Action.SYNC_JOB: Step(Procedure.KILL, UNCHANGED, SOFT)},
}

STOPPING = {JobPhase.RESTARTING, JobPhase.ABORTING, JobPhase.COMPLETING, JobPhase.TERMINATING}
TRANSITIONS: dict[JobPhase, frozenset[JobPhase]] = {
    JobPhase.PENDING: frozenset({JobPhase.RUNNING, *STOPPING}),
    JobPhase.RUNNING: frozenset({JobPhase.PENDING, JobPhase.COMPLETED, JobPhase.FAILED, *STOPPING}),
    JobPhase.RESTARTING: frozenset({JobPhase.PENDING, JobPhase.FAILED}),
    JobPhase.ABORTING: frozenset({JobPhase.ABORTED, JobPhase.RESTARTING}),
    JobPhase.ABORTED: frozenset({JobPhase.RESTARTING}),
    JobPhase.COMPLETING: frozenset({JobPhase.COMPLETED}),
    JobPhase.TERMINATING: frozenset({JobPhase.TERMINATED}),
    **dict.fromkeys(FINISHED, frozenset()),
}


def phase_of(written: str) -> JobPhase:
    """Return the phase of a status; an empty or unknown one is Pending (reference: volcano-job §2.1)."""
    try:
        return JobPhase(written)
    except ValueError:
        return JobPhase.PENDING


def step_for(phase: JobPhase, action: Action = Action.SYNC_JOB) -> Step:
    """Return the step of an action in a phase: that of SyncJob if the action has none."""
    row = STEPS[phase]
    return row.get(action, row[Action.SYNC_JOB])


def action_of(written: str) -> Action | None:
    """Return a Command's action; None if it is not an action of a job."""
    try:
        action = Action(written)
    except ValueError:
        return None
    return action if action in OF_JOBS else None


def decide(phase: JobPhase, rules: tuple[PhaseRule, ...], situation: Situation) -> Decision:
    """Return the decision of the first rule that holds; raise ValueError if TRANSITIONS does not allow it."""
    rule = next(rule for rule in rules if rule.when(situation))
    following = rule.phase or phase
    if following != phase and following not in TRANSITIONS[phase]:
        raise ValueError(f"A job cannot go from {phase} to {following} ({rule.reason}).")
    return Decision(following, rule.reason, rule.text(situation))
