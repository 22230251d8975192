"""A reservation as it stands in the status of its pod group: the condition Reserved.

It stands there and nowhere else, so that it survives whatever process decides. While the condition is True its message says
how long the room is kept at most, when the group is expected to start, and how many of its pods are to be on which node, task by task:

    Kept for 1h0m0s at most; expected at 2026-01-01T01:30:00.000000Z; on n1: 2, n2: 4 / n3: 1

A group that was let in for it has no nodes yet, as its pods are still to be made. One that did not start in time says in the
same place after how long its room was given back.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from kube.meta import duration_text, now_text, parse_duration, parse_time
from scheduler.policy.arguments import LONGEST_MS
from scheduler.snapshot.reading import GroupCondition

if TYPE_CHECKING:
    from collections.abc import Iterable

TYPE = "Reserved"
KEPT = "RoomKept"
GIVEN_BACK = "GivenBack"
ENDED = "Ended"

Places = tuple[tuple[tuple[str, int], ...], ...]
"""By task in task order: nodes, each with how many pods."""

_KEPT = re.compile(
    r"Kept for (?P<hold>\S+) at most(; expected at (?P<expected>\S+))?(; on (?P<places>\S.*))?", re.DOTALL
)
_PODS = re.compile(r"[0-9]{1,9}")
_GIVEN_BACK = re.compile(r"Given back after (?P<hold>\S+)")


@dataclass(frozen=True, slots=True)
class Reservation:
    """Room that is kept for a group: since when (ms), for how long at most (ms), until when if that is known, and where."""

    made: int
    hold: int
    expected: int | None = None
    places: Places = ()


class GivenBack(NamedTuple):
    """When a reservation was given back (ms), and after how long (ms)."""

    at: int
    hold: int


def reservation_of(conditions: Iterable[GroupCondition]) -> Reservation | None:
    """Return the reservation of a group; None where it has none, or what stands there cannot be read."""
    known = find(conditions)
    found = _KEPT.fullmatch(known.message) if known is not None and known.status == "True" else None
    if known is None or found is None:
        return None
    try:
        expected = parse_time(found["expected"]) if found["expected"] else None
        made, hold = parse_time(known.last_transition_time), _hold(found["hold"])
        return Reservation(made, hold, expected, _places(found["places"]) if found["places"] else ())
    except ValueError:
        return None


def given_back_of(conditions: Iterable[GroupCondition]) -> GivenBack | None:
    """Return when room was given back that was kept in vain; None where it was not."""
    known = find(conditions)
    if known is None or (known.status, known.reason) != ("False", GIVEN_BACK):
        return None
    found = _GIVEN_BACK.fullmatch(known.message)
    try:
        return GivenBack(parse_time(known.last_transition_time), _hold(found["hold"])) if found else None
    except ValueError:
        return None


def _hold(text: str) -> int:
    """Read for how long room is kept, not longer than any duration may be that somebody configures."""
    return min(parse_duration(text), LONGEST_MS)


def find(conditions: Iterable[GroupCondition]) -> GroupCondition | None:
    """Return the condition."""
    return next((each for each in conditions if each.type == TYPE), None)


def written(reservation: Reservation, now: int) -> GroupCondition:
    """Return the condition of a reservation."""
    message = f"Kept for {duration_text(reservation.hold)} at most"
    if reservation.expected is not None:
        message += f"; expected at {now_text(reservation.expected)}"
    if reservation.places:
        message += f"; on {_shown(reservation.places)}"
    return _condition("True", KEPT, message, reservation.made, now)


def ended(reservation: Reservation, now: int, *, in_vain: bool) -> GroupCondition:
    """Return the condition of a reservation that is over; in_vain: the group has not started, and others may have the room."""
    if not in_vain:
        return _condition("False", ENDED, "", now, now)
    return _condition("False", GIVEN_BACK, f"Given back after {duration_text(reservation.hold)}", now, now)


def _condition(status: str, reason: str, message: str, since: int, now: int) -> GroupCondition:
    return GroupCondition(
        type=TYPE,
        status=status,
        reason=reason,
        message=message,
        last_transition_time=now_text(since),
        transition_id=str(now),
    )


def _shown(places: Places) -> str:
    return " / ".join(", ".join(f"{node}: {pods}" for node, pods in some) or "-" for some in places)


def _places(text: str) -> Places:
    """Read what `_shown` wrote; ValueError for anything else."""
    return tuple(
        () if some == "-" else tuple(_place(each) for each in some.split(", ")) for some in text.split(" / ")
    )


def _place(text: str) -> tuple[str, int]:
    node, times, pods = text.partition(": ")
    if not times or not node or not _PODS.fullmatch(pods):
        raise ValueError
    return node, int(pods)
