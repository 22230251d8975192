"""How the job controller reacts to what happened: it sends events, and remembers what policies ask for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from cluster.store import Change, Create, Group, store
from cluster.writes import Timer
from jobs.consumers.state import JobsState, readable
from jobs.controller import facts, job_events, pending_actions, pod_events, policy_engine
from jobs.controller.facts import JobFact, PodFact
from jobs.controller.pod_events import PodEvent
from jobs.controller.policy_engine import PolicyActions
from jobs.controller.requests import EXECUTED
from jobs.lifecycle.policy_firings import PolicyFiring
from kube import events
from kube.kinds.batch import JobEvent
from kube.kinds.scheduling import PodGroupPhase
from kube.resources import EVENTS, JOBS, POD_GROUPS, PODS


class PolicyEvents(NamedTuple):
    """Events for people, each in a group of its own, and timers that hold the actions policies ask for.

    The events are sent even while the job waits for its last writes, and when its plan cannot be written.
    """

    groups: list[Group]
    timers: list[Timer]


def handle(state: JobsState, changes: Sequence[Change], now: int) -> PolicyEvents:
    """Handle what happened to pods and pod groups in these changes; set the pending actions of their jobs in the state."""
    happened = _events_by_job(state, changes)
    jobs = {key: entry.observed.job for key in happened if (entry := state.entries.get(key)) is not None}
    unknown = [key for key in happened if key not in jobs]
    jobs |= {job.key: job for job in readable(store.by_keys(JOBS, unknown).values())}
    outcome = PolicyEvents([], [])
    for key, job in jobs.items():
        concerned = [each for each in happened[key] if pod_events.concerns(each, job)]
        # One event of each kind names all the pods that it happened to.
        by_event: dict[JobEvent, list[PodFact]] = {}
        for event, pod in concerned:
            if event in pod_events.REPORTED:
                by_event.setdefault(event, []).append(pod)
        for event, pods in by_event.items():
            outcome.groups.append(_event(job, event, pod_events.event_text(event, pods), now, events.WARNING))
        if key in state.entries:
            actions = policy_engine.to_pods(
                job, state.entries[key].observed.pods.values(), state.pending_actions.get(key, ()), concerned, now
            )
            _remember(state, job, actions, outcome, now)
    for key in _with_unknown_group(state, changes):
        job = state.entries[key].observed.job
        _remember(state, job, policy_engine.to_group(job, state.pending_actions.get(key, ()), now), outcome, now)
    return outcome


def _event(job: JobFact, reason: str, message: str, now: int, kind: str, firing: PolicyFiring | None = None) -> Group:
    return Group([Create(EVENTS, job_events.event(job, reason, message, now, kind=kind, firing=firing))])


def _remember(state: JobsState, job: JobFact, actions: PolicyActions, outcome: PolicyEvents, now: int) -> None:
    """Note a job's pending actions; its timer holds all of them, whatever becomes of its plan."""
    if actions.pending_actions == state.pending_actions.get(job.key, ()):
        return
    state.set_pending_actions(job.key, actions.pending_actions)
    state.touched[job.key] = None
    outcome.timers.extend(pending_actions.timers(job.key, actions.pending_actions, now))
    outcome.groups.extend(_event(job, EXECUTED, each.why, now, events.NORMAL, each.firing) for each in actions.delayed)


def _events_by_job(state: JobsState, changes: Sequence[Change]) -> dict[str, list[PodEvent]]:
    """Return what happened to pods of this shard's jobs, by job key."""
    by_job: dict[str, list[PodEvent]] = {}
    # The pod events that have an effect: for most jobs most of them have none.
    heeded = {*pod_events.REPORTED, *state.heeded, *((JobEvent.POD_RUNNING,) if state.pending_actions else ())}
    sought = pod_events.marks(heeded)
    for change in changes:
        is_deleted = change.verb == "DELETED"
        if change.resource != PODS.id or not pod_events.is_worth_a_look(change.body, sought, is_deleted=is_deleted):
            continue
        try:
            key, pod = facts.read_pod(change.body)
            before = None if is_deleted or change.previous is None else facts.read_pod(change.previous)[1]
        except msgspec.ValidationError:
            continue  # `apply` has logged it
        event = pod_events.happened(before, pod, is_deleted=is_deleted)
        if key and event is not None and state.holds(key):
            by_job.setdefault(key, []).append(PodEvent(event, pod))
    return by_job


def _with_unknown_group(state: JobsState, changes: Sequence[Change]) -> list[str]:
    """Return the keys of jobs whose pod group became Unknown."""
    keys = []
    for change in changes:
        if change.resource != POD_GROUPS.id or change.verb == "DELETED" or change.previous is None:
            continue
        if _UNKNOWN not in change.body:
            continue
        try:
            before, group = facts.read_group(change.previous), facts.read_group(change.body)
        except msgspec.ValidationError:
            continue
        entry = state.entries.get(group.job)
        became_unknown = group.phase == PodGroupPhase.UNKNOWN and before.phase != group.phase
        if became_unknown and entry is not None and group.owner == entry.observed.job.uid:
            keys.append(group.job)
    return keys


_UNKNOWN = f'"{PodGroupPhase.UNKNOWN}"'.encode()
