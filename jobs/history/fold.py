"""Folding the log of a job into its history: (history, changes) → history.

Folding the whole log or one piece after another gives the same result. The changes must be those of the job, its pod
groups, its pods and the events about these; others are not filtered out. Changes of the job and its groups come in the
order of the log, and before changes of pods with newer revisions; changes of each pod come in their order.

A run begins with a pod group that no run has (`jobs.controller.plan` makes a new one after all pods were ended, and
keeps it when only some were). It ends with the change of the job that raises status.version or enters a phase in which
no pod runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import msgspec
from msgspec.structs import replace

from jobs.history.record import EventRecord, History, Phase, PodSpan, Run, Stretch
from jobs.lifecycle import policy_firings
from jobs.lifecycle.progress import ENDING, STOPPED
from jobs.lifecycle.reading import INDEX, TASK, Job, Metadata, Pod, PodGroup, moment
from kube.kinds.batch import JobPhase
from kube.kinds.core import Event
from kube.resources import EVENTS, JOBS, POD_GROUPS, PODS

MAX_STRETCHES = 50  # of one pod
MAX_EVENTS = 200
LET_IN = ("Inqueue", "Running")
_STORED_ANNOTATIONS = (TASK, INDEX)


class Change(Protocol):
    """The part of a row of the log that a history needs."""

    @property
    def revision(self) -> int: ...
    @property
    def resource(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def uid(self) -> str: ...
    @property
    def verb(self) -> str: ...
    @property
    def at(self) -> int: ...
    @property
    def body(self) -> bytes: ...


_jobs = msgspec.json.Decoder(Job)
_groups = msgspec.json.Decoder(PodGroup)
_pods = msgspec.json.Decoder(Pod)
_events = msgspec.json.Decoder(Event)


def fold(history: History, changes: Iterable[Change]) -> History:
    """Return the history after these changes; `history` itself is not changed."""
    draft = _Draft(history)
    hear = {JOBS.id: draft.job, POD_GROUPS.id: draft.group, PODS.id: draft.pod, EVENTS.id: draft.event}
    for change in changes:
        hear[change.resource](change)
    return draft.result()


class _Draft:
    """A history that is being folded; its lists and dicts are copies."""

    def __init__(self, history: History) -> None:
        self.version = history.version
        self.phases = list(history.phases)
        self.runs = list(history.runs)
        self.pods = [dict(run.pods) for run in history.runs]
        self.events = dict(history.events)

    def result(self) -> History:
        runs = [replace(run, pods=pods) for run, pods in zip(self.runs, self.pods, strict=True)]
        newest = sorted(self.events.items(), key=lambda item: (item[1].last, item[0]))[-MAX_EVENTS:]
        return History(version=self.version, phases=self.phases, runs=runs, events=dict(newest))

    def job(self, change: Change) -> None:
        job = _jobs.decode(change.body)
        self.version = job.status.version
        if not self.runs:
            created = moment(job.metadata.creation_timestamp)
            self._begin(change, change.at if change.verb == "ADDED" or created is None else created)
        state = job.status.state
        if state.phase and (not self.phases or self.phases[-1].phase != state.phase):
            at = moment(state.last_transition_time) or change.at
            self._enter(Phase(phase=state.phase, at=at, reason=state.reason, message=state.message))
        if self.runs[-1].phase and self.runs[-1].phase == state.phase and state.message:
            self.runs[-1] = replace(self.runs[-1], reason=state.reason, message=state.message)

    def _enter(self, entry: Phase) -> None:
        before = self.phases[-1].phase if self.phases else ""
        self.phases.append(entry)
        run = self.runs[-1]
        # A restart of some pods does not raise the version, and does not end the run.
        is_end = entry.phase in ENDING or (entry.phase == JobPhase.RESTARTING and self.version != run.version)
        if entry.phase == JobPhase.RUNNING and run.running is None:
            run = replace(run, running=entry.at)
        elif is_end and run.ended is None:
            run = replace(run, phase=entry.phase, reason=entry.reason, message=entry.message)
            run = replace(run, ended=entry.at) if entry.phase in STOPPED else run
        elif before == JobPhase.RESTARTING and run.phase == JobPhase.RESTARTING:
            run = replace(run, ended=entry.at)
        self.runs[-1] = run

    def group(self, change: Change) -> None:
        group = _groups.decode(change.body)
        if change.verb == "DELETED":
            return
        index = next((n for n, run in enumerate(self.runs) if run.group == change.uid), None)
        if index is None:
            # A new group begins a run; the first run has begun with the job.
            if not self.runs or self.runs[-1].phase:
                self._begin(change, change.at)
            run = replace(self.runs[-1], group=change.uid, version=self.version)
            self.runs[-1] = run if run.group_created is not None else replace(run, group_created=change.at)
            index = len(self.runs) - 1
        if self.runs[index].let_in is None and group.status.phase in LET_IN:
            self.runs[index] = replace(self.runs[index], let_in=change.at)

    def _begin(self, change: Change, at: int) -> None:
        if self.runs and self.runs[-1].ended is None:
            self.runs[-1] = replace(self.runs[-1], ended=at)
        self.runs.append(Run(begun=at, revision=change.revision, version=self.version))
        self.pods.append({})

    def pod(self, change: Change) -> None:
        pod = _pods.decode(change.body)
        if not self.runs:
            self._begin(change, change.at)
        pods = next((pods for pods in self.pods if change.uid in pods), None)
        if pods is None:
            pods = self.pods[max((n for n, run in enumerate(self.runs) if run.revision <= change.revision), default=0)]
        created = moment(pod.metadata.creation_timestamp) or change.at
        span = pods.get(change.uid)
        if span is None or change.verb == "ADDED":
            created = change.at if change.verb == "ADDED" else created
            span = PodSpan(pod=pod, created=created)
        removed = change.at if change.verb == "DELETED" else None
        # Only the labels and annotations that name the pod's task and index are stored.
        metadata = pod.metadata
        slim = Metadata(
            name=metadata.name,
            namespace=metadata.namespace,
            uid=metadata.uid,
            creation_timestamp=metadata.creation_timestamp,
            labels={key: text for key, text in metadata.labels.items() if key in _STORED_ANNOTATIONS},
            annotations={key: text for key, text in metadata.annotations.items() if key in _STORED_ANNOTATIONS},
        )
        pods[change.uid] = replace(
            span,
            pod=replace(pod, metadata=slim),
            deletion_requested=_deletion_requested_at(pods.get(change.uid), pod, change),
            removed=removed,
            stretches=stretches_after(span.stretches, pod),
        )

    def event(self, change: Change) -> None:
        event = _events.decode(change.body)
        last = moment(event.last_seen) or change.at
        self.events[change.name] = EventRecord(
            kind=event.involved_object.kind,
            name=event.involved_object.name,
            type=event.type,
            reason=event.reason,
            message=event.message,
            last=last,
            times=event.times,
            firing=policy_firings.of_event(event),
        )


def stretches_after(before: list[Stretch], pod: Pod) -> list[Stretch]:
    """Return the stretches of a pod's containers, updated by its status; beyond MAX_STRETCHES the first and newest stay."""
    stretches = {(each.container, each.started): each for each in before}
    for status in pod.status.container_statuses:
        for state in (status.last_state, status.state):
            if (ended := state.terminated) and (started := moment(ended.started_at)) is not None:
                stretches[status.name, started] = Stretch(
                    container=status.name,
                    started=started,
                    finished=moment(ended.finished_at),
                    exit_code=ended.exit_code,
                    reason=ended.reason,
                )
            elif state.running and (started := moment(state.running.started_at)) is not None:
                stretches[status.name, started] = Stretch(container=status.name, started=started)
    ordered = sorted(stretches.values(), key=lambda each: (each.started, each.container))
    if len(ordered) > MAX_STRETCHES:
        ordered = [ordered[0], *ordered[1 - MAX_STRETCHES :]]
    return ordered


def _deletion_requested_at(before: PodSpan | None, pod: Pod, change: Change) -> int | None:
    """Return when a pod's deletion was requested (ms); None if it was not, or only after the pod had ended by itself."""
    if before is None:
        return change.at if pod.is_stopped else None
    is_ending = bool(pod.metadata.deletion_timestamp) or change.verb == "DELETED"
    if before.deletion_requested is not None or not is_ending or before.pod.is_ended:
        return before.deletion_requested
    return change.at
