"""Sets of fields of an object, in the form in which `managedFields` writes them (FieldsV1).

A set is a tree of dicts. A key names a step into the object: `f:spec` a
field, `k:{"name":"web"}` the item of a list with that key, `v:"x"` a value in
a list that is a set, `i:0` an index in a list. A node is in the set when it
is empty or holds the key ".": so `{"f:a": {}, "f:b": {".": {}, "f:c": {}}}`
is the set of a, b and b.c. The root is never in a set; an empty root is the
empty set. Sets are values: no function changes its arguments, and results
share parts with them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from kube.errors import LONGEST_QUOTED, quoted

Fields = dict[str, "Fields"]
Path = tuple[str, ...]

SELF = "."
LEAF: Fields = {}
DEEPEST = 100  # levels; no stored object has more

_KINDS = "fkvi"
_encode = msgspec.json.Encoder(order="sorted").encode


class FieldsError(ValueError):
    """A text or tree is not a set of fields."""


def union(a: Fields, b: Fields) -> Fields:
    """Return the fields that are in a or in b."""
    if not a or not b:
        return a or b
    result = dict(a)
    for key, node in b.items():
        mine = result.get(key)
        result[key] = node if mine is None else _union(mine, node)
    return result


def _union(a: Fields, b: Fields) -> Fields:
    if not a or not b:
        more = a or b
        return more if not more or SELF in more else {SELF: LEAF, **more}
    return union(a, b)


def difference(a: Fields, b: Fields) -> Fields:
    """Return the fields of a that are not in b; what is below or above a field of b stays."""
    if not a or not b:
        return a
    result = {}
    for key, node in a.items():
        other = b.get(key)
        rest = node if other is None else _difference(node, other)
        if rest is not None:
            result[key] = rest
    return result


def _difference(a: Fields, b: Fields) -> Fields | None:
    if not a:
        return None if not b or SELF in b else a
    if not b:
        return {key: node for key, node in a.items() if key != SELF} if SELF in a else a
    return _node(difference(a, b))


def intersection(a: Fields, b: Fields) -> Fields:
    """Return the fields that are in both."""
    result = {}
    for key, node in a.items():
        other = b.get(key)
        both = None if other is None else _intersection(node, other)
        if both is not None:
            result[key] = both
    return result


def _intersection(a: Fields, b: Fields) -> Fields | None:
    if not a or not b:
        more = a or b
        return LEAF if not more or SELF in more else None
    return _node(intersection(a, b))


def _node(children: Fields) -> Fields | None:
    """Return a node as it is written: None for one without any field, a leaf for one with none below it."""
    if len(children) > 1:
        return children
    if not children:
        return None
    return LEAF if SELF in children else children


def holds(fields: Fields, path: Path) -> bool:
    """Whether the field at path is in the set."""
    node = fields
    for step in path:
        found = node.get(step)
        if found is None:
            return False
        node = found
    return bool(path) and (not node or SELF in node)


def paths(fields: Fields, prefix: Path = ()) -> Iterator[Path]:
    """Yield the fields of a set in Kubernetes' order: at each level those in the set, then what is below them."""
    steps = sorted((key for key in fields if key != SELF), key=_rank)
    for step in steps:
        if not fields[step] or SELF in fields[step]:
            yield (*prefix, step)
    for step in steps:
        yield from paths(fields[step], (*prefix, step))


def _rank(step: str) -> tuple[int, int, str]:
    return (_KINDS.index(step[0]), int(step[2:]) if step[0] == "i" else 0, step)


def of_paths(*found: Path) -> Fields:
    """Return the set of the fields at these paths."""
    result: Fields = {}
    for path in found:
        tree: Fields = LEAF
        for step in reversed(path):
            tree = {step: tree}
        result = union(result, tree)
    return result


def text(path: Path) -> str:
    """Write a path for people: `.spec.containers[name="web"].image`, `.metadata.finalizers[="x"]`."""
    return "".join(map(_step_text, path))


def _step_text(step: str) -> str:
    kind, content = step[0], step[2:]
    if kind == "f":
        return f".{content}"
    if kind == "k":
        items = msgspec.json.decode(content).items()
        return f"[{','.join(f'{name}={quoted(value)}' for name, value in items)}]"
    return f"[={content[:LONGEST_QUOTED]}]" if kind == "v" else f"[{content}]"


def key_step(values: dict[str, Any]) -> str:
    """Return the step to the item of a list that has these values in its key fields."""
    return f"k:{_encode(values).decode()}"


def value_step(value: Any) -> str:
    """Return the step to a value in a list that is a set."""
    if type(value) is float and value.is_integer():
        value = int(value)
    return f"v:{_encode(value).decode()}"


def parse(fields: Any) -> Fields:
    """Return FieldsV1 that somebody sent, its steps written the one way that is used here; FieldsError otherwise."""
    return _parsed(fields, 0)


def _parsed(fields: Any, depth: int) -> Fields:
    if type(fields) is not dict:
        raise FieldsError("FieldsV1 is made of objects.")
    if depth > DEEPEST:
        raise FieldsError(f"FieldsV1 is nested more than {DEEPEST} levels deep.")
    result: Fields = {}
    for key, node in fields.items():
        if key == SELF:
            if depth:
                result[SELF] = LEAF
            continue
        step, below = _step(key), _parsed(node, depth + 1)
        result[step] = _union(result[step], below) if step in result else below
    return LEAF if len(result) == 1 and SELF in result else result


def _step(key: Any) -> str:
    if type(key) is not str or key[1:2] != ":":
        raise FieldsError(f"{quoted(key)} is not a step of FieldsV1.")
    kind, content = key[0], key[2:]
    if kind == "f":
        return key
    try:
        value = msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError):
        value = None
    if kind == "k" and type(value) is dict and value:
        return key_step(value)
    if kind == "v" and value is not None and not isinstance(value, dict | list):
        return value_step(value)
    if kind == "i" and type(value) is int and value >= 0:
        return f"i:{value}"
    raise FieldsError(f"{quoted(key)} is not a step of FieldsV1.")
