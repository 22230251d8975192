"""A reservation as it stands in the status of its pod group (`kube.volcano.kept_room`), made, read and ended by the scheduler.

One that did not start in time says in the same place after how long its room was given back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from kube.meta import duration_text, now_text, parse_duration, parse_time
from kube.volcano import kept_room
from kube.volcano.kept_room import Reservation
from scheduler.policy.arguments import LONGEST_MS
from scheduler.records.reading import GroupCondition

TYPE = kept_room.CONDITION
KEPT = "RoomKept"
GIVEN_BACK = "GivenBack"
RELEASED = "Released"
ENDED = "Ended"

_GIVEN_BACK = re.compile(r"Given back after (?P<hold>\S+)")


class ReleasedReservation(NamedTuple):
    """When a reservation was given back (ms), and after how long (ms)."""

    at: int
    hold: int


def reservation_of(conditions: Iterable[GroupCondition]) -> Reservation | None:
    """Return the reservation of a group; None where it has none, or what stands there cannot be read."""
    known = find(conditions)
    if known is None or known.status != "True":
        return None
    found = kept_room.read(known.message, known.last_transition_time)
    return replace(found, hold=min(found.hold, LONGEST_MS)) if found else None


def given_back_of(conditions: Iterable[GroupCondition]) -> ReleasedReservation | None:
    """Return when room was given back that was kept in vain; None where it was not."""
    known = find(conditions)
    if known is None or (known.status, known.reason) != ("False", GIVEN_BACK):
        return None
    found = _GIVEN_BACK.fullmatch(known.message)
    try:
        if found is None:
            return None
        return ReleasedReservation(
            parse_time(known.last_transition_time), min(parse_duration(found["hold"]), LONGEST_MS)
        )
    except ValueError:
        return None


def find(conditions: Iterable[GroupCondition]) -> GroupCondition | None:
    """Return the condition."""
    return next((each for each in conditions if each.type == TYPE), None)


def written(reservation: Reservation, now: int) -> GroupCondition:
    """Return the condition of a reservation."""
    return _condition("True", KEPT, kept_room.message(reservation), reservation.made, now)


def ended(reservation: Reservation, now: int, *, in_vain: bool, released: bool = False) -> GroupCondition:
    """Return the condition of a reservation that is over; in_vain: the group has not started, and others may have the room.

    released: somebody gave the room back.
    """
    if released:
        return _condition("False", RELEASED, "Given back because somebody asked for that", now, now)
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
