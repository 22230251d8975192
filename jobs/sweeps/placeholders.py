"""Placeholders in a job's YAML: `{{name}}` stands for a value that each job of a sweep has of its own.

Values are put into the parsed document and never into its text, so no value can change the structure around it. A
placeholder that is a whole unquoted scalar takes the value as YAML would read it there: a number stays a number.
In quotes or inside a longer text the value is a string. Values are not searched for placeholders.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jobs.rules import job_text
from jobs.rules.job_text import Document
from kube import lenient
from kube.yaml import scalar
from kube.yaml.problem import Problem, YamlError
from kube.yaml.tree import child

# Where placeholders are in an object: a tree of the keys that lead to them, None at the scalar.
Spots = Mapping[Any, "Spots"] | None

# A name is also used as the name part of an annotation key, whose rules it obeys.
NAME = r"[A-Za-z](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?"
_WRITTEN = re.compile(rf"\{{\{{([ \t]*{NAME}[ \t]*)\}}\}}")
# YAML would read {{name}} as nested mappings; it is replaced by a text of the same length, so positions stay right.
_OPEN, _CLOSE, _WHOLE = "\ue000", "\ue001", "\ue002"
_MARK = re.compile(rf"{_OPEN}{_OPEN}[ \t]*({NAME})[ \t]*{_CLOSE}{_CLOSE}")
_RESERVED = re.compile(f"[{_OPEN}{_CLOSE}{_WHOLE}]")


@dataclass(frozen=True, slots=True)
class Template:
    """A job's YAML with placeholders: the document, where its placeholders are, and their names in order."""

    document: Document
    spots: Spots
    names: tuple[str, ...]

    def render(self, values: Mapping[str, str]) -> dict[str, Any]:
        """Return the job with the values filled in; parts without placeholders are shared. Every name needs a value."""
        filled: dict[str, Any] = _filled(self.document.object, self.spots, values)
        return filled

    def name(self, values: Mapping[str, str]) -> str:
        """Return the job's metadata.name with the values filled in, "" if it has none."""
        return _substituted(self._name, values)

    def stem(self) -> str:
        """Return the job's metadata.name without its placeholders, and without the dashes and dots that are left over."""
        bare = _MARK.sub("\0", self._name.removeprefix(_WHOLE))
        return re.sub(r"[-.]*\0[-.\0]*", "-", bare).strip("-.")

    @property
    def _name(self) -> str:
        return lenient.text(self.document.object, "metadata", "name")

    def holds_placeholder(self, *path: str) -> bool:
        """Whether the value at a path, or something below it, holds a placeholder."""
        spots = self.spots
        for key in path:
            if spots is None or key not in spots:
                return False
            spots = spots[key]
        return True


def read(text: str) -> Template:
    """Return the one job of a text as a template; raise YamlError with every problem and its line."""
    if reserved := _RESERVED.search(text):
        line = text.count("\n", 0, reserved.start()) + 1
        message = f"The character U+{ord(reserved[0]):04X} cannot stand in the YAML of a sweep; remove it."
        raise YamlError(Problem(message, line, 1))
    try:
        document = job_text.read(_WRITTEN.sub(rf"{_OPEN}{_OPEN}\1{_CLOSE}{_CLOSE}", text), plain=_plain)
    except YamlError as error:
        written = (
            Problem(_unmarked(each.message), each.line, each.column, _unmarked(each.field)) for each in error.problems
        )
        raise YamlError(*written) from None
    if problems := [*_keys(document.object, "", document)]:
        raise YamlError(*problems)
    names: dict[str, None] = {}
    spots = _spots(document.object, names)
    return Template(document, spots or {}, tuple(names))


def first(text: str) -> tuple[str, int] | None:
    """Return the first placeholder of a text as written, and its line, or None; also in comments and broken YAML."""
    match = _WRITTEN.search(text)
    return None if match is None else (match[0], text.count("\n", 0, match.start()) + 1)


def is_placeholder_name(text: str) -> bool:
    """Whether a text may be the name of a placeholder."""
    return re.fullmatch(NAME, text) is not None


def typed(value: str) -> scalar.Scalar:
    """Return what a value means in YAML without quotes; a number that JSON cannot hold stays text."""
    resolved = scalar.resolve(value)
    return value if isinstance(resolved, float) and not math.isfinite(resolved) else resolved


def _plain(text: str) -> scalar.Scalar:
    """Resolve an unquoted scalar; mark one that is a whole placeholder with _WHOLE."""
    return _WHOLE + text if _MARK.fullmatch(text) else scalar.resolve(text)


def _unmarked(text: str) -> str:
    """Return a text with its braces restored, for messages."""
    text = text.replace(_WHOLE, "").replace(_OPEN + _OPEN, "{{").replace(_CLOSE + _CLOSE, "}}")
    return text.replace(_OPEN, "{").replace(_CLOSE, "}")


def _keys(node: Any, path: str, document: Document) -> Iterator[Problem]:
    """Yield a problem for each key that holds a placeholder."""
    if isinstance(node, list):
        for index, item in enumerate(node):
            yield from _keys(item, f"{path}[{index}]", document)
    elif isinstance(node, dict):
        for key, item in node.items():
            below = child(path, key)
            if _MARK.search(key):
                written = _unmarked(key)
                message = f"The key {written} holds a placeholder; only values may hold one. Write the key out."
                yield Problem(message, document.line_of(below), 0, _unmarked(below))
            yield from _keys(item, below, document)


def _spots(node: Any, names: dict[str, None]) -> Spots:
    """Return where placeholders are below a mapping or a list, and add them to names in order."""
    items = node.items() if isinstance(node, dict) else enumerate(node)
    found: dict[Any, Spots] = {}
    for key, item in items:
        if isinstance(item, str):
            if marks := _MARK.findall(item):
                found[key] = None
                names.update(dict.fromkeys(marks))
        elif isinstance(item, (dict, list)) and (below := _spots(item, names)):
            found[key] = below
    return found


def _filled(node: Any, spots: Spots, values: Mapping[str, str]) -> Any:
    if spots is None:
        substituted = _substituted(node, values)
        return typed(substituted) if node.startswith(_WHOLE) else substituted
    copy = node.copy()
    for key, below in spots.items():
        copy[key] = _filled(node[key], below, values)
    return copy


def _substituted(text: str, values: Mapping[str, str]) -> str:
    return _MARK.sub(lambda found: values[found[1]], text.removeprefix(_WHOLE))
