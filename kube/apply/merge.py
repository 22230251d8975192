"""What server-side apply does to values: merge, compare, prune, each along a shape.

The semantics are those of Kubernetes' structured merge: fields are told
apart as `kube.apply.shape` says, and sets of them are `kube.apply.fieldset`
trees. Nothing changes its arguments; results share parts with them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from kube.apply import fieldset
from kube.apply.fieldset import LEAF, SELF, Fields, Path
from kube.apply.shape import MISSING, PLAIN, ItemError, Shape


class ConfigError(ValueError):
    """An applied configuration cannot be read, for the reason that the text gives with the path."""


def fields(config: Any, shape: Shape) -> Fields:
    """Return the fields that an applied configuration claims; ConfigError where items cannot be told apart."""
    return _claimed(config, shape, ())


def _claimed(value: Any, shape: Shape, path: Path) -> Fields:
    """Return what is claimed below a value that is divided, nothing for any other."""
    if not shape.divides(value):
        return LEAF
    result: Fields = {}
    if type(value) is dict:
        for key, item in value.items():
            step, inner = f"f:{key}", shape.of(key)
            below = _claimed(item, inner, (*path, step))
            if not inner.divides(item) or not item:
                result[step] = LEAF
            elif not shape.names(key):
                result[step] = {SELF: LEAF, **below} if below else LEAF
            elif below:
                result[step] = below
        return result
    inner = shape.item or PLAIN
    for step, item in zip(_distinct(value, shape, path), value, strict=True):
        below = _claimed(item, inner, (*path, step))
        result[step] = {SELF: LEAF, **below} if below else LEAF
    return result


def _distinct(items: Sequence[Any], shape: Shape, path: Path) -> list[str]:
    steps: dict[str, None] = {}
    for index, item in enumerate(items):
        try:
            step = shape.step(item)
        except ItemError as error:
            raise ConfigError(f"{fieldset.text(path)}: element {index}: {error}") from None
        if step in steps:
            raise ConfigError(f"{fieldset.text(path)}: duplicate entries for key {fieldset.text((step,))}")
        steps[step] = None
    return list(steps)


def merged(live: Any, config: Any, shape: Shape) -> Any:
    """Return the live value with the configuration laid over it; `fields` must have accepted the configuration.

    null in place of an object claims nothing, as an empty one does.
    """
    if config is None and shape.divides(live):
        return live
    if not shape.divides(config) or type(live) is not type(config):
        return config
    if type(config) is dict:
        result = dict(live)
        for key, item in config.items():
            result[key] = merged(live[key], item, shape.of(key)) if key in live else item
        return result
    steps = shape.steps(live)
    return config if steps is None else _merged_items(live, steps, config, shape)


def _merged_items(live: list[Any], steps: list[str], config: list[Any], shape: Shape) -> list[Any]:
    """Put the configuration's items in its order; a live item that is not in it keeps its place among the live ones.

    An item that the live list has more than once is replaced by the one of the configuration.
    """
    wanted = dict(zip(shape.steps(config) or (), config, strict=True))
    inner = shape.item or PLAIN
    live_items: dict[str, Any] = {}
    for step, item in zip(steps, live, strict=True):
        live_items[step] = MISSING if step in live_items else item
    waiting = deque(wanted)
    shared = deque(step for step in wanted if step in live_items)
    result: list[Any] = []

    def take(last: str | None) -> None:
        while waiting:
            step = waiting.popleft()
            before = live_items.get(step, MISSING)
            result.append(wanted[step] if before is MISSING else merged(before, wanted[step], inner))
            if step == last:
                return

    for step, item in zip(steps, live, strict=True):
        if step not in wanted:
            result.append(item)
        elif shared and step == shared[0]:
            take(shared.popleft())
    take(None)
    return result


def changes(old: Any, new: Any, shape: Shape) -> tuple[Fields, Fields]:
    """Return the fields that new has added or changed, and those that it has no more."""
    changed: Fields = {}
    removed: Fields = {}
    if old != new:
        _compare(old, new, shape, changed, removed)
    return changed, removed


def _compare(old: Any, new: Any, shape: Shape, changed: Fields, removed: Fields) -> None:
    """Compare two values that differ and are divided in the same way; others have no parts to speak of."""
    if type(old) is dict and type(new) is dict:
        for key, item in new.items():
            before = old.get(key, MISSING)
            if before != item or (type(before) is bool) != (type(item) is bool):
                _compare_part(f"f:{key}", before, item, shape.of(key), changed, removed)
        for key, item in old.items():
            if key not in new:
                removed[f"f:{key}"] = _all(item, shape.of(key))
        return
    before, after = _groups(old, shape), _groups(new, shape)
    inner = shape.item or PLAIN
    for step, items in after.items():
        _compare_items(step, before.get(step, []), items, inner, changed, removed)
    for step, items in before.items():
        if step not in after:
            removed[step] = _all(items[0], inner) if len(items) == 1 else LEAF


def _compare_part(step: str, old: Any, new: Any, shape: Shape, changed: Fields, removed: Fields) -> None:
    """Compare what is at a step; either side may be missing."""
    if old is MISSING:
        changed[step] = _all(new, shape)
    elif new is MISSING:
        removed[step] = _all(old, shape)
    elif type(old) is type(new) and (old or new) and _divided(old, shape) and _divided(new, shape):
        below: tuple[Fields, Fields] = ({}, {})
        _compare(old, new, shape, *below)
        for result, part in zip((changed, removed), below, strict=True):
            if part:
                result[step] = part
    else:
        changed[step] = _all(new, shape)
        if old and _divided(old, shape):
            removed[step] = {key: node for key, node in _all(old, shape).items() if key != SELF}


def _compare_items(step: str, old: list[Any], new: list[Any], shape: Shape, changed: Fields, removed: Fields) -> None:
    """Compare the items with one key. Where there are several, they have one manager together."""
    if len(old) <= 1 and len(new) <= 1:
        before = old[0] if old else MISSING
        if before != new[0]:
            _compare_part(step, before, new[0], shape, changed, removed)
    elif len(old) > 1 and len(new) > 1:
        if old != new:
            changed[step] = LEAF
    elif len(old) > 1:
        changed[step] = _all(new[0], shape)
    else:
        changed[step] = LEAF
        if old and (below := _all(old[0], shape)):
            removed[step] = {key: node for key, node in below.items() if key != SELF}


def _groups(items: list[Any], shape: Shape) -> dict[str, list[Any]]:
    groups: dict[str, list[Any]] = {}
    for item in items:
        groups.setdefault(shape.step(item), []).append(item)
    return groups


def _divided(value: Any, shape: Shape) -> bool:
    """Whether a value has parts with managers of their own; a stored list may hold items without their key."""
    return shape.divides(value) and (type(value) is dict or shape.steps(value) is not None)


def _all(value: Any, shape: Shape) -> Fields:
    """Return the node of a value that has come or gone with everything in it."""
    if not value or not _divided(value, shape):
        return LEAF
    result: Fields = {SELF: LEAF}
    if type(value) is dict:
        for key, item in value.items():
            result[f"f:{key}"] = _all(item, shape.of(key)) if type(item) in (dict, list) else LEAF
        return result
    inner = shape.item or PLAIN
    for step, items in _groups(value, shape).items():
        result[step] = _all(items[0], inner) if len(items) == 1 else LEAF
    return result


def pruned(value: Any, shape: Shape, last: Fields, owned: Fields) -> Any:
    """Return value without the fields of `last` that are not `owned` any more, with all that is in them.

    A named field that holds an object counts as owned by whoever owns
    something in it. MISSING when nothing is left of an object or list.
    """
    if not last or not _divided(value, shape):
        return value
    if type(value) is dict:
        result = {}
        for key, item in value.items():
            pruned_item = _pruned_item(f"f:{key}", item, shape.of(key), last, owned, named=shape.names(key))
            if pruned_item is not MISSING:
                result[key] = pruned_item
        return result if result or not value else MISSING
    inner = shape.item or PLAIN
    steps = shape.steps(value) or []
    pairs = [_pruned_item(step, item, inner, last, owned, named=False) for step, item in zip(steps, value, strict=True)]
    left = [item for item in pairs if item is not MISSING]
    return left if left or not value else MISSING


def _pruned_item(step: str, item: Any, shape: Shape, last: Fields, owned: Fields, *, named: bool) -> Any:
    before, now = last.get(step), owned.get(step)
    if before is None:
        return item
    if (named or not before or SELF in before) and not (now is not None and (named or not now or SELF in now)):
        return MISSING
    left = pruned(item, shape, before, now or {})
    if left is MISSING and now is not None and (not now or SELF in now):
        return type(item)()  # somebody wants it, if empty
    return left


def collapsed(found: Fields, shape: Shape) -> Fields:
    """Return a set whose fields below what has become atomic are replaced by the atomic one.

    What was atomic and is divided now stays as it is, as if it had always been divided.
    """
    result = {}
    for step, node in found.items():
        result[step] = node if not node or step == SELF else _collapsed(step, node, shape)
    return result


def _collapsed(step: str, node: Fields, shape: Shape) -> Fields:
    inner = shape.of(step[2:]) if step[0] == "f" else shape.item or PLAIN
    if inner.type == "atomic":
        return LEAF
    if inner.item is None and any(key[0] in "kvi" for key in node):
        return LEAF  # a list that has no keys any more
    return collapsed(node, inner)
