"""Messages that JSON writes as something other than an object of their fields."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec

from kube.meta import EPOCH
from kube.protobuf.wire import WireError

_FIRST, _LAST = -62_135_596_800, 253_402_300_799  # the seconds that RFC 3339 can write


def time(fields: dict[str, Any]) -> str | None:
    """Write a metav1.Time: whole seconds, whatever its nanoseconds; none at all is no time."""
    return f"{_moment(fields)}Z" if fields else None


def micro_time(fields: dict[str, Any]) -> str | None:
    """Write a metav1.MicroTime: always six digits of a second."""
    if not fields:
        return None
    return f"{_moment(fields)}.{max(fields.get('nanos', 0), 0) // 1000 % 1_000_000:06}Z"


def _moment(fields: dict[str, Any]) -> str:
    seconds = fields.get("seconds", 0)
    if not _FIRST <= seconds <= _LAST:
        raise WireError("a time is outside the years 1 to 9999")
    return (EPOCH + timedelta(seconds=seconds)).isoformat()[:19]


def quantity(fields: dict[str, Any]) -> str:
    """Write a resource.Quantity, which travels in its canonical form."""
    return fields.get("string") or "0"


def int_or_string(fields: dict[str, Any]) -> int | str:
    """Write an IntOrString as the one that it is."""
    text: str = fields.get("strVal", "")
    number: int = fields.get("intVal", 0)
    return text if fields.get("type") == 1 else number


def raw_json(fields: dict[str, Any]) -> Any:
    """Read JSON that travels as it is: managed fields, extensions, defaults of a schema."""
    body = fields.get("raw")
    if not body:
        return None
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, ValueError):
        raise WireError("a field that holds JSON does not") from None


def items(fields: dict[str, Any]) -> list[str]:
    """Write a message that only wraps a list."""
    wrapped: list[str] = fields.get("items", [])
    return wrapped


def schema_or_bool(fields: dict[str, Any]) -> Any:
    """Write a schema, or whether anything is allowed."""
    return fields["schema"] if "schema" in fields else fields.get("allows", False)


def schema_or_array(fields: dict[str, Any]) -> Any:
    """Write a schema, or a list of them."""
    return fields.get("schemas") or fields.get("schema")


def schema_or_texts(fields: dict[str, Any]) -> Any:
    """Write a list of names, or a schema."""
    return fields.get("texts") or fields.get("schema")


SPECIAL: dict[str, Callable[[dict[str, Any]], Any]] = {
    "Time": time,
    "MicroTime": micro_time,
    "Quantity": quantity,
    "IntOrString": int_or_string,
    "JSON": raw_json,
    "Items": items,
    "SchemaOrBool": schema_or_bool,
    "SchemaOrArray": schema_or_array,
    "SchemaOrTexts": schema_or_texts,
}
