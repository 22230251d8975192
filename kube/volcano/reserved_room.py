"""Room that is kept on nodes for a pod group, as it stands in the status of the group.

It stands there and nowhere else, so that it survives whatever process decides, and everybody can read it: in the condition DATA, whose
message is the `Reservation` as JSON, and for people in words in the condition CONDITION, which no program reads:

    Kept for 1h0m0s at most; expected at 2026-01-01T00:30:00.000000Z; on n1: 2, n2: 4 / n3: 1; each cpu: 2, memory: 4Gi / cpu: 500m

Both say how long the room is kept at most, when the group is expected to start, how many of its pods are to be on which node, task by
task, and what each of a task's pods asks for. Where it is kept for longer because the group is expected to start late, that stands
behind it: `at most, or until 2026-01-01T01:35:00.000000Z; expected at`. A group that was let in to be first in line has no nodes yet, as
its pods are still to be made. Who may change a group may give back what is kept for it, by the annotation RELEASED.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

import msgspec
from msgspec import Meta, field

from kube import amounts
from kube.amounts import Amounts
from kube.indexes import CREATOR_ANNOTATION
from kube.kinds.fields import View
from kube.meta import duration_text, now_text
from kube.usage import queue_named
from kube.volcano import pod_groups
from kube.volcano.intake_times import moment
from kube.volcano.pod_groups import job_of

CONDITION = "Reserved"
"""The type of the condition for people."""
DATA = f"{pod_groups.DATA}Reservation"
"""The type of the condition for programs."""
RELEASED = "ui.volcano.sh/room-released-at"
"""On a pod group: when somebody gave back what was kept for it. Nothing is kept for it again until it has waited long from then on."""

# Whoever may write the status of a pod group may write any number there: a time and a length together are still a time with four digits of years.
Time = Annotated[int, Meta(ge=0, le=200_000_000_000_000)]
Length = Annotated[int, Meta(ge=0, le=50_000_000_000_000)]
_Pods = Annotated[int, Meta(ge=0, le=999_999_999)]
_Amount = Annotated[int, Meta(ge=0, le=1 << 62)]

Places = tuple[tuple[tuple[str, _Pods], ...], ...]
"""By task in task order: nodes, each with how many pods."""
Requests = tuple[tuple[tuple[str, _Amount], ...], ...]
"""By task in task order: what each pod asks for, by resource and without the pod itself."""

_MARK = f'"{DATA}"'.encode()


class Reservation(msgspec.Struct, frozen=True, omit_defaults=True):
    """Room that is kept for a group: since when (ms), for how long at most (ms), when it is expected to start if that is known, and where.

    Without requests it is not known how much that is. later is until when it is kept at most (ms) where that is after made + hold, else None.
    """

    made: Time
    hold: Length
    expected: Time | None = None
    places: Places = ()
    requests: Requests = ()
    later: Time | None = None

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
                requests = {name: amount * pods for name, amount in each.items()}
                found[node] = amounts.add(found.get(node, {}), {**requests, "pods": pods})
        return found


@dataclass(frozen=True, slots=True)
class GroupReservation:
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
    """Write a reservation for people."""
    text = f"Kept for {duration_text(reservation.hold)} at most"
    if reservation.later is not None:
        text += f", or until {now_text(reservation.later)}"
    if reservation.expected is not None:
        text += f"; expected at {now_text(reservation.expected)}"
    if reservation.places:
        text += f"; on {_listed(reservation.places)}"
        if any(reservation.requests):
            each = (tuple(amounts.resource_list(dict(request)).items()) for request in reservation.requests)
            text += f"; each {_listed(each)}"
    return text


def data(reservation: Reservation) -> str:
    """Write a reservation for programs."""
    return msgspec.json.encode(reservation).decode()


def read(text: str) -> Reservation | None:
    """Read what `data` wrote; None for anything else."""
    try:
        return _reservations.decode(text)
    except msgspec.DecodeError:
        return None


def reserved_for(namespace: str, name: str, body: bytes) -> GroupReservation | None:
    """Return what is kept for a stored pod group; None where nothing is, or it cannot be read."""
    if _MARK not in body:
        return None
    try:
        group = _groups.decode(body)
    except msgspec.ValidationError:
        return None
    condition = next((each for each in group.status.conditions or () if each.type == DATA), None)
    if condition is None or condition.status != "True":
        return None
    notes = group.metadata.annotations or _Annotations()
    reservation = read(condition.message)
    if reservation is None or is_released(reservation, notes.released):
        return None
    queue = queue_named(group.spec.queue)
    return GroupReservation(namespace, name, group.metadata.uid, queue, job_of(name), notes.creator, reservation)


def released_at(written: str) -> int:
    """Return when room was given back, as the annotation says; 0 where it was not, or that cannot be read."""
    return moment(written) or 0


def is_released(reservation: Reservation, written: str) -> bool:
    """Tell whether a reservation was given back, as the annotation says; one that was made later was not."""
    return bool(written) and reservation.made <= released_at(written)


def _listed(tasks: Iterable[Iterable[tuple[str, object]]]) -> str:
    return " / ".join(", ".join(f"{name}: {value}" for name, value in some) or "-" for some in tasks)


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


class _Status(View):
    conditions: list[_Condition] | None = None


class _Group(View):
    metadata: _Metadata = _Metadata()
    spec: _Spec = _Spec()
    status: _Status = _Status()


_groups = msgspec.json.Decoder(_Group)
_reservations = msgspec.json.Decoder(Reservation)
