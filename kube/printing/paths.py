"""The JSONPath of a printed column, as client-go reads it.

Fields (`.spec.x`, `.metadata.labels.example\\.org/team`, `['x']`), indexes and
slices (`[0]`, `[-1]`, `[1:3]`), unions (`['a','b']`), everything (`[*]`, `.*`),
filters (`[?(@.type=="Ready")]`) and descent (`..x`). What is absent gives no
result. A path is parsed once and can then be followed in any object.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

LONGEST = 4096  # characters of a path
MOST = 10_000  # values that one step may give

Step = Callable[[list[Any]], list[Any]]
Operand = Callable[[Any], list[Any]]

_FIELD = re.compile(r"\.((?:\\.|[^\\\s.,\[\]$@{}])*)")
_DESCENT = re.compile(r"\.\.")
_FILTER = re.compile(r"""\[\?\(((?:[^"')]|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')*)\)\]""")
_BRACKET = re.compile(r"""\[((?:[^\]'"]|'[^']*'|"[^"]*")*)\]""")
_QUOTED = re.compile(r"""\s*(?:'([^']*)'|"([^"]*)")\s*""")
_SLICE = re.compile(r"\s*(-?\d{1,9})?\s*(?:(:)\s*(-?\d{1,9})?\s*(?::\s*(\d{1,9})?)?)?\s*", re.ASCII)
_COMPARISON = re.compile(r"([^!<>=]+)([!<>=]+)(.+)", re.DOTALL)
_NUMBER = re.compile(r"[+-]?\d{1,18}(\.\d{1,18})?", re.ASCII)
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class PathError(ValueError):
    """The text is not a path, or cannot be followed in this object; the message says why."""


def parse(text: str) -> Operand:
    """Return the function that gives all values at the path in an object; it raises nothing but PathError."""
    if len(text) > LONGEST:
        raise PathError(f"A path has at most {LONGEST} characters.")
    steps, position = [], 0
    while position < len(text):
        step, position = _step(text, position)
        steps.append(step)
    return _follow(steps)


def _follow(steps: list[Step]) -> Operand:
    def values(obj: Any) -> list[Any]:
        found = [obj]
        for step in steps:
            found = step(found)
            if len(found) > MOST:
                raise PathError(f"The path gives more than {MOST} values.")
        return found

    return values


def _step(text: str, position: int) -> tuple[Step, int]:
    """Read one step; return it and where the next one begins."""
    if match := _DESCENT.match(text, position):
        # `..x` is a descent and then the field, whose dot both share.
        after = match.end()
        return _descend, after - 1 if text[after : after + 1] not in ("", "[") else after
    if match := _FIELD.match(text, position):
        name = match[1]
        return (_everything if name == "*" else _field(re.sub(r"\\(.)", r"\1", name))), match.end()
    if match := _FILTER.match(text, position):
        return _filter(match[1]), match.end()
    if match := _BRACKET.match(text, position):
        return _bracket(match[1]), match.end()
    raise PathError(f"{text[position : position + 40]!r} is not a step of a path.")


def _field(name: str) -> Step:
    # A lone dot is the object itself.
    if not name:
        return list
    return lambda found: [each[name] for each in found if isinstance(each, dict) and name in each]


def _everything(matches: list[Any]) -> list[Any]:
    return [value for each in matches for value in _children(each)]


def _descend(matches: list[Any]) -> list[Any]:
    values, waiting = [], matches[::-1]
    while waiting:
        value = waiting.pop()
        if children := list(_children(value)):
            values.append(value)
            waiting.extend(reversed(children))
        if len(values) > MOST:
            raise PathError(f"The path gives more than {MOST} values.")
    return values


def _children(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _bracket(text: str) -> Step:
    if text.strip() == "*":
        return _everything
    parts = list(_parts(text))
    if len(parts) == 1:
        return parts[0]
    return lambda found: [value for part in parts for value in part(found)]


def _parts(text: str) -> Iterator[Step]:
    for part in text.split(","):
        if quoted := _QUOTED.fullmatch(part):
            yield _field(quoted[1] or quoted[2] or "")
        elif (numbers := _SLICE.fullmatch(part)) and part.strip():
            yield _slice(numbers)
        else:
            raise PathError(f"[{part[:40]}] is not an index, a slice or a quoted name.")


def _slice(numbers: re.Match[str]) -> Step:
    first, colon, last, step = numbers.groups()
    start = int(first or 0)
    end = int(last) if last else None
    if step and int(step) == 0:
        raise PathError("The step of a slice is at least 1.")

    def values(found: list[Any]) -> list[Any]:
        picked = []
        for each in found:
            if not isinstance(each, list):
                raise PathError("Only a list has an index.")
            low = start + len(each) if start < 0 else start
            high = len(each) if end is None else end + len(each) if end < 0 else end
            if not colon:
                high = low + 1
            if low != high and not 0 <= low < high <= len(each):
                raise PathError(f"The list has no items {low} to {high}.")
            picked += each[low : high : int(step or 1)]
        return picked

    return values


def _filter(text: str) -> Step:
    comparison = _COMPARISON.fullmatch(text)
    if comparison is None:
        present = _operand(text)
        return lambda found: [item for item in _items(found) if present(item)]
    left, right = _operand(comparison[1]), _operand(comparison[3])
    if comparison[2] not in _OPERATORS:
        raise PathError(f"{comparison[2]!r} is not an operator of a filter.")
    holds = _OPERATORS[comparison[2]]
    return lambda found: [item for item in _items(found) if _compare(left(item), right(item), holds)]


def _items(matches: list[Any]) -> Iterator[Any]:
    for each in matches:
        if not isinstance(each, list):
            raise PathError("Only a list can be filtered.")
        yield from each


def _operand(text: str) -> Operand:
    text = text.strip()
    if text.startswith("@"):
        return parse(text[1:])
    literal: Any
    if quoted := _QUOTED.fullmatch(text):
        literal = quoted[1] or quoted[2] or ""
    elif number := _NUMBER.fullmatch(text):
        literal = float(text) if number[1] else int(text)
    elif text in ("true", "false"):
        literal = text == "true"
    else:
        raise PathError(f"{text[:40]!r} is neither a value nor a path that starts with @.")
    return lambda _: [literal]


def _compare(left: list[Any], right: list[Any], holds: Callable[[Any, Any], bool]) -> bool:
    if not left or not right:
        return False
    if len(left) > 1 or len(right) > 1:
        raise PathError("A filter compares single values.")
    one, other = left[0], right[0]
    if not any(_both(one, other, kinds) for kinds in (str, bool, (int, float))):
        raise PathError("A filter compares texts, numbers or truths, each with its like.")
    return holds(one, other)


def _both(one: Any, other: Any, kinds: type | tuple[type, ...]) -> bool:
    return isinstance(one, kinds) and isinstance(other, kinds) and isinstance(one, bool) == isinstance(other, bool)
