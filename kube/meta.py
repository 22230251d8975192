"""What all objects share: the metadata that the server alone writes, keys and versions, and the texts of times.

Objects travel as plain JSON (`Object`), so that fields without a view here are
never lost. A clock is always whole milliseconds since the epoch, named `now`.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

Object = dict[str, Any]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_LAST = 253_402_300_799_999  # 9999-12-31T23:59:59.999Z, the last moment that RFC 3339 can write
_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_UNITS = {"h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1, "us": 0.001, "µs": 0.001, "μs": 0.001, "ns": 0.000001}
_PART = re.compile(r"(\d{1,12}(?:\.\d{0,12})?|\.\d{1,12})(ns|us|µs|μs|ms|h|m|s)", re.ASCII)


# Only the server writes these; what a client sends in them counts for nothing.
SERVER_METADATA = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
)


@lru_cache(maxsize=1024)  # a plan writes one moment into thousands of objects
def now_text(now: int) -> str:
    """Write a moment with microseconds, as status times are: `2026-01-01T00:00:00.123000Z`."""
    return moment_of(now).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def moment_of(now: int) -> datetime:
    """Return a moment as a datetime, in UTC."""
    return EPOCH + min(max(now, 0), _LAST) * _MILLISECOND


def timestamp(now: int) -> str:
    """Write a moment in whole seconds, as `metadata.*Timestamp` are: `2026-01-01T00:00:00Z`."""
    return now_text(now)[:19] + "Z"


@lru_cache(maxsize=8192)  # what was made in one second says the same time
def parse_time(text: str) -> int:
    """Read an RFC 3339 time as milliseconds since the epoch; ValueError says what is wrong with it."""
    if len(text) > 40 or not _TIME.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is not a time; write it like 2026-01-01T00:00:00Z.")
    try:
        moment = datetime.fromisoformat(text.upper())
    except ValueError as error:
        raise ValueError(f"{text!r} is not a time: {error}.") from error
    return milliseconds(moment)


def milliseconds(moment: datetime) -> int:
    """Return a datetime with a time zone as milliseconds since the epoch."""
    return (moment - EPOCH) // _MILLISECOND


def parse_duration(text: str) -> int:
    """Read a Go duration (`1h30m`, `1.5s`, `300ms`, `0`) as milliseconds; ValueError says what is wrong."""
    sign, rest = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    if rest == "0":
        return 0
    parts = list(_PART.finditer(rest)) if len(rest) <= 64 else []
    if not parts or sum(len(part[0]) for part in parts) != len(rest):
        raise ValueError(f"{text[:64]!r} is not a duration; write it like 30s, 5m or 1h30m.")
    return sign * round(sum(float(part[1]) * _UNITS[part[2]] for part in parts))


def duration_text(duration_ms: int) -> str:
    """Write a duration as Go does: `1h2m3s`, `2m0s`, `1.5s`, `300ms`, `0s`."""
    if duration_ms < 0:
        return "-" + duration_text(-duration_ms)
    if 0 < duration_ms < 1000:
        return f"{duration_ms}ms"
    seconds, thousandths = divmod(duration_ms, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    text = f"{seconds}" + f".{thousandths:03}".rstrip("0").rstrip(".") + "s"
    if hours:
        return f"{hours}h{minutes}m{text}"
    return f"{minutes}m{text}" if minutes else text


def duration_words(duration_ms: float) -> str:
    """Say a length of time to people, in its two largest units: `2 d 3 h`, `4 min 5 s`, `6 s`; what is below a second is `0 s`."""
    minutes, seconds = divmod(max(0, int(duration_ms // 1000)), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    units = [(days, "d"), (hours, "h"), (minutes, "min"), (seconds, "s")]
    first = next((index for index, (count, _) in enumerate(units) if count), 3)
    return " ".join(f"{count} {unit}" for count, unit in units[first : first + 2] if count) or "0 s"


def short_duration_words(duration_ms: float) -> str:
    """Say a length of time that is often below a second: `40 ms`, `1.2 s`, from ten seconds on as `duration_words`."""
    if duration_ms < 1000:
        return f"{duration_ms:.0f} ms"
    return f"{duration_ms / 1000:.1f} s" if duration_ms < 9_950 else duration_words(duration_ms)


def key_of(obj: Object) -> str:
    """Return `namespace/name`; the part before the slash is empty for cluster-scoped kinds."""
    metadata = obj.get("metadata") or {}
    return f"{metadata.get('namespace') or ''}/{metadata.get('name') or ''}"


def is_older(version: str, other: str) -> bool:
    """Whether a resourceVersion comes before another one of the same kind; false where one is no number.

    They are decimal numbers that grow (Kubernetes' API conventions since 1.35), on every server in use.
    """
    return version.isdecimal() and other.isdecimal() and int(version) < int(other)
