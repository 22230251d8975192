"""The history of one job as it is stored: plain values, as JSON.

A field with another name in the JSON keeps the name of the first version, so that existing histories stay readable.
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
    """A phase that the job entered, when (ms), and why."""

    phase: str
    at: int
    reason: str = ""
    message: str = ""


class Stretch(View):
    """One run of a container, in ms; `finished` is None while it runs."""

    container: str
    started: int
    finished: int | None = None
    exit_code: int = 0
    reason: str = ""


class PodSpan(View):
    """A pod's last version, when it was created and removed (ms; `removed` is None while it exists), and its containers' runs.

    `deletion_requested` is when its deletion was requested before it had ended (ms): then how it ended is no result of
    its own. `stretches` are in order of their starts: the first, and the newest of the others.
    """

    pod: Pod
    created: int
    deletion_requested: int | None = msgspec.field(default=None, name="asked")
    removed: int | None = None
    stretches: list[Stretch] = []


class Run(View):
    """One run of a job: from its start, restart or resumption, to the end of all its pods.

    Times are in ms; `revision` is the change with which it began. The uid of its pod group (`group`) identifies the run,
    since every run has a new one; `version` is the job's status.version at that time. `phase`, `reason` and `message` say
    what ended the run; "" while it goes on.
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
    """An event about the job, its pod groups or its pods.

    `last` is when it was last seen (ms), `firing` the policy firing that it reports, if any.
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
    """A job's phases, runs and events (by name), up to where the log was read."""

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
        """Whether all pods of the runs that are not going on have ended or are gone."""
        return all(run.is_settled for run in self.runs if run.phase)


def events(history: History) -> dict[str, Event]:
    """Return the recorded events as objects, by name."""
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
    """Return a stored history; an empty one for no bytes."""
    return _decoder.decode(body) if body else History()


def write(history: History) -> bytes:
    return msgspec.json.encode(history)
