"""What a job's lifecycle policies will do, in sentences: only what is stored in the job.

A sentence is true as long as the policy acts at all; what keeps it from acting stands below it, in the words
of `jobs.rules.policy_warnings`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from jobs.lifecycle import retries
from jobs.rules import policies, policy_warnings, words
from kube import lenient
from kube.kinds.batch import JobEvent
from kube.meta import Object

# A delayed answer to these is called off when the pod runs by then (reference: volcano-job §3.5).
_UNTIL_IT_RUNS = {JobEvent.POD_PENDING, JobEvent.POD_FAILED, JobEvent.POD_EVICTED}


@dataclass(frozen=True, slots=True)
class Sentence:
    """A policy: `when` and `then` make a sentence, `names` are the API's names, `doubts` why it will not act."""

    when: str
    then: str
    names: str
    doubts: tuple[str, ...] = ()


def of_job(job: Object) -> list[Sentence]:
    """Return a sentence for each policy of a stored job, those of tasks first, as they come first."""
    spec = lenient.mapping(job, "spec")
    doubts = [text.split(": ", 1) for text in policy_warnings.of_job(spec)]
    found = []
    for path, task, policy in _policies(spec):
        own = tuple(_capital(said) for where, said in doubts if where.startswith(f"{path}.") or where == path)
        found.append(Sentence(_when(policy, task), _then(policy), _names(policy), own))
    return found


def restarts(job: Object) -> str:
    """Say how many restarts are used up; empty for a job that no policy restarts and that never was."""
    spec = lenient.mapping(job, "spec")
    used, most = lenient.whole(job, "status", "retryCount") or 0, lenient.whole(spec, "maxRetry") or 0
    if not used and not any(policy_warnings.asks(spec, action) for action in policy_warnings.RESTARTS):
        return ""
    if used and used >= most:
        return f"{retries.used(used, most)}; instead of restart {used} the job failed."
    return f"{retries.used(used, most)}; with restart {most} the job fails instead."


def _policies(spec: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], Any]]:
    """Yield each policy with its path and its task, which is empty for the job's."""
    for number, task in enumerate(lenient.sequence(spec, "tasks")):
        for index, policy in enumerate(lenient.sequence(task, "policies")):
            yield f"spec.tasks[{number}].policies[{index}]", task, policy
    for index, policy in enumerate(lenient.sequence(spec, "policies")):
        yield f"spec.policies[{index}]", {}, policy


def _when(policy: Any, task: dict[str, Any]) -> str:
    name, code = lenient.text(task, "name"), lenient.whole(policy, "exitCode")
    clauses = [_event(event, task) for event in policies.events_of(policy)]
    if code is not None:
        clauses.append(f"{words.event(JobEvent.POD_FAILED, name)} with exit code {code}")
    return f"When {' or '.join(clauses)}"


def _event(event: str, task: dict[str, Any]) -> str:
    said = words.event(event, lenient.text(task, "name"))
    limit = lenient.whole(task, "maxRetry")
    return f"{said} ({limit} times)" if event == JobEvent.TASK_FAILED and limit else said


def _then(policy: Any) -> str:
    action, timeout = words.action(lenient.text(policy, "action")), lenient.text(policy, "timeout")
    if not timeout:
        return action
    unless = ", unless the pod runs by then" if set(policies.events_of(policy)) <= _UNTIL_IT_RUNS else ""
    return f"after {timeout}, {action}{unless}"


def _names(policy: Any) -> str:
    code = lenient.whole(policy, "exitCode")
    answered = [*policies.events_of(policy), *([f"exitCode {code}"] if code is not None else [])]
    return f"{', '.join(answered)} → {lenient.text(policy, 'action')}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
