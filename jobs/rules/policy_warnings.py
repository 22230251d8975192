"""Lifecycle policies that are accepted but can never act, or surely do not do what was meant.

Sources: reference: volcano-job §3.1 to §3.5; seed: Job API, Task/Job lifecycle policies. A task's
policy handles events of that task's pods; a job's policy handles what no policy of a task does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from cluster.rules.pod import templates
from jobs.rules import policies
from kube import lenient
from kube.kinds.batch import Action, JobEvent
from kube.kinds.pod import RestartPolicy
from kube.meta import parse_duration

MAX_EXIT_CODE = 255
OF_TASKS = (
    JobEvent.POD_FAILED,
    JobEvent.POD_EVICTED,
    JobEvent.POD_PENDING,
    JobEvent.TASK_COMPLETED,
    JobEvent.TASK_FAILED,
)
_AFTER_SUCCESS: dict[str, str] = {
    Action.RESTART_JOB: "the job starts again",
    Action.RESTART_TASK: "the task starts again",
    Action.RESTART_POD: "a pod starts again",
    Action.RESTART_PARTITION: "a partition starts again",
    Action.ABORT_JOB: "the job is suspended",
    Action.TERMINATE_JOB: "the job is terminated",
}
RESTARTS = (Action.RESTART_JOB, Action.RESTART_TASK, Action.RESTART_POD, Action.RESTART_PARTITION)
TARGETED = RESTARTS[1:]


class PolicyAt(NamedTuple):
    """A policy: its path, the tasks whose events it gets, whether it is a task's own, and the job's maxRetry."""

    policy: Any
    path: str
    tasks: Sequence[Any]
    is_task: bool
    max_retry: int | None

    @property
    def action(self) -> str:
        return lenient.text(self.policy, "action")

    @property
    def events(self) -> list[str]:
        return policies.events_of(self.policy)

    @property
    def exit_code(self) -> int | None:
        return lenient.whole(self.policy, "exitCode")

    def at(self, event: str) -> str:
        """Return the path of one of its events."""
        return policies.path_of(self.policy, self.path, event)


def of_job(spec: dict[str, Any]) -> Iterator[str]:
    """Yield warnings about the policies of a job and of its tasks, each as `path: sentence`."""
    tasks = lenient.sequence(spec, "tasks")
    max_retry = lenient.whole(spec, "maxRetry")
    for number, task in enumerate(tasks):
        own = lenient.sequence(task, "policies")
        yield from _of_list(own, f"spec.tasks[{number}].policies", [task], max_retry, is_task=True)
    listed = lenient.sequence(spec, "policies")
    yield from _of_list(listed, "spec.policies", tasks, max_retry, is_task=False)
    # The tasks' policies come first (reference: volcano-job §3.4).
    for number, policy in enumerate(listed):
        written = PolicyAt(policy, f"spec.policies[{number}]", tasks, False, max_retry)
        for event in written.events:
            if event in OF_TASKS and _all(written, partial(_handles, event=event)):
                yield f"{written.at(event)}: never acts, because policies of every task answer {event} first; remove one of them."
        code = written.exit_code
        if code is not None and _all(written, partial(_handles, event=JobEvent.POD_FAILED, exit_code=code)):
            yield f"{written.path}.exitCode: never acts, because policies of every task answer such a pod first; remove one of them."


def asks(spec: dict[str, Any], action: Action) -> bool:
    """Tell whether a policy of a job or of one of its tasks has an action."""
    owners = [spec, *lenient.sequence(spec, "tasks")]
    listed = (policy for owner in owners for policy in lenient.sequence(owner, "policies"))
    return any(lenient.text(policy, "action") == action for policy in listed)


def _of_list(
    listed: list[Any], path: str, tasks: Sequence[Any], max_retry: int | None, *, is_task: bool
) -> Iterator[str]:
    handles_failures = ""
    for number, policy in enumerate(listed):
        written = PolicyAt(policy, f"{path}[{number}]", tasks, is_task, max_retry)
        yield from _of_events(written)
        yield from _of_action(written)
        yield from _exit_codes(written)
        if handles_failures and written.exit_code is not None:
            yield (
                f"{written.path}.exitCode: never acts, because {handles_failures} stands before it and answers "
                "every failed pod; put this policy first."
            )
        if not handles_failures and {JobEvent.POD_FAILED, JobEvent.ANY} & set(written.events):
            handles_failures = written.path


def _of_events(written: PolicyAt) -> Iterator[str]:
    events = written.events
    if JobEvent.JOB_UPDATED in events:
        yield f"{written.at(JobEvent.JOB_UPDATED)}: JobUpdated never happens, so nothing follows from it; remove it."
    if JobEvent.UNKNOWN in events and written.is_task:
        yield (
            f"{written.at(JobEvent.UNKNOWN)}: Unknown is about the pod group of the whole job and reaches no "
            "policy of a task; move the policy to spec.policies."
        )
    if JobEvent.UNKNOWN in events and not written.is_task and written.action in TARGETED:
        yield (
            f"{written.path}.action: Unknown is about the whole job and names no pod, so {written.action} "
            "restarts none; use RestartJob."
        )
    if JobEvent.POD_PENDING in events and not _waits(written.policy):
        yield (
            f"{written.at(JobEvent.POD_PENDING)}: PodPending acts only after a timeout; add how long a pod may "
            "wait, such as timeout: 10m."
        )
    if JobEvent.TASK_FAILED in events and _all(written, _stays_ended):
        yield (
            f"{written.at(JobEvent.TASK_FAILED)}: TaskFailed counts restarts of containers, and with restartPolicy "
            "Never there are none; use PodFailed, or restartPolicy OnFailure."
        )
    runs_forever = _all(written, lambda task: templates.forever(lenient.mapping(task, "template")))
    if JobEvent.TASK_COMPLETED in events and runs_forever:
        yield (
            f"{written.at(JobEvent.TASK_COMPLETED)}: the containers of {_names(written.tasks)} start again whenever "
            "they end (restartPolicy Always), so no pod succeeds; use OnFailure or Never."
        )
    follows = _AFTER_SUCCESS.get(written.action)
    if follows and JobEvent.ANY in events and not runs_forever:
        what = "the task" if written.is_task or len(written.tasks) == 1 else "a task"
        yield (
            f"{written.at(JobEvent.ANY)}: * includes TaskCompleted, so {follows} also when {what} has completed; "
            "name the events that are meant, such as PodFailed and PodEvicted."
        )


def _of_action(written: PolicyAt) -> Iterator[str]:
    if (_delay_ms(written.policy) or 0) < 0:
        yield f"{written.path}.timeout: is negative, and so none; leave it out or make it positive."
    if written.action == Action.RESUME_JOB:
        yield (
            f"{written.path}.action: ResumeJob changes nothing while the job runs; remove the policy, a suspended "
            "job is resumed on its page or by a Command."
        )
    without = [task for task in written.tasks if not lenient.mapping(task, "partitionPolicy")]
    if without and written.action == Action.RESTART_PARTITION:
        yield (
            f"{written.path}.action: pods of {_names(without)} are in no partition, so nothing restarts there; "
            "give a partitionPolicy or use RestartPod or RestartTask."
        )
    if written.max_retry == 1 and written.action in RESTARTS:
        yield (
            f"{written.path}.action: with maxRetry 1 the first restart ends the job as Failed; "
            "set spec.maxRetry to 2 or more."
        )


def _exit_codes(written: PolicyAt) -> Iterator[str]:
    code = written.exit_code
    if code is None:
        return
    if not 0 <= code <= MAX_EXIT_CODE:
        yield (
            f"{written.path}.exitCode: no process ends with {code}, exit codes are 1 to {MAX_EXIT_CODE} "
            "(128 and the number of the signal for a signal)."
        )
    elif code and _all(written, _starts_again):
        yield (
            f"{written.path}.exitCode: containers of {_names(written.tasks)} that fail start again in their pods, so "
            "no pod fails by an exit code; use restartPolicy Never."
        )


def _handles(task: Any, event: str, exit_code: int | None = None) -> bool:
    for policy in lenient.sequence(task, "policies"):
        handled = policies.events_of(policy)
        is_handled = event in handled or JobEvent.ANY in handled
        if is_handled and (event != JobEvent.POD_PENDING or _waits(policy)):
            return True
        if exit_code is not None and lenient.whole(policy, "exitCode") == exit_code:
            return True
    return False


def _delay_ms(policy: Any) -> int | None:
    """Return a policy's timeout in ms; None if missing or invalid."""
    try:
        return parse_duration(lenient.text(policy, "timeout"))
    except ValueError:
        return None


def _waits(policy: Any) -> bool:
    return (_delay_ms(policy) or 0) > 0


def _all(written: PolicyAt, holds: Callable[[Any], bool]) -> bool:
    return bool(written.tasks) and all(holds(task) for task in written.tasks)


def _stays_ended(task: Any) -> bool:
    pod = lenient.mapping(task, "template", "spec")
    restarting = (lenient.text(each, "restartPolicy") for each in lenient.sequence(pod, "initContainers"))
    return lenient.text(pod, "restartPolicy") == RestartPolicy.NEVER and RestartPolicy.ALWAYS not in restarting


def _starts_again(task: Any) -> bool:
    pod = lenient.mapping(task, "template", "spec")
    # A pod past this deadline fails, whatever its restart policy.
    return lenient.text(pod, "restartPolicy") != RestartPolicy.NEVER and pod.get("activeDeadlineSeconds") is None


def _names(tasks: Sequence[Any]) -> str:
    names = [lenient.text(task, "name") or "the task" for task in tasks]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
