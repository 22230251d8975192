"""The JSON patch (RFC 6902) that turns one object into another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kube.patch.values import copy, same


def between(source: Any, goal: Any, path: str = "") -> Iterator[dict[str, Any]]:
    """Yield the operations that turn source into goal, each for the smallest part that differs.

    A list that becomes longer or shorter is replaced whole.
    """
    if type(source) is dict and type(goal) is dict:
        yield from ({"op": "remove", "path": f"{path}/{_step(key)}"} for key in source if key not in goal)
        for key, item in goal.items():
            if key in source:
                yield from between(source[key], item, f"{path}/{_step(key)}")
            else:
                yield {"op": "add", "path": f"{path}/{_step(key)}", "value": copy(item)}
    elif type(source) is list and type(goal) is list and len(source) == len(goal):
        for index, (before, after) in enumerate(zip(source, goal, strict=True)):
            yield from between(before, after, f"{path}/{index}")
    elif not same(source, goal):
        yield {"op": "replace", "path": path, "value": copy(goal)}


def _step(key: str) -> str:
    """Write a key as one step of a JSON pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")
