"""What a job's lifecycle policies will do, in sentences, from the stored job alone.

A sentence is true if the policy acts at all; what keeps it from acting is shown below it, in the words
of `jobs.rules.policy_warnings`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jobs.lifecycle import retries
from jobs.rules import policies, policy_warnings, words
from kube import lenient
from kube.kinds.batch import JobEvent
from kube.meta import Object

# A delayed action for these is cancelled if the pod runs by then (reference: volcano-job §3.5).
_UNTIL_IT_RUNS = {JobEvent.POD_PENDING, JobEvent.POD_FAILED, JobEvent.POD_EVICTED}


@dataclass(frozen=True, slots=True)
class Sentence:
    """A policy: `when` and `then` make a sentence, `names` are the API's names, `doubts` why it will not act."""

    when: str
    then: str
    names: str
    doubts: tuple[str, ...] = ()


def of_job(job: Object) -> list[Sentence]:
    """Return a sentence for each policy of a stored job; those of tasks first, as they take precedence."""
    spec = lenient.mapping(job, "spec")
    doubts = [text.split(": ", 1) for text in policy_warnings.of_job(spec)]
    owners = [(f"spec.tasks[{number}]", task) for number, task in enumerate(lenient.sequence(spec, "tasks"))]
    sentences = []
    for owner_path, owner in [*owners, ("spec", spec)]:
        for index, policy in enumerate(lenient.sequence(owner, "policies")):
            path = f"{owner_path}.policies[{index}]"
            own = tuple(
                f"{text[:1].upper()}{text[1:]}"
                for where, text in doubts
                if where.startswith(f"{path}.") or where == path
            )
            events, code = policies.events_of(policy), lenient.whole(policy, "exitCode")
            action, timeout = lenient.text(policy, "action"), lenient.text(policy, "timeout")
            then = words.action(action)
            if timeout:
                unless = ", unless the pod runs by then" if set(events) <= _UNTIL_IT_RUNS else ""
                then = f"after {timeout}, {then}{unless}"
            answered = [*events, *([f"exitCode {code}"] if code is not None else [])]
            when = _when(events, code, {} if owner is spec else owner)
            sentences.append(Sentence(when, then, f"{', '.join(answered)} → {action}", own))
    return sentences


def restarts(job: Object) -> str:
    """Return how many restarts are used up; "" if no policy restarts the job and it never was."""
    spec = lenient.mapping(job, "spec")
    used, most = lenient.whole(job, "status", "retryCount") or 0, lenient.whole(spec, "maxRetry") or 0
    if not used and not any(policy_warnings.asks(spec, action) for action in policy_warnings.RESTARTS):
        return ""
    if used and used >= most:
        return f"{retries.used(used, most)}; instead of restart {used} the job failed."
    return f"{retries.used(used, most)}; with restart {most} the job fails instead."


def _when(events: list[str], code: int | None, task: Any) -> str:
    name, limit = lenient.text(task, "name"), lenient.whole(task, "maxRetry")
    clauses = [
        words.event(event, name) + (f" ({limit} times)" if event == JobEvent.TASK_FAILED and limit else "")
        for event in events
    ]
    if code is not None:
        clauses.append(f"{words.event(JobEvent.POD_FAILED, name)} with exit code {code}")
    return f"When {' or '.join(clauses)}"
