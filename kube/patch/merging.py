"""Strategic merge patch: a merge patch that knows how the lists of each kind are to be merged."""

from __future__ import annotations

from collections import deque
from typing import Any

from kube import definitions, lists
from kube.meta import Object
from kube.patch.values import PatchError, copy, in_order

Identity = tuple[str, Any] | None

_DELETE_VALUES = "$deleteFromPrimitiveList/"
_SET_ORDER = "$setElementOrder/"


def apply(target: Any, patch: Any, definition: str) -> Any:
    """Return target, an object of a definition, after a strategic merge patch; PatchError if that cannot be read."""
    if type(patch) is not dict:
        raise PatchError("A strategic merge patch is an object.")
    target = target if type(target) is dict else {}
    directive = patch.get("$patch", "merge")
    if directive == "replace":
        return {key: copy(item) for key, item in patch.items() if key != "$patch"}
    if directive == "delete":
        return {}
    if directive != "merge":
        raise PatchError(f"{str(directive)[:40]!r} is not a value of $patch; use merge, replace or delete.")
    result = _merged_fields(target, patch, definition)
    if (retained := patch.get("$retainKeys")) is not None:
        result = _retained(result, patch, retained)
    return in_order(result, target)


def _merged_fields(target: Object, patch: Object, definition: str) -> Object:
    # A field may be named by a value and by directives; it is merged once.
    names = dict.fromkeys(name for name in map(_field_of, patch) if name is not None)
    result = {key: copy(item) for key, item in target.items() if key not in names}
    for name in names:
        old, new = target.get(name), patch.get(name)
        if name in patch and new is None:
            continue
        rule = lists.rule(definition, name)
        if type(new) is dict and rule is not None and rule.strategy == "replace":
            result[name] = copy(new)
        elif type(new) is dict:
            result[name] = apply(old, new, definitions.part(definition, name))
        elif type(new) is list or name not in patch:
            result |= _list_field(name, old, patch, definition)
        else:
            result[name] = new
    return result


def _field_of(key: str) -> str | None:
    """Return the field that a key of a patch is about, or None for a directive about the object itself."""
    for prefix in (_DELETE_VALUES, _SET_ORDER):
        if key.startswith(prefix):
            return key.removeprefix(prefix)
    if key in ("$patch", "$retainKeys"):
        return None
    if key.startswith("$"):
        raise PatchError(f"{key[:100]!r} is not a directive of a strategic merge patch.")
    return key


def _retained(result: Object, patch: Object, retained: Any) -> Object:
    if not isinstance(retained, list):
        raise PatchError("$retainKeys is a list of field names.")
    strangers = [
        key for key, item in patch.items() if not key.startswith("$") and item is not None and key not in retained
    ]
    if strangers:
        raise PatchError(f"$retainKeys must name the fields that the patch sets; it lacks {strangers[0][:100]!r}.")
    return {key: item for key, item in result.items() if key in retained}


def _list_field(name: str, old: Any, patch: Object, definition: str) -> Object:
    """Return {name: list} after the patch, or nothing where there is neither an old nor a new list."""
    if name not in patch and type(old) is not list:
        return {} if old is None else {name: copy(old)}
    new, order, gone = (patch.get(key) for key in (name, _SET_ORDER + name, _DELETE_VALUES + name))
    for directive in (order, gone):
        if directive is not None and type(directive) is not list:
            raise PatchError(f"The directives of {name[:100]!r} are lists.")
    old = old if type(old) is list else []
    rule = lists.rule(definition, name)
    if rule is not None and rule.strategy.startswith("merge"):
        if rule.merge_key:
            return {name: _keyed(name, rule.merge_key, old, new, order, definitions.part(definition, name))}
        return {name: _as_set(old, new or [], order, gone or [])}
    return {name: copy(old if new is None else new)}


def _keyed(
    name: str, key: str, old: list[Any], new: list[Any] | None, order: list[Any] | None, definition: str
) -> list[Any]:
    """Merge lists whose items, of this definition, are told apart by the value of key."""
    patches = _items_by_key(name, key, new or [])
    if any(item.get("$patch") == "replace" for _, item in patches):
        return [copy(item) for _, item in patches if "$patch" not in item]
    before = _identities(old, key)
    result = {identity: copy(item) for identity, item in zip(before, old, strict=True)}
    for identity, item in patches:
        if item.get("$patch") == "delete":
            result.pop(identity, None)
        else:
            result[identity] = apply(result.get(identity), item, definition)
    names = _ordered(list(result), [identity for identity, _ in patches], before)
    if order is not None:
        names = _ordered(names, [_identity(item, key) for item in order], before)
    return [result[identity] for identity in names]


def _identities(items: list[Any], key: str) -> list[Identity]:
    """Identify each item by its key; an item without one, or with a repeated one, by its index."""
    indexes: dict[Identity, int] = {}
    for index, item in enumerate(items):
        identity = _identity(item, key)
        indexes[("", index) if identity is None or identity in indexes else identity] = index
    return list(indexes)


def _items_by_key(name: str, key: str, items: list[Any]) -> list[tuple[Identity, Object]]:
    keyed = []
    for item in items:
        if type(item) is not dict:
            raise PatchError(f"The items of {name[:100]!r} in a strategic merge patch are objects.")
        identity = _identity(item, key)
        if identity is None and item.get("$patch") != "replace":
            raise PatchError(f"map: {name} does not contain declared merge key: {key}")
        keyed.append((identity, item))
    return keyed


def _identity(item: Any, key: str) -> Identity:
    """Return the identity of an item of a keyed list, or None if it lacks the key."""
    value = item.get(key) if type(item) is dict else None
    return None if value is None or isinstance(value, dict | list) else _value_identity(value)


def _value_identity(value: Any) -> Identity:
    return ("bool" if isinstance(value, bool) else "value", value)


def _as_set(old: list[Any], new: list[Any], order: list[Any] | None, gone: list[Any]) -> list[Any]:
    for values in (old, new, order or [], gone):
        if any(isinstance(value, dict | list) for value in values):
            raise PatchError("A list that is merged as a set holds plain values only.")
    before = list(map(_value_identity, old))
    first = list(map(_value_identity, new))
    without = set(map(_value_identity, gone))
    result = {_value_identity(value): value for value in old if _value_identity(value) not in without}
    result |= dict(zip(first, new, strict=True))
    names = _ordered(list(result), first, before)
    if order is not None:
        names = _ordered(names, list(map(_value_identity, order)), before)
    return [result[identity] for identity in names]


def _ordered(items: list[Identity], first: list[Identity], before: list[Identity]) -> list[Identity]:
    """Order items as Kubernetes does: those named in `first` in that order, the others woven in.

    Another item goes before a named one only where it stood before it in the
    old list (`before`); so new items come ahead of the old ones that follow.
    """
    ranks = {item: rank for rank, item in enumerate(first)}
    old = {item: rank for rank, item in enumerate(before)}
    named = deque(sorted((item for item in items if item in ranks), key=lambda item: ranks[item]))
    others = deque(item for item in items if item not in ranks)
    result: list[Identity] = []
    while named and others:
        left, right = old.get(others[0]), old.get(named[0])
        earlier = left is not None and right is not None and left < right
        result.append((others if earlier else named).popleft())
    return [*result, *named, *others]
