"""The rules for a list of lifecycle policies (reference: volcano-job §7.3, policy list rules)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kube import lenient
from kube.errors import Cause, duplicate, forbidden, invalid, not_supported, required
from kube.kinds.batch import Action, JobEvent

ALLOWED_EVENTS = tuple(
    event for event in JobEvent if event not in (JobEvent.POD_RUNNING, JobEvent.OUT_OF_SYNC, JobEvent.COMMAND_ISSUED)
)
ALLOWED_ACTIONS = (
    Action.ABORT_JOB,
    Action.RESTART_JOB,
    Action.RESTART_TASK,
    Action.RESTART_POD,
    Action.RESTART_PARTITION,
    Action.TERMINATE_JOB,
    Action.COMPLETE_JOB,
    Action.RESUME_JOB,
)


def check(policies: list[Any], path: str) -> list[Cause]:
    """Return everything wrong with a job's or a task's policies."""
    causes: list[Cause] = []
    answered: set[str] = set()
    exit_codes: set[int] = set()
    for number, policy in enumerate(policies):
        here, events, exit_code = f"{path}[{number}]", events_of(policy), lenient.whole(policy, "exitCode")
        causes += _check_one(policy, here, events, exit_code)
        causes += [duplicate(path_of(policy, here, event), event) for event in events if event in answered]
        answered.update(events)
        if exit_code is not None and exit_code in exit_codes:
            cause = duplicate(f"{here}.exitCode", exit_code)
            causes.append(cause._replace(message=f"{cause.message}: duplicate exitCode; one policy answers it"))
        if exit_code is not None:
            exit_codes.add(exit_code)
    if JobEvent.ANY in answered and len(answered) > 1:
        causes.append(
            forbidden(path, "if there's * here, no other policy should be here; keep * or name each event on its own.")
        )
    return causes


def _check_one(policy: Any, path: str, events: list[str], exit_code: int | None) -> Iterator[Cause]:
    action = lenient.text(policy, "action")
    if events and exit_code is not None:
        yield forbidden(
            path, "a policy must not specify event and exitCode simultaneously; write two policies, one for each."
        )
    if not events and exit_code is None:
        yield required(path, "either event and exitCode should be specified; add the event that the action answers.")
    for event in events:
        if event not in ALLOWED_EVENTS:
            yield not_supported(path_of(policy, path, event), event, ALLOWED_EVENTS)
    # Policies for exit codes need an action as well (reference: volcano-job §10, Q-16).
    if not action:
        yield required(f"{path}.action", f"invalid policy action; choose one of {', '.join(ALLOWED_ACTIONS)}.")
    elif action not in ALLOWED_ACTIONS:
        cause = not_supported(f"{path}.action", action, ALLOWED_ACTIONS)
        yield cause._replace(message=f"{cause.message}: invalid policy action")
    if exit_code == 0:
        yield invalid(f"{path}.exitCode", 0, "0 is not a valid error code; a container that ends with 0 succeeded.")


def events_of(policy: Any) -> list[str]:
    """Return the events of a policy: `event` and `events` together, each once."""
    event = lenient.text(policy, "event")
    listed = [event] if event else []
    return list(dict.fromkeys([*listed, *lenient.texts(policy, "events")]))


def path_of(policy: Any, path: str, event: str) -> str:
    """Return the path of an event of the policy at path: `event`, its item of `events`, or else path."""
    if lenient.text(policy, "event") == event:
        return f"{path}.event"
    listed = lenient.sequence(policy, "events")
    return f"{path}.events[{listed.index(event)}]" if event in listed else path
