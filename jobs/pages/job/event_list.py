"""What happened to a job, from stored and recorded events, and what its policies are still to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cluster.consumers import consumer
from cluster.store import Stored, store
from jobs.controller import pending_actions
from jobs.history import record
from jobs.history.record import History
from jobs.lifecycle.reading import PodGroup
from jobs.rules import words
from kube.kinds.core import Event
from kube.resources import EVENTS, JOBS

MAX_EVENTS = 200
UNSCHEDULABLE = "Unschedulable"  # as Volcano's scheduler calls it


@dataclass(frozen=True, slots=True)
class Delayed:
    """A delayed action as an instruction, when it is due in ms, and the sentence on why."""

    instruction: str
    due: int
    why: str


def of_job(job: Stored, history: History) -> list[Event]:
    """Return the newest events about the job itself."""
    stored_events = store.find(EVENTS, namespace=job.namespace, owner=job.uid, order="-created", limit=MAX_EVENTS)
    events = record.events(history) | {stored.name: stored.read(Event) for stored in stored_events}
    return [event for event in events.values() if event.involved_object.kind == JOBS.kind]


def unschedulable_message(group: PodGroup | None) -> str:
    """Return why a pod group is not placed, from its newest event that says so; "" if none does.

    For a group that is not admitted to its queue, Volcano's scheduler writes only events, some of type Normal. One of
    them counts the gang's pods (0/0), of which there are none yet: it says nothing and is skipped.
    """
    if group is None:
        return ""
    stored_events = store.find(EVENTS, owner=group.metadata.uid, order="-revision", limit=MAX_EVENTS)
    unschedulable = [
        event
        for event in (each.read(Event) for each in stored_events)
        if event.reason == UNSCHEDULABLE and not event.message.startswith("0/0 ")
    ]
    return max(unschedulable, key=lambda event: event.last_seen).message if unschedulable else ""


def everything(job: Stored, history: History, tasks: Sequence[str], *, is_deleted: bool) -> list[Event]:
    """Return the newest events of a job, its group and its pods, newest first; `tasks` are the names of its tasks."""
    # An event's name begins with that of its object, and those of a job's objects with the job's.
    stored_events = store.find(EVENTS, namespace=job.namespace, text=job.name, order="-created", limit=4 * MAX_EVENTS)
    living = {stored.name: stored.read(Event) for stored in stored_events}
    pods = () if is_deleted else tuple(f"{job.name}-{task}-" for task in tasks)
    ours = {}
    for name, event in living.items():
        about = event.involved_object
        if about.kind == JOBS.kind:
            is_ours = about.uid == job.uid if about.uid else about.name == job.name
        elif about.kind == "PodGroup":
            is_ours = about.name == f"{job.name}-{job.uid}"
        else:  # a job of the same name may have pods by now; the record has the deleted job's
            is_ours = about.kind == "Pod" and about.name.startswith(pods)
        if is_ours:
            ours[name] = event
    events = (record.events(history) | ours).values()
    return sorted(events, key=lambda event: event.last_seen, reverse=True)[:MAX_EVENTS]


def delayed_of(stored: Stored) -> list[Delayed]:
    """Return the delayed actions of a job's policies that nothing has cancelled, the next one first."""
    timers = consumer.timers_for("jobs", pending_actions.PENDING_ACTION, stored.key)
    waiting = [each for timer in timers for each in pending_actions.read(timer)]
    delayed = [
        Delayed(words.ACTION_WORDS[each.action].description, each.due, each.why)
        for each in waiting
        if each.delay_ms and each.uid == stored.uid and each.action in words.ACTION_WORDS
    ]
    return sorted(delayed, key=lambda each: each.due)
