"""The history of one job as it is stored: plain values, as JSON.

Where a field has another name there, that is the one of the version that wrote the first histories: those that exist stay readable.
"""

from __future__ import annotations

import msgspec

from jobs.lifecycle import policy_firings
from jobs.lifecycle.policy_firings import PolicyFiring
from jobs.lifecycle.reading import Pod
from kube import meta
from kube.kinds.core import Event, ObjectReference
from kube.kinds.fields import View
from kube.kinds.meta import ObjectMeta


class Phase(View):
    """A phase that the job came to at a moment (ms), and why."""

    phase: str
    at: int
    reason: str = ""
    message: str = ""


class Stretch(View):
    """One time that a container ran, in ms; finished is None while it runs."""

    container: str
    started: int
    finished: int | None = None
    exit_code: int = 0
    reason: str = ""


class PodSpan(View):
    """A pod as it last was, when it was made and removed (ms; None while it is there), and what its containers ran.

    `deletion_requested` is when somebody asked it to end while it had not (ms): how it ended then says nothing of it. `stretches` are in the order of their starts: the first, and the newest of the others.
    """

    pod: Pod
    created: int
    deletion_requested: int | None = msgspec.field(default=None, name="asked")
    removed: int | None = None
    stretches: list[Stretch] = []


class Run(View):
    """A chapter of a job: from its begin, or from a restart or a resumption, to what ended all of its pods.

    Times are in ms, `revision` is the change with which it began. The pod group is the run's identity, since every run has a new one; `version` is the job's
    status.version at that time. `phase`, `reason` and `message` say what ended the run; empty while it goes on.
    """

    begun: int
    revision: int = 0
    version: int = 0
    group: str = ""
    group_created: int | None = None
    let_in: int | None = None
    running: int | None = None
    ended: int | None = None
    phase: str = ""
    reason: str = ""
    message: str = ""
    pods: dict[str, PodSpan] = {}

    @property
    def is_settled(self) -> bool:
        """Whether all of its pods have ended or are gone."""
        return all(span.removed is not None or span.pod.is_ended for span in self.pods.values())


class EventRecord(View):
    """An event about the job, its groups or its pods.

    `last` is when it was seen last, in ms, and `firing` the policy firing that it tells of.
    """

    kind: str
    name: str
    type: str
    reason: str
    message: str
    last: int
    times: int = 1
    firing: PolicyFiring | None = None


class History(View):
    """A job's phases, its runs, and its events by their names, up to where the log was read."""

    version: int = 0
    phases: list[Phase] = []
    runs: list[Run] = []
    events: dict[str, EventRecord] = msgspec.field(default_factory=dict, name="told")

    @property
    def is_settled(self) -> bool:
        """Whether all pods have ended or are gone, so that nothing more is recorded."""
        return all(run.is_settled for run in self.runs)

    @property
    def is_over(self) -> bool:
        """Whether all pods of the runs that something ended have ended or are gone."""
        return all(run.is_settled for run in self.runs if run.phase)


def events(history: History) -> dict[str, Event]:
    """Return the recorded events as objects, by their names."""
    return {
        name: Event(
            metadata=ObjectMeta(name=name, annotations=policy_firings.as_annotations(event.firing)),
            involved_object=ObjectReference(kind=event.kind, name=event.name),
            type=event.type,
            reason=event.reason,
            message=event.message,
            last_timestamp=meta.now_text(event.last),
            count=event.times,
        )
        for name, event in history.events.items()
    }


_decoder = msgspec.json.Decoder(History)


def read(body: bytes) -> History:
    """Return a history that is stored; of no bytes an empty one."""
    return _decoder.decode(body) if body else History()


def write(history: History) -> bytes:
    return msgspec.json.encode(history)
