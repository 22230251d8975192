"""What an object has besides what was written: field by field, with paths as people write them.

List items are matched by what names them, such as a variable's name, so that an added item is one
difference: `spec.containers[main].env[VC_TASK_INDEX]`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from jobs.rules.edits import Difference

LONGEST = 300  # characters of a value
_NAMES = {
    "containers": "name",
    "env": "name",
    "initContainers": "name",
    "ports": "containerPort",
    "tasks": "name",
    "tolerations": "key",
    "volumeMounts": "mountPath",
    "volumes": "name",
}


def of(before: Any, after: Any, path: str = "") -> Iterator[Difference]:
    """Yield the fields in which `after` differs from `before`; a missing field has the value ""."""
    if before == after:
        return
    parts = _parts(before, after, path.rpartition(".")[2])
    if parts is None:
        yield Difference(path, path, _text(before), _text(after))
        return
    one, other = parts
    is_list = isinstance(before, list) or isinstance(after, list)
    for key in [*other, *(key for key in one if key not in other)]:
        yield from of(one.get(key), other.get(key), f"{path}[{key}]" if is_list else f"{path}.{key}" if path else key)


def _parts(before: Any, after: Any, field: str) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
    """Return the parts of two values by matching keys; None if they are to be compared whole."""
    if isinstance(before, dict) and isinstance(after, dict):
        return before, after
    lists = [value for value in (before, after) if value is not None]
    if not all(isinstance(value, list) and all(isinstance(item, dict) for item in value) for value in lists):
        return None
    named = [_by_name(value or [], field) for value in (before, after)]
    if None in named:
        if before is None or after is None:
            return None
        named = [dict(zip(map(str, range(len(value))), value, strict=True)) for value in (before, after)]
    one, other = named
    return None if one is None or other is None or not (one or other) else (one, other)


def _by_name(items: list[dict[str, Any]], field: str) -> dict[str, Any] | None:
    """Return the items of a list by their names; None if names are missing or not unique."""
    names = [str(item.get(_NAMES.get(field, ""), "")) for item in items]
    return dict(zip(names, items, strict=True)) if all(names) and len(set(names)) == len(names) else None


def _text(value: Any) -> str:
    """Return a value as one line; of a mapping of just name and value, the value."""
    if value is None:
        return ""
    if isinstance(value, dict) and value.keys() == {"name", "value"}:
        value = value["value"]
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = text or '""'
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
