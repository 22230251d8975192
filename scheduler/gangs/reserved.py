"""A reservation in the status of its pod group (`kube.volcano.reserved_room`): made, read and ended by the scheduler.

If the group did not start in time, the same condition says after how long the reservation was given back.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from kube.meta import duration_text, now_text
from kube.volcano import reserved_room
from kube.volcano.reserved_room import Length, Reservation, Time
from scheduler.policy.arguments import LONGEST_MS
from scheduler.records.reading import GroupCondition, find_condition

TYPES = (reserved_room.CONDITION, reserved_room.DATA)
KEPT = "RoomKept"
GIVEN_BACK = "GivenBack"
RELEASED = "Released"
ENDED = "Ended"


class ReleasedReservation(msgspec.Struct, frozen=True):
    """When a reservation was given back (ms), and after how long (ms)."""

    at: Time
    hold: Length


def reservation_of(conditions: Iterable[GroupCondition]) -> Reservation | None:
    """Return the reservation of a group; None where it has none, or it cannot be read."""
    condition = find_condition(conditions, reserved_room.DATA)
    if condition is None or condition.status != "True":
        return None
    found = reserved_room.read(condition.message)
    return replace(found, hold=min(found.hold, LONGEST_MS)) if found else None


def given_back_of(conditions: Iterable[GroupCondition]) -> ReleasedReservation | None:
    """Return when, and after how long, a reservation was given back unused; None where none was."""
    condition = find_condition(conditions, reserved_room.DATA)
    if condition is None or (condition.status, condition.reason) != ("False", GIVEN_BACK):
        return None
    try:
        found = _released.decode(condition.message)
    except msgspec.DecodeError:
        return None
    return replace(found, hold=min(found.hold, LONGEST_MS))


def is_announced(conditions: Iterable[GroupCondition]) -> bool:
    """Tell whether the condition for people says that room is reserved, whether the reservation can be read or not."""
    condition = find_condition(conditions, reserved_room.CONDITION)
    return condition is not None and condition.status == "True"


def written(reservation: Reservation, now: int) -> list[GroupCondition]:
    """Return the conditions of a reservation."""
    text, data = reserved_room.message(reservation), reserved_room.data(reservation)
    return _conditions("True", KEPT, text, data, reservation.made, now)


def ended(reservation: Reservation | None, now: int, *, in_vain: bool, released: bool = False) -> list[GroupCondition]:
    """Return the conditions for a reservation that is over; reservation is None if it cannot be read.

    in_vain: the group has not started, and others may have the room. released: somebody gave the room back.
    """
    if released:
        return _conditions("False", RELEASED, "Given back because somebody asked for that", "", now, now)
    if reservation is None or not in_vain:
        return _conditions("False", ENDED, "", "", now, now)
    text = f"Given back after {duration_text(reservation.hold)}"
    data = msgspec.json.encode(ReleasedReservation(now, reservation.hold)).decode()
    return _conditions("False", GIVEN_BACK, text, data, now, now)


def _conditions(status: str, reason: str, text: str, data: str, since: int, now: int) -> list[GroupCondition]:
    """Return the condition for people, and the one for programs unless data is empty."""
    messages = [(reserved_room.CONDITION, text), *([(reserved_room.DATA, data)] if data else [])]
    return [
        GroupCondition(
            type=kind,
            status=status,
            reason=reason,
            message=message,
            last_transition_time=now_text(since),
            transition_id=str(now),
        )
        for kind, message in messages
    ]


_released = msgspec.json.Decoder(ReleasedReservation)
