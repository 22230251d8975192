"""The three ways to patch an object: JSON merge patch, JSON patch, strategic merge patch.

None of them changes its arguments, and a result shares nothing with them, so
that either side may be changed afterwards without the other noticing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kube.meta import Object
from kube.patch import difference as differing
from kube.patch import merging, operations
from kube.patch.values import PatchError, PatchTooLargeError, copy, in_order

__all__ = ["PatchError", "PatchTooLargeError", "difference", "json_patch", "merge", "strategic"]


def merge(target: Object, patch: Object) -> Object:
    """Apply a JSON merge patch (RFC 7386): null removes a key, objects merge, everything else replaces."""
    result: Object = _guarded(_merge, target, patch)
    return result


def json_patch(target: Object, ops: Sequence[Object]) -> Object:
    """Apply a JSON patch (RFC 6902), all operations or, with a PatchError, none."""
    result = _guarded(operations.apply, target, ops)
    if not isinstance(result, dict):
        raise PatchError("The patch must leave an object.")
    return result


def difference(source: Object, goal: Object) -> list[Object]:
    """Return a JSON patch that turns source into goal, which `json_patch` then equals; empty when they are the same."""
    return list(differing.between(source, goal))


def strategic(target: Object, patch: Object, definition: str) -> Object:
    """Apply a strategic merge patch: like a merge patch, but lists with a merge key merge item by item.

    The directives `$patch`, `$retainKeys`, `$deleteFromPrimitiveList/x` and
    `$setElementOrder/x` are followed. definition is what `kube.definitions` calls the
    type of target.
    """
    result: Object = _guarded(merging.apply, target, patch, definition)
    return result


def _guarded(function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except RecursionError:
        raise PatchError("The patch or the object is nested too deeply.") from None


def _merge(target: Any, patch: Any) -> Any:
    if type(patch) is not dict:
        return copy(patch)
    result = {}
    if type(target) is dict:
        result = {key: copy(item) for key, item in target.items() if key not in patch}
    else:
        target = {}
    for key, item in patch.items():
        if item is not None:
            result[key] = _merge(target.get(key), item)
    return in_order(result, target)
