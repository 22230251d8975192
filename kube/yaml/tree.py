"""YAML text to plain values, with the place of every field and bounds on what a text may cost.

Built from the parser's events with a stack of its own: PyYAML's composer recurses in C, where a
text of nothing but brackets ends the process instead of raising. Both bounds hold while values are
made, so a text that is refused has cost no more than one that is not.
"""

from __future__ import annotations

import base64
import binascii
import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from kube.yaml import scalar
from kube.yaml.problem import Problem, YamlError

Plain = Callable[[str], scalar.Scalar]

MAX_LEVELS = 128  # in each other; what walks an object takes a few frames for each
MAX_VALUES = 50_000  # that a document may stand for, aliases written out; the largest object has some 20,000
MAX_DUPLICATES = 50  # that are listed
LONG_TEXT = 100  # characters of a text that count as one value more where an alias repeats it
_PREFIX = "tag:yaml.org,2002:"


@dataclass(slots=True)
class Tree:
    """One YAML document: its value, where it begins, and the place (line, column) of each field path.

    Two things are listed apart from the problems, since the caller decides
    what becomes of them: keys that stand twice, of which the last counts, and
    odd keys, which YAML 1.1 takes for something else than a text (`on`, `1`)
    and which are taken as they are written.
    """

    value: Any
    line: int
    positions: dict[str, tuple[int, int]]
    problems: list[Problem]
    duplicates: list[Problem]
    odd_keys: list[Problem]


@dataclass(slots=True)
class _Open:
    """A list or mapping whose end has not been reached."""

    value: list[Any] | dict[str, Any]
    path: str
    anchor: str | None
    size: int = 1
    key: str | None = None
    merging: bool = False
    merged: list[Any] = field(default_factory=list)


def child(path: str, key: str) -> str:
    """Return the path of a mapping's entry, as Kubernetes writes field paths."""
    if not key or not key.replace("_", "").replace("-", "").isalnum():
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


def trees(text: str | bytes, plain: Plain = scalar.resolve) -> Iterator[Tree]:
    """Yield the documents of a text, empty ones left out; raises yaml.YAMLError or YamlError.

    `plain` resolves a value without quotes and tag.
    """
    builder = _Builder(plain)
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.DocumentStartEvent):
            builder = _Builder(plain)
        elif isinstance(event, yaml.DocumentEndEvent):
            if builder.value is not None:
                yield builder.tree()
        elif isinstance(event, yaml.NodeEvent | yaml.CollectionEndEvent):
            builder.take(event)


class _Builder:
    """Builds one document's value from its events."""

    def __init__(self, plain: Plain) -> None:
        self._plain = plain
        self.value: Any = None
        self.line = 0
        self.positions: dict[str, tuple[int, int]] = {}
        self.problems: list[Problem] = []
        self.duplicates: list[Problem] = []
        self.odd_keys: list[Problem] = []
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Any, int] | None] = {}
        self._values = 0

    def tree(self) -> Tree:
        """Return the document."""
        return Tree(self.value, self.line, self.positions, self.problems, self.duplicates, self.odd_keys)

    def take(self, event: yaml.Event) -> None:
        """Add the next event of the document."""
        self.line = self.line or _position(event)[0]
        if isinstance(event, yaml.CollectionEndEvent):
            self._close(event)
        elif self._wants_key():
            self._take_key(event)
        elif isinstance(event, yaml.ScalarEvent):
            self._count(event, 1)
            self._add(event, self._scalar(event), 1 + len(event.value) // LONG_TEXT)
        elif isinstance(event, yaml.AliasEvent):
            self._add(event, *self._alias(event))
        elif isinstance(event, yaml.CollectionStartEvent):
            self._start(event)

    def _count(self, event: yaml.Event, values: int) -> None:
        self._values += values
        if self._values > MAX_VALUES:
            message = f"The text stands for more than {MAX_VALUES:,} values, aliases written out; make it smaller."
            raise YamlError(self._problem(event, message))

    def _wants_key(self) -> bool:
        return bool(self._open) and isinstance(self._open[-1].value, dict) and self._open[-1].key is None

    def _take_key(self, event: yaml.Event) -> None:
        if not isinstance(event, yaml.ScalarEvent):
            message = "A key has to be text, not a list, mapping or alias."
            raise YamlError(self._problem(event, message, self._open[-1].path))
        holder = self._open[-1]
        key = event.value
        if event.implicit[0] and key == "<<":
            holder.key, holder.merging = key, True
            return
        value = scalar.resolve(key) if event.implicit[0] else key
        path = child(holder.path, key)
        if not isinstance(value, str):
            message = f"The key {key or '(empty)'} means {scalar.meaning(value)} in YAML; put it in quotes."
            self.odd_keys.append(self._problem(event, message, path))
        if isinstance(holder.value, dict) and key in holder.value:
            if len(self.duplicates) < MAX_DUPLICATES:
                message = f"The key {key} stands here and on line {self.positions[path][0]}."
                self.duplicates.append(self._problem(event, message, path))
        else:
            self.positions[path] = _position(event)
        holder.key = key

    def _scalar(self, event: yaml.ScalarEvent) -> scalar.Scalar:
        if event.tag is None or event.tag == "!":
            value = self._plain(event.value) if event.implicit[0] else event.value
        else:
            value = self._tagged(event)
        if isinstance(value, float) and not math.isfinite(value):
            self.problems.append(self._problem(event, f"{event.value} is not a number that JSON can hold."))
        return value

    def _tagged(self, event: yaml.ScalarEvent) -> scalar.Scalar:
        tag = (event.tag or "").removeprefix(_PREFIX)
        if tag == "str":
            return str(event.value)
        if tag == "binary":
            return self._binary(event)
        value = scalar.resolve(event.value)
        kinds: dict[str, type | tuple[type, ...]] = {
            "int": int,
            "float": (int, float),
            "bool": bool,
            "null": type(None),
        }
        if tag not in kinds:
            self.problems.append(self._problem(event, f"The tag {event.tag} is not known here; leave it out."))
        elif not isinstance(value, kinds[tag]) or (isinstance(value, bool) and tag != "bool"):
            self.problems.append(self._problem(event, f"{event.value} is not of the type that !!{tag} says."))
        return value

    def _binary(self, event: yaml.ScalarEvent) -> str:
        try:
            return base64.b64decode(event.value, validate=False).decode()
        except (binascii.Error, UnicodeDecodeError):
            self.problems.append(self._problem(event, "The value after !!binary is not base64 of a text."))
            return ""

    def _alias(self, event: yaml.AliasEvent) -> tuple[Any, int]:
        name = event.anchor
        if name not in self._anchors:
            raise YamlError(self._problem(event, f"*{name} refers to an anchor that is not set before: &{name}."))
        anchored = self._anchors[name]
        if anchored is None:
            raise YamlError(self._problem(event, f"*{name} refers to itself."))
        value, size = anchored
        self._count(event, size)
        return copy.deepcopy(value), size

    def _start(self, event: yaml.CollectionStartEvent) -> None:
        self._count(event, 1)
        if len(self._open) >= MAX_LEVELS:
            raise YamlError(self._problem(event, f"The text is nested more than {MAX_LEVELS} levels deep."))
        kind = "map" if isinstance(event, yaml.MappingStartEvent) else "seq"
        if event.tag not in (None, "!", _PREFIX + kind):
            self.problems.append(self._problem(event, f"The tag {event.tag} is not known here; leave it out."))
        if event.anchor:
            self._anchors[event.anchor] = None
        self._note_position(event)
        self._open.append(_Open({} if kind == "map" else [], self._path(), event.anchor))

    def _close(self, event: yaml.Event) -> None:
        done = self._open.pop()
        if isinstance(done.value, dict):
            for source in done.merged:
                done.value |= {key: value for key, value in source.items() if key not in done.value}
        if done.anchor:
            self._anchors[done.anchor] = (done.value, done.size)
        self._insert(event, done.value, done.size)

    def _add(self, event: yaml.Event, value: Any, size: int) -> None:
        anchor = getattr(event, "anchor", None)
        if anchor and isinstance(event, yaml.ScalarEvent):
            self._anchors[anchor] = (value, size)
        self._note_position(event)
        self._insert(event, value, size)

    def _insert(self, event: yaml.Event, value: Any, size: int) -> None:
        if not self._open:
            self.value = value
            return
        holder = self._open[-1]
        holder.size += size
        if isinstance(holder.value, list):
            holder.value.append(value)
        elif holder.merging:
            self._merge(event, holder, value)
        elif holder.key is not None:
            holder.value[holder.key] = value
        holder.key, holder.merging = None, False

    def _merge(self, event: yaml.Event, holder: _Open, value: Any) -> None:
        sources = value if isinstance(value, list) else [value]
        if not all(isinstance(source, dict) for source in sources):
            self.problems.append(self._problem(event, "<< takes a mapping, or a list of mappings."))
            return
        holder.merged.extend(sources)

    def _path(self) -> str:
        if not self._open:
            return ""
        holder = self._open[-1]
        if isinstance(holder.value, list):
            return f"{holder.path}[{len(holder.value)}]"
        return child(holder.path, holder.key or "")

    def _note_position(self, event: yaml.Event) -> None:
        if self._open and isinstance(self._open[-1].value, list):
            self.positions[self._path()] = _position(event)

    def _problem(self, event: yaml.Event, message: str, path: str = "") -> Problem:
        return Problem(message, *_position(event), path or self._path())


def _position(event: yaml.Event) -> tuple[int, int]:
    mark = event.start_mark
    return (mark.line + 1, mark.column + 1) if mark is not None else (0, 0)
