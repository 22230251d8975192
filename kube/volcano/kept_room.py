"""Room that is kept on nodes for a pod group, as it stands in the status of the group: the condition Reserved.

It stands there and nowhere else, so that it survives whatever process decides, and everybody can read it. While the condition is True
its message says how long the room is kept at most, when the group is expected to start, how many of its pods are to be on which node,
task by task, and what each of a task's pods asks for:

    Kept for 1h0m0s at most; expected at 2026-01-01T00:30:00.000000Z; on n1: 2, n2: 4 / n3: 1; each cpu: 2, memory: 4Gi / cpu: 500m

Where it is kept for longer because the group is expected to start late, that stands behind it: `at most, or until 2026-01-01T01:35:00.000000Z; expected at`.
A group that was let in to be first in line has no nodes yet, as its pods are still to be made. Who may change a group may give back
what is kept for it, by the annotation RELEASED.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import msgspec
from msgspec import field

from kube import amounts
from kube.amounts import Amounts
from kube.indexes import CREATOR_ANNOTATION
from kube.kinds.fields import View
from kube.meta import duration_text, now_text, parse_duration, parse_time
from kube.usage import queue_named
from kube.volcano.intake_times import moment
from kube.volcano.pod_groups import job_of

CONDITION = "Reserved"
"""The type of the condition."""
RELEASED = "ui.volcano.sh/room-released-at"
"""On a pod group: when somebody gave back what was kept for it. Nothing is kept for it again until it has waited long from then on."""

Places = tuple[tuple[tuple[str, int], ...], ...]
"""By task in task order: nodes, each with how many pods."""
Requests = tuple[tuple[tuple[str, int], ...], ...]
"""By task in task order: what each pod asks for, by resource and without the pod itself."""

_KEPT = re.compile(
    r"Kept for (?P<hold>\S+) at most(, or until (?P<later>\S+))?(; expected at (?P<expected>\S+))?"
    r"(; on (?P<places>\S.*?)(; each (?P<requests>\S.*))?)?",
    re.DOTALL,
)
_PODS = re.compile(r"[0-9]{1,9}")
_MARK = f'"{CONDITION}"'.encode()


@dataclass(frozen=True, slots=True)
class Reservation:
    """Room that is kept for a group: since when (ms), for how long at most (ms), when it is expected to start if that is known, and where.

    Without requests it is not known how much that is. later is until when it is kept at most (ms) where that is after made + hold, else None.
    """

    made: int
    hold: int
    expected: int | None = None
    places: Places = ()
    requests: Requests = ()
    later: int | None = None

    @property
    def until(self) -> int:
        """Until when it is kept at most (ms)."""
        return self.made + self.hold if self.later is None else self.later

    def amounts(self) -> dict[str, Amounts]:
        """Return what is kept, by node."""
        found: dict[str, Amounts] = {}
        for number, there in enumerate(self.places):
            each = dict(self.requests[number]) if number < len(self.requests) else {}
            for node, pods in there:
                asked = {name: amount * pods for name, amount in each.items()}
                found[node] = amounts.add(found.get(node, {}), {**asked, "pods": pods})
        return found


@dataclass(frozen=True, slots=True)
class KeptRoom:
    """What is kept, and for whom: a pod group of a queue, with its job ("" where it has none) and who created that."""

    namespace: str
    group: str
    uid: str
    queue: str
    job: str
    creator: str
    reservation: Reservation

    def on_nodes(self) -> dict[str, Amounts]:
        """Return what is kept, by node; nothing of a group that is only first in line."""
        return self.reservation.amounts()

    def total(self) -> Amounts:
        """Return what is kept on all nodes together."""
        total: Amounts = {}
        for amount in self.on_nodes().values():
            total = amounts.add(total, amount)
        return total


def message(reservation: Reservation) -> str:
    """Write a reservation as the condition's message."""
    said = f"Kept for {duration_text(reservation.hold)} at most"
    if reservation.later is not None:
        said += f", or until {now_text(reservation.later)}"
    if reservation.expected is not None:
        said += f"; expected at {now_text(reservation.expected)}"
    if reservation.places:
        said += f"; on {_written(reservation.places)}"
        if any(reservation.requests):
            texts = (tuple(amounts.resource_list(dict(each)).items()) for each in reservation.requests)
            said += f"; each {_written(texts)}"
    return said


def read(said: str, since: str) -> Reservation | None:
    """Read what `message` wrote, of a condition that is True since a time; None for anything else."""
    found = _KEPT.fullmatch(said)
    if found is None:
        return None
    try:
        expected = parse_time(found["expected"]) if found["expected"] else None
        places = _listed(found["places"], _count) if found["places"] else ()
        requests = _listed(found["requests"], amounts.one) if found["requests"] else ()
        later = parse_time(found["later"]) if found["later"] else None
        hold = parse_duration(found["hold"])
        return Reservation(parse_time(since), hold, expected, places, requests, later)
    except ValueError:
        return None


def kept_for(namespace: str, name: str, body: bytes) -> KeptRoom | None:
    """Return what is kept for a stored pod group; None where nothing is, or it cannot be read."""
    if _MARK not in body:
        return None
    try:
        group = _groups.decode(body)
    except msgspec.ValidationError:
        return None
    standing = next((each for each in group.status.conditions or () if each.type == CONDITION), None)
    if standing is None or standing.status != "True":
        return None
    notes = group.metadata.annotations or _Annotations()
    reservation = read(standing.message, standing.last_transition_time)
    if reservation is None or is_released(reservation, notes.released):
        return None
    queue = queue_named(group.spec.queue)
    return KeptRoom(namespace, name, group.metadata.uid, queue, job_of(name), notes.creator, reservation)


def released_at(written: str) -> int:
    """Return when room was given back, as the annotation says; 0 where it was not, or that cannot be read."""
    return moment(written) or 0


def is_released(reservation: Reservation, written: str) -> bool:
    """Tell whether a reservation was given back, as the annotation says; one that was made later was not."""
    return bool(written) and reservation.made <= released_at(written)


def _written(tasks: Iterable[Iterable[tuple[str, object]]]) -> str:
    return " / ".join(", ".join(f"{name}: {value}" for name, value in some) or "-" for some in tasks)


def _listed(text: str, value: Callable[[str, str], int]) -> tuple[tuple[tuple[str, int], ...], ...]:
    """Read what `_written` wrote; ValueError for anything else."""
    return tuple(
        () if some == "-" else tuple(_pair(each, value) for each in some.split(", ")) for some in text.split(" / ")
    )


def _pair(text: str, value: Callable[[str, str], int]) -> tuple[str, int]:
    name, is_there, written = text.partition(": ")
    if not is_there or not name:
        raise ValueError
    return name, value(name, written)


def _count(_: str, pods: str) -> int:
    if not _PODS.fullmatch(pods):
        raise ValueError
    return int(pods)


class _Annotations(View):
    creator: str = field(default="", name=CREATOR_ANNOTATION)
    released: str = field(default="", name=RELEASED)


class _Metadata(View):
    uid: str = ""
    annotations: _Annotations | None = None


class _Spec(View):
    queue: str | None = None


class _Condition(View):
    type: str = ""
    status: str = ""
    message: str = ""
    last_transition_time: str = ""


class _Status(View):
    conditions: list[_Condition] | None = None


class _Group(View):
    metadata: _Metadata = _Metadata()
    spec: _Spec = _Spec()
    status: _Status = _Status()


_groups = msgspec.json.Decoder(_Group)
