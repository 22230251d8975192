"""Messages on the wire, read as JSON objects by the tables."""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Callable
from typing import Any

from kube.meta import Object
from kube.protobuf import wire
from kube.protobuf.special import SPECIAL
from kube.protobuf.tables import Field, FieldShape, Message
from kube.protobuf.wire import BYTES, FIXED64, VARINT, WireError

DEEPEST = 100  # messages within messages
MAX_FIELDS = 100_000  # in a body, so that two bytes a field cannot become gigabytes of objects

_NUMBERS: dict[str, Callable[[int], Any]] = {"bool": bool, "int32": wire.int32, "int64": wire.int64}
_MAP_KEY, _MAP_VALUE = 1, 2


def read(message: Message, body: bytes, *, into: Object) -> None:
    """Read the fields of a message into an object; WireError says why they cannot be read.

    A field that comes twice counts as protobuf has it: the last value wins,
    messages merge, lists go on. Fields without a row in the table are skipped.
    """
    _Reader(body).message(message, into, 0, len(body), 0)


class _Reader:
    """The bytes of a body and how many fields it may still have."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.left = MAX_FIELDS

    def message(self, message: Message, into: Object, at: int, end: int, depth: int) -> None:
        if depth > DEEPEST:
            raise WireError(f"messages are nested deeper than {DEEPEST}")
        body, fields = self.body, message.fields
        while at < end:
            self.left -= 1
            if self.left < 0:
                raise WireError(f"there are more than {MAX_FIELDS} fields")
            key, at = wire.varint(body, at, end)
            if key < 8:
                raise WireError("there is no field 0")
            field = fields.get(key >> 3)
            if field is None:
                at = wire.skip(body, at, end, key & 7)
            elif field.shape is FieldShape.INLINE and field.message:
                self._expect(message, field, key & 7, BYTES)
                start, at = wire.extent(body, at, end)
                self.message(field.message, into, start, at, depth + 1)
            else:
                at = self._field(message, field, into, key & 7, at, end, depth)

    def _field(self, message: Message, field: Field, into: Object, kind: int, at: int, end: int, depth: int) -> int:
        """Read one value of a field into the object; return where it ends."""
        if field.shape is FieldShape.MAP:
            self._expect(message, field, kind, BYTES)
            start, after = wire.extent(self.body, at, end)
            key, value = self._entry(field, start, after, depth)
            into.setdefault(field.name, {})[key] = value
            return after
        if field.shape is FieldShape.LIST:
            values = into.setdefault(field.name, [])
            if kind == BYTES and field.scalar in _NUMBERS:
                return self._packed(field, values, at, end)
            value, after = self._value(message, field, kind, at, end, depth, None)
            values.append(value)
            return after
        before = into.get(field.name)
        value, after = self._value(message, field, kind, at, end, depth, before)
        if value is None or (not field.keeps_zero and field.scalar and not value):
            into.pop(field.name, None)
        else:
            into[field.name] = value
        return after

    def _entry(self, field: Field, start: int, end: int, depth: int) -> tuple[str, Any]:
        """Read an entry of a map, which is a message of a key and a value."""
        kind = Field("value", FieldShape.ONE, field.scalar, field.message, keeps_zero=True)
        table = Message("", {_MAP_KEY: Field("key", FieldShape.ONE, "string"), _MAP_VALUE: kind})
        entry: Object = {}
        self.message(table, entry, start, end, depth + 1)
        if "value" not in entry:
            entry["value"] = self._nothing(field)
        return entry.get("key", ""), entry["value"]

    def _nothing(self, field: Field) -> Any:
        """Return what an entry without a value has for one."""
        if field.message is None:
            return "" if field.scalar in ("string", "bytes") else 0
        special = SPECIAL.get(field.message.name)
        return special({}) if special else {}

    def _packed(self, field: Field, values: list[Any], at: int, end: int) -> int:
        """Read numbers that are written one after the other without their field's number."""
        start, after = wire.extent(self.body, at, end)
        convert = _NUMBERS[field.scalar]
        while start < after:
            self.left -= 1
            if self.left < 0:
                raise WireError(f"there are more than {MAX_FIELDS} fields")
            number, start = wire.varint(self.body, start, after)
            values.append(convert(number))
        return after

    def _value(
        self, message: Message, field: Field, kind: int, at: int, end: int, depth: int, before: Any
    ) -> tuple[Any, int]:
        """Read a single value; a message goes on from what was `before`."""
        if convert := _NUMBERS.get(field.scalar):
            self._expect(message, field, kind, VARINT)
            number, after = wire.varint(self.body, at, end)
            return convert(number), after
        if field.scalar == "float64":
            self._expect(message, field, kind, FIXED64)
            after = wire.skip(self.body, at, end, FIXED64)
            return _float(self.body, at), after
        self._expect(message, field, kind, BYTES)
        start, after = wire.extent(self.body, at, end)
        if field.message:
            return self._nested(field.message, start, after, depth, before), after
        return _bytes(field.scalar, self.body[start:after]), after

    def _nested(self, message: Message, start: int, end: int, depth: int, before: Any) -> Any:
        special = SPECIAL.get(message.name)
        target: Object = before if special is None and isinstance(before, dict) else {}
        self.message(message, target, start, end, depth + 1)
        return special(target) if special else target

    @staticmethod
    def _expect(message: Message, field: Field, kind: int, wanted: int) -> None:
        if kind != wanted:
            raise WireError(f"{message.name}.{field.name} has the wire type {kind} instead of {wanted}")


def _float(body: bytes, at: int) -> int | float:
    number: float = struct.unpack_from("<d", body, at)[0]
    if not math.isfinite(number):
        raise WireError("a number is not finite")
    # Go writes a whole number without a point.
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def _bytes(scalar: str, value: bytes) -> str | bytes:
    if scalar == "string":
        # Go does not check its texts; its JSON shows what is not UTF-8 as this does.
        return value.decode("utf-8", "replace")
    return base64.b64encode(value).decode() if scalar == "bytes" else value
