"""The tables of messages: for each field number the JSON name and what the value is.

A message is a dict that the reader looks fields up in; those that are written
as something else in JSON (times, quantities, raw JSON) are messages too, with a
function in `kube.protobuf.special` that makes the value of their fields.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

_KIND = re.compile(r"kind (\S+) (\S+) = (\S+)")
_FIELD = re.compile(r"(\d+) (?:\^([\w.]+)|([^\s:]+):([\[{]?)([\w.]+)[\]}]?(!?))")
SCALARS = frozenset({"bool", "int32", "int64", "float64", "string", "bytes", "raw"})

# Messages whose JSON is not an object of their fields; those of the envelope are here too.
_SPECIAL = """
Time
  1 seconds:int64!, 2 nanos:int32!
MicroTime
  1 seconds:int64!, 2 nanos:int32!
Quantity
  1 string:string!
IntOrString
  1 type:int64!, 2 intVal:int32!, 3 strVal:string!
JSON
  1 raw:raw!
Items
  1 items:[string]
SchemaOrBool
  1 allows:bool!, 2 schema:apiextensions.JSONSchemaProps
SchemaOrArray
  1 schema:apiextensions.JSONSchemaProps, 2 schemas:[apiextensions.JSONSchemaProps]
SchemaOrTexts
  1 schema:apiextensions.JSONSchemaProps, 2 texts:[string]
TypeMeta
  1 apiVersion:string, 2 kind:string
Envelope
  1 typeMeta:TypeMeta, 2 raw:raw!
"""


class FieldShape(Enum):
    """How often a field's value occurs in the object."""

    ONE = ""
    LIST = "["
    MAP = "{"
    INLINE = "^"


@dataclass
class Message:
    """A message: its fields by number."""

    name: str
    fields: dict[int, Field] = field(default_factory=dict)


@dataclass(frozen=True)
class Field:
    """A field: where it goes, and either a scalar's type or the message that it is."""

    name: str
    shape: FieldShape
    scalar: str = ""
    message: Message | None = None
    keeps_zero: bool = False


class Tables:
    """All messages of a text in the form of messages.txt, and the kinds that it names."""

    def __init__(self, text: str) -> None:
        self.messages: dict[str, Message] = {}
        self.kinds: dict[tuple[str, str], Message] = {}
        message = Message("")
        for line in text.splitlines():
            if match := _KIND.fullmatch(line):
                self.kinds[match[1], match[2]] = self._message(match[3])
            elif line.startswith("  "):
                self._read(message, line)
            elif line and not line.startswith("#"):
                message = self._message(line)

    def _read(self, message: Message, line: str) -> None:
        for number, inline, name, shape, kind, keeps_zero in _FIELD.findall(line):
            scalar = kind if kind in SCALARS else ""
            message.fields[int(number)] = Field(
                name,
                FieldShape.INLINE if inline else FieldShape(shape),
                scalar,
                None if scalar else self._message(inline or kind),
                bool(keeps_zero),
            )

    def _message(self, name: str) -> Message:
        return self.messages.setdefault(name, Message(name))


_tables = Tables(_SPECIAL + Path(__file__).with_name("messages.txt").read_text(encoding="utf-8"))
MESSAGES = _tables.messages
KINDS = _tables.kinds
ENVELOPE = MESSAGES["Envelope"]
