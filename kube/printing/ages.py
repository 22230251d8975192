"""How long ago something was, in the two or three figures that fit a column."""

from __future__ import annotations

from typing import Any

from kube import meta

UNKNOWN = "<unknown>"
INVALID = "<invalid>"

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86_400, 365 * 86_400

# Up to `below` seconds: so many of the unit, and of the smaller one if there is one and some are left.
_SPANS = (
    (2 * _MINUTE, 1, "s", 0, ""),
    (10 * _MINUTE, _MINUTE, "m", 1, "s"),
    (3 * _HOUR, _MINUTE, "m", 0, ""),
    (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
    (2 * _DAY, _HOUR, "h", 0, ""),
    (8 * _DAY, _DAY, "d", _HOUR, "h"),
    (2 * _YEAR, _DAY, "d", 0, ""),
    (8 * _YEAR, _YEAR, "y", _DAY, "d"),
)


def human_duration(ms: int) -> str:
    """Write a length of time as Kubernetes' HumanDuration does: `90s`, `5m3s`, `7h`, `3d4h`, `2y10d`.

    Clocks differ, so that up to two seconds in the future are `0s`; what lies further ahead is invalid.
    """
    if ms <= -2000:
        return INVALID
    seconds = max(ms, 0) // 1000
    for below, unit, letter, smaller, smaller_letter in _SPANS:
        if seconds < below:
            count, rest = divmod(seconds, unit)
            left = rest // smaller if smaller else 0
            return f"{count}{letter}{left}{smaller_letter}" if left else f"{count}{letter}"
    return f"{seconds // _YEAR}y"


def moment(text: Any) -> int | None:
    """Read a time in an object; None where there is none."""
    try:
        return meta.parse_time(text) if isinstance(text, str) else None
    except ValueError:
        return None


def age(text: Any, now: int) -> str:
    """Say how long ago a time in an object was; unknown where there is none."""
    then = moment(text)
    return UNKNOWN if then is None else human_duration(now - then)
