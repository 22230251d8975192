"""Single values of JSON as a table's cells hold them."""

from __future__ import annotations

import json
from typing import Any

from kube.printing import ages

_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def typed(kind: str, value: Any, now: int) -> Any:
    """Return a value as a column of this type holds it; None where it is of another type."""
    if value is None:
        return None
    if kind == "string":
        return text(value)
    if kind == "date":
        return _date(value, now)
    if kind == "boolean":
        return value if isinstance(value, bool) else None
    return _number(kind, value)


def text(value: Any) -> str:
    """Write a value as Go prints it: JSON for maps and lists."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return f"{value:.0f}"
    return _json(value) if isinstance(value, dict | list) else str(value)


def _json(value: Any) -> str:
    try:
        written = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    except (RecursionError, TypeError, ValueError):
        return ""
    return written.translate(_ESCAPES)


def _date(value: Any, now: int) -> str | None:
    if not isinstance(value, str):
        return None
    if value in ("", "null"):
        return ages.UNKNOWN
    return ages.INVALID if ages.moment(value) is None else ages.age(value, now)


def _number(kind: str, value: Any) -> int | float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        if kind == "integer":
            return int(value)
        return float(value) if kind == "number" else None
    except (OverflowError, ValueError):
        return None
