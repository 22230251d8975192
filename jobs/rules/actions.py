"""The actions on jobs: one table for pages, bulk operations and API.

A row of `ACTIONS` says which permission an action needs, what it sends, in which phases it applies, and its words. The
phases in which a Command has an effect follow from `jobs.lifecycle.phases`. `effect` tells beforehand what an action
will do; `verdict` tells its result, judged by the job as it is and not by what was sent.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from jobs.lifecycle.phases import FINISHED, RESTART_ANEW, RETRIES_USED_UP, STEPS
from jobs.lifecycle.reading import Job
from kube.kinds.batch import Action as Order
from kube.kinds.batch import JobPhase
from kube.resources import COMMANDS, JOBS, Resource

TIME_LIMIT_MS = 30_000  # for an action to take effect; after that its result is TIMED_OUT


class Result(StrEnum):
    """The result of an action on one job; the values are shown to people."""

    WAITING = "Not begun"
    ASKED = "Asked"  # accepted, and not yet in effect
    DONE = "Done"
    SKIPPED = "Skipped"  # the job is in a phase in which the action does not apply
    REFUSED = "Refused"  # not permitted, or against a rule
    GONE = "Gone"  # the job was deleted before
    TIMED_OUT = "Timed out"
    STOPPED = "Not asked"  # because the bulk operation was stopped before


OPEN = (Result.WAITING, Result.ASKED)
KEEP, GO_ON = "Leave it as it is", "Let it go on"


class Verdict(NamedTuple):
    """A result, and why; "" if that is plain."""

    result: Result
    why: str = ""


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that can be done with a job.

    verb and resource are the permission that it needs. order is the Command that it
    sends, None for a write to the job itself. phases are those in which it applies;
    None means all. target is the phase that it leads to, "" if there is none.
    """

    name: str
    label: str  # of its button
    icon: str
    infinitive: str  # "you may not suspend jobs"
    participle: str  # "… jobs can be suspended"
    verb: str
    resource: Resource = JOBS
    order: Order | None = None
    phases: frozenset[str] | None = None
    target: str = ""
    keep: str = KEEP  # the label of the button that cancels
    is_bulk: bool = True
    on_deleted: bool = False  # also while the job is being deleted


def _command(order: Order, label: str, icon: str, participle: str, *, target: str = "", keep: str = GO_ON) -> Action:
    """Return an action that sends a Command, for the phases that obey it."""
    heeding = (phase for phase, row in STEPS.items() if order in row and row[order] is not RESTART_ANEW)
    return Action(
        name=label.lower(),
        label=label,
        icon=icon,
        infinitive=label.lower(),
        participle=participle,
        verb="create",
        resource=COMMANDS,
        order=order,
        phases=frozenset(map(str, heeding)),
        target=target,
        keep=keep,
    )


_ALIVE = frozenset({str(JobPhase.PENDING), str(JobPhase.RUNNING)})
CLONE = Action("clone", "Run again", "copy", "copy", "copied", "create", is_bulk=False, on_deleted=True)
EDIT = Action("edit", "Edit", "pencil", "change", "changed", "update", is_bulk=False)
SCALE = Action("scale", "Scale", "chevrons-up-down", "scale", "scaled", "update", phases=_ALIVE, is_bulk=False)
SUSPEND = _command(Order.ABORT_JOB, "Suspend", "circle-pause", "suspended", target=JobPhase.ABORTED)
RESUME = _command(Order.RESUME_JOB, "Resume", "circle-play", "resumed", keep=KEEP)
RESTART = _command(Order.RESTART_JOB, "Restart", "rotate-ccw", "restarted")
TERMINATE = _command(Order.TERMINATE_JOB, "Terminate", "circle-stop", "terminated", target=JobPhase.TERMINATED)
COMPLETE = _command(Order.COMPLETE_JOB, "Complete", "circle-check", "completed", target=JobPhase.COMPLETED)
DELETE = Action("delete", "Delete", "trash-2", "delete", "deleted", "delete", keep="Keep it")
ACTIONS = (CLONE, EDIT, SCALE, SUSPEND, RESUME, RESTART, COMPLETE, TERMINATE, DELETE)
BY_NAME = {action.name: action for action in ACTIONS}
BY_ORDER = {action.order: action for action in ACTIONS if action.order is not None}
CONFIRMED = tuple(action for action in ACTIONS if action.order is not None or action is DELETE)
BULK = tuple(action for action in ACTIONS if action.is_bulk)


def problem(action: Action, job: Job) -> str:
    """Say why an action does not apply to a job as it is: `It is Completed; only jobs that are …`; empty if it does."""
    if job.metadata.deletion_timestamp and not action.on_deleted:
        return "It is being deleted."
    if action.phases is None or job.phase in action.phases:
        return ""
    fitting = [str(phase) for phase in JobPhase if phase in action.phases]
    return f"It is {job.phase}; only jobs that are {' or '.join(fitting)} can be {action.participle}."


# What will happen.


class Extent(NamedTuple):
    """The extent of an action: how many jobs, and how many of their pods are desired, running and waiting.

    last_restart counts the jobs that one more restart makes Failed.
    """

    jobs: int = 0
    replicas: int = 0
    running: int = 0
    waiting: int = 0
    last_restart: int = 0


class Retention(NamedTuple):
    """Days for which a deleted job's record and logs are kept; logs 0: gone with the job."""

    history: int
    logs: int


def extent(jobs: Iterable[Job]) -> Extent:
    """Return the extent of an action on these jobs."""
    total = Extent()
    for job in jobs:
        status = job.status
        each = (1, job.replicas, status.running, status.pending, int(status.retry_count + 1 >= job.spec.max_retry))
        total = Extent(*map(sum, zip(total, each, strict=True)))
    return total


def effect(action: Action, about: Extent, retention: Retention) -> list[str]:
    """Return sentences on what an action on jobs will do, and on what is kept of deleted jobs; [] if none."""
    theirs = "its" if about.jobs == 1 else "their"
    running = "No pod runs" if not about.running else f"{_pods(about.running, 'running')} will be stopped"
    waiting = f", and {_pods(about.waiting, 'waiting')} will not start" if about.waiting else ""
    stops = f"{running}{waiting}."
    if action is SUSPEND:
        return [stops, f"The room is free for others. Resumed, {_all_run(about)} from the start."]
    if action is RESUME:
        return [f"{_all_run(about).capitalize()} from the start, once there is room."]
    if action is RESTART and about.jobs == 1:
        if about.last_restart:
            return [stops, "It has no restart left: instead of running again it becomes Failed."]
        return [stops, f"{_all_run(about).capitalize()} again from the start."]
    if action is RESTART:
        failing = f"{about.last_restart:,} of the jobs have no restart left: these become Failed instead."
        return [stops, "The pods run again from the start.", *([failing] if about.last_restart else ())]
    if action in (TERMINATE, COMPLETE):
        jobs = "The job is then" if about.jobs == 1 else f"The {about.jobs:,} jobs are then"
        return [stops, f"{jobs} {action.target} for good; resuming is not possible."]
    if action is DELETE:
        jobs = "The job is" if about.jobs == 1 else f"{about.jobs:,} jobs are"
        removed = f"{jobs} removed with {theirs} {_pods(about.replicas)}."
        logs = f"stays for {_days(retention.logs)}" if retention.logs else "goes with them"
        return [stops, f"{removed} What happened stays for {_days(retention.history)}, what they printed {logs}."]
    return []


def _all_run(about: Extent) -> str:
    return "the one pod runs" if about.replicas == 1 else f"all {_pods(about.replicas)} run"


def _pods(number: int, how: str = "") -> str:
    return f"{number:,} {how + ' ' if how else ''}{'pod' if number == 1 else 'pods'}"


def _days(number: int) -> str:
    return "1 day" if number == 1 else f"{number} days"


# What has happened.


def mark(job: Job) -> int:
    """Return the job's retry count, to be noted for `verdict` when an action is requested."""
    return job.status.retry_count


def verdict(action: Action, job: Job | None, marked: int) -> Verdict | None:
    """Return the result of an action that was accepted, None while it is undecided.

    job is the job as it is now, None if it no longer exists; marked is what
    `mark` returned before the action was requested. Not for CLONE and EDIT, which
    only change the text of a job: they are done once they are accepted.
    """
    if job is None:
        return Verdict(Result.DONE) if action is DELETE else Verdict(Result.GONE, "It was deleted meanwhile.")
    if action is RESTART and job.status.state.reason == RETRIES_USED_UP:
        return Verdict(Result.REFUSED, job.status.state.message)
    if _is_reached(action, job, marked):
        return Verdict(Result.DONE)
    if action.order is not None and job.phase in FINISHED:
        return Verdict(Result.SKIPPED, f"It became {job.phase} before it could be {action.participle}.")
    return None


def _is_reached(action: Action, job: Job, marked: int) -> bool:
    if action is DELETE:
        return False
    if action.target:
        return job.phase == action.target
    if action is RESUME:
        return job.phase not in (JobPhase.ABORTING, JobPhase.ABORTED, JobPhase.RESTARTING)
    if action is RESTART:
        return job.status.retry_count > marked and job.phase != JobPhase.RESTARTING
    return job.phase not in _ALIVE or lacking(job) == 0


def lacking(job: Job) -> int:
    """Return by how many pods the tasks of a job differ from their replicas."""
    counted = job.status.task_status_count
    return sum(
        abs(task.replicas - (sum(counted[task.name].phase.values()) if task.name in counted else 0))
        for task in job.spec.tasks
    )


def overdue(action: Action, job: Job) -> Verdict:
    """Return TIMED_OUT, and why, for an action that took no effect within TIME_LIMIT_MS."""
    text = job.status.state.text
    if job.metadata.deletion_timestamp:
        text = "It is being deleted, and its pods have not ended yet."
    elif action is SCALE:
        text = f"Its pods do not yet match the number wished for, by {lacking(job)}. {text}".strip()
    return Verdict(Result.TIMED_OUT, f"After {TIME_LIMIT_MS // 1000} s it is {job.phase}. {text}".strip())
