"""The messages in a job's status: sentences with numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from jobs.lifecycle import causes, retries
from jobs.lifecycle.causes import Causes
from jobs.lifecycle.requester import Requester
from jobs.lifecycle.situation import Situation
from kube.kinds.batch import Action


class Text(NamedTuple):
    """The text of a job's status: a summary, and why pods failed or do not run.

    `next` is what is still to happen, or what somebody has to do; "" for nothing.
    """

    summary: str
    next: str = ""
    causes: Causes = Causes()
    is_cause_last: bool = False

    @property
    def message(self) -> str:
        """The causes and the summary; the causes mostly come first, since a list may show only the beginning."""
        why = self.causes.sentence
        return " ".join(filter(None, (self.summary, why) if self.is_cause_last else (why, self.summary)))

    @property
    def whole(self) -> str:
        """The message followed by `next`."""
        return f"{self.message} {self.next}".rstrip()


def pods(number: int) -> str:
    """Return a number of pods in words: `1 pod`, `2 pods`."""
    return f"{number} pod" if number == 1 else f"{number} pods"


def are(number: int, total: int) -> str:
    """Return how many of the pods, with a verb: `1 of 4 pods is`, `2 of 4 pods are`, `0 of 1 pod is`."""
    return f"{number} of {pods(total)} {'is' if 1 in (number, total) else 'are'}"


def progress(s: Situation) -> Text:
    """Say how many pods are in which state."""
    return Text(_progress(s))


def _progress(s: Situation) -> str:
    """`2 of 4 pods are running, 1 succeeded; minAvailable is 4.`"""
    counts = s.counts
    numbers = {
        "pending": counts.pending if s.running else 0,
        "succeeded": counts.succeeded,
        "failed": counts.failed,
        "on a node that does not answer": counts.unknown,
        "being deleted": counts.terminating,
    }
    others = [f"{number} {what}" for what, number in numbers.items() if number]
    parts = [f"{are(s.running, s.replicas)} running", *others]
    return f"{', '.join(parts)}; minAvailable is {s.min_available}."


def waiting_for_queue(s: Situation) -> Text:
    """Say that the job waits for admission to its queue."""
    return Text(f"Waiting for the scheduler to admit the job's {pods(s.min_available)} to the queue.")


def unschedulable(s: Situation) -> Text:
    """Give the scheduler's explanation, then the numbers: where space is short, the end is cut."""
    return Text(f"{s.waiting} {are(s.running, s.replicas)} running; minAvailable is {s.min_available}.")


def refused(s: Situation) -> Text:
    """Give the refusal, and say whether all of the job's pods are refused or only more of them."""
    if s.counts.pending or s.counts.started:
        return Text(f"{_progress(s)} More are not made: {s.refused}.")
    return Text(f"Waiting until the job's {pods(s.min_available)} may be made together: {s.refused}.")


def obstacle_summary(s: Situation) -> Text:
    """Say what keeps pods from running, and the numbers: `Crash-looping, exit 1 · a-0. 0 of 2 pods are running; …`"""
    return Text(_progress(s), causes=obstacles(s))


def obstacles(s: Situation) -> Causes:
    """Return what keeps pods from running."""
    return causes.summed_up(s.obstacles, s.stuck_pods - len(s.obstacles))


def plugin_blocked(s: Situation) -> Text:
    """Name an object that a plugin cannot make because another owner's object has its name."""
    return Text(
        f"{_progress(s)} {s.blocked[0]} has a name that a plugin of this job needs, and belongs to something else; "
        "delete it, or submit the job under another name."
    )


def names_taken(s: Situation) -> Text:
    """Name another owner's pod that has the name of a pod of the job."""
    return Text(
        f"{_progress(s)} Pod {s.foreign_names[0]} has the name of a pod of this job and belongs to something else; delete it."
    )


def waiting_for_tasks(s: Situation) -> Text:
    """Name the tasks without pods and those that they wait for, and say so if these can no longer become ready."""
    listed = "; ".join(s.waiting_tasks)
    text = f"{_progress(s)} {listed[0].upper()}{listed[1:]}."
    counts = s.counts
    if counts.pending or counts.running or counts.unknown or counts.terminating or s.foreign_names:
        return Text(text)
    return Text(f"{text} No pod is left that could become ready: restart the job, or terminate it.")


def deadlock(s: Situation) -> Text:
    """Say that the gang needs pods that are made only once it runs, then the numbers."""
    return Text(f"This can never start: {s.deadlock}. {_progress(s)}")


def no_replicas(_: Situation) -> Text:
    """Say that the job has no pods to run."""
    return Text("Every task has 0 replicas; raise a task's replicas or delete the job.")


def min_success_reached(s: Situation) -> Text:
    """Say how many pods succeeded, and that this was enough."""
    return Text(f"{_succeeded(s)}; minSuccess is {s.min_success}.")


def min_success_missed(s: Situation) -> Text:
    """Say how many pods succeeded, and that this was too few."""
    return Text(f"{_ended(s)}; minSuccess is {s.min_success}.", causes=_failures(s))


def task_minimum_missed(s: Situation) -> Text:
    """Name the task that had too few successes."""
    task = s.short_task
    if task is None:
        return outcome(s)
    succeeded = s.counts.tasks[task.name].get("Succeeded", 0)
    counted = f"{succeeded} of {pods(task.replicas)} of task {task.name} succeeded"
    return Text(f"{counted}; its minAvailable is {task.minimum}.", causes=_failures(s))


def outcome(s: Situation) -> Text:
    """`All 4 pods succeeded.` or `Exit 1 · a-0, a-3. 2 of 4 pods succeeded and 2 failed; minAvailable is 4.`"""
    if s.counts.succeeded == s.replicas:
        return Text("The pod succeeded." if s.replicas == 1 else f"All {pods(s.replicas)} succeeded.")
    return Text(f"{_ended(s)}; minAvailable is {s.min_available}.", causes=_failures(s))


def retries_used_up(s: Situation) -> Text:
    """Say that the job failed because its retries are used up."""
    restarted = f"The job was restarted {retries.times(s.retry_count, s.max_retry)}"
    summary = f"{restarted}; instead of restart {s.retry_count} it failed, as maxRetry is {s.max_retry}."
    return Text(summary, causes=_failures(s))


def restarted(s: Situation) -> Text:
    """Say that another run starts, who asked for it, and how many restarts are used up."""
    used = retries.used(s.retry_count, s.max_retry)
    restarted = _restarted(s)
    return Text(f"{restarted}: {used}." if restarted else f"Starting again; {used}.")


def _restarted(s: Situation) -> str:
    """`Restarted on request, which counts as a retry`; "" if it is not known who asked for a restart."""
    if s.by is None or s.by.action is Action.RESUME_JOB:
        return ""
    return f"Restarted {_clause(s.by)}{'' if s.by.is_policy else ', which counts as a retry'}"


def _clause(by: Requester) -> str:
    """`on request`, `by its policy TaskCompleted → CompleteJob (ps)`, `by its policy exitCode 3 → RestartJob`"""
    if not by.is_policy:
        return "on request"
    answered = by.event if by.exit_code is None else f"exitCode {by.exit_code}"
    return f"by its policy {answered} → {by.action}{f' ({by.task})' if by.task else ''}"


def ending(what: str) -> Callable[[Situation], Text]:
    """Return the function whose text says what is done to the job (`Suspended`), who asked for it, and that its pods end."""

    def text(s: Situation) -> Text:
        left = s.counts.terminating + s.counts.pending + s.counts.running
        waiting = f"Waiting for {pods(left)} to end." if left else "No pod is left to end."
        return Text(f"{what} {_clause(s.by)}." if s.by else f"{what}.", waiting)

    return text


def restarting(s: Situation) -> Text:
    """Say who asked for the next run, and what it waits for."""
    if s.by is not None and s.by.action is Action.RESUME_JOB:
        return Text("The job was resumed.", _before_the_next(s))
    return Text(f"{_restarted(s) or 'Restarted'}.", _before_the_next(s))


def resuming(s: Situation) -> Text:
    """Say that a suspended job was resumed."""
    if not s.counts.terminating:
        return Text("The job was resumed and starts again.")
    return Text("The job was resumed.", _before_the_next(s))


def _before_the_next(s: Situation) -> str:
    number = s.counts.terminating
    return f"{pods(number)} {'has' if number == 1 else 'have'} to end before the job starts again."


def aborted(s: Situation) -> Text:
    """Say how far a suspended job had come, and how to resume it."""
    return _ended_with(s, f"suspended{_by_policy(s)}", "Resume it to run it from the start.")


def completed(s: Situation) -> Text:
    """Say how far a job had come when it was completed, and by whom."""
    return _ended_with(s, f"completed{f' {_clause(s.by)}' if s.by else ''}")


def terminated(s: Situation) -> Text:
    """Say how far a job had come when it was terminated."""
    return _ended_with(s, f"terminated{_by_policy(s)}")


def _ended_with(s: Situation, what: str, following: str = "") -> Text:
    summary = f"{_so_far(s)} when the job was {what}."
    return Text(summary, following, _failures(s), is_cause_last=True)


def _by_policy(s: Situation) -> str:
    return f" {_clause(s.by)}" if s.by and s.by.is_policy else ""


def _so_far(s: Situation) -> str:
    """`1 of 4 pods had succeeded and 2 had failed`, `None of 4 pods had ended`"""
    if not s.counts.ended:
        return "The pod had not ended" if s.replicas == 1 else f"None of {pods(s.replicas)} had ended"
    failed = f" and {s.counts.failed} had failed" if s.counts.failed else ""
    return f"{s.counts.succeeded} of {pods(s.replicas)} had succeeded{failed}"


def _succeeded(s: Situation) -> str:
    return f"{s.counts.succeeded} of {pods(s.replicas)} succeeded"


def _ended(s: Situation) -> str:
    return f"{_succeeded(s)} and {s.counts.failed} failed" if s.counts.failed else _succeeded(s)


def _failures(s: Situation) -> Causes:
    """Return how pods failed; if none did, what kept them from running."""
    summed_up = causes.summed_up(s.failures, max(s.counts.failed - len(s.failures), 0))
    return summed_up if summed_up.groups else s.obstacles_before
