"""Bringing an object into the shape of its schema: unknown fields go, nulls go, defaults come.

The functions change the object that they are given, which the caller owns.
Source: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/{pruning,defaulting}.
"""

from __future__ import annotations

from typing import Any

from kube.custom.nodes import META_FIELDS, Node

MAX_REPORTED = 100  # unknown fields of one object that are reported


def prune(obj: Any, node: Node) -> list[str]:
    """Drop the fields that the schema does not have; return the paths of the first of them, sorted."""
    dropped: list[str] = []
    _prune(obj, node, "", dropped, root=True)
    return sorted(dropped[:MAX_REPORTED])


def _prune(value: Any, node: Node | None, path: str, dropped: list[str], *, root: bool = False) -> None:
    if isinstance(value, dict):
        if node is None:
            dropped += (_join(path, key) for key in value)
            value.clear()
        else:
            _prune_fields(value, node, path, dropped, root=root)
    elif isinstance(value, list):
        if node is not None and node.preserve and node.items is None:
            return
        for index, item in enumerate(value):
            _prune_item(item, node, f"{path}[{index}]", dropped)


def _prune_item(item: Any, node: Node | None, path: str, dropped: list[str]) -> None:
    inner = None if node is None else node.items
    if node is not None and node.preserve:
        # Only an item's own schema counts below a list that preserves unknown fields.
        if inner is not None:
            _prune_preserving(item, inner, path, dropped)
        return
    _prune(item, inner, path, dropped)


def _prune_preserving(value: Any, node: Node, path: str, dropped: list[str]) -> None:
    """Prune below a node as if it preserved unknown fields itself."""
    if isinstance(value, dict):
        for key, item in value.items():
            if not (node.embedded and key in META_FIELDS):
                _prune_known(item, node, key, path, dropped)
    elif isinstance(value, list) and node.items is not None:
        for index, item in enumerate(value):
            _prune_preserving(item, node.items, f"{path}[{index}]", dropped)


def _prune_known(item: Any, node: Node, key: str, path: str, dropped: list[str]) -> bool:
    """Prune a field that the node has; return whether it has it."""
    if key in node.properties:
        _prune(item, node.properties[key], _join(path, key), dropped)
    elif node.additional is not None:
        _prune(item, node.child(key), _join(path, key), dropped)
    else:
        return False
    return True


def _prune_fields(fields: dict[str, Any], node: Node, path: str, dropped: list[str], *, root: bool) -> None:
    unknown = []
    for key, item in fields.items():
        if (root or node.embedded) and key in META_FIELDS:
            continue
        if not _prune_known(item, node, key, path, dropped) and not node.preserve:
            unknown.append(key)
    for key in unknown:
        dropped.append(_join(path, key))
        del fields[key]


def _join(path: str, key: Any) -> str:
    return f"{path}.{key}" if path else str(key)


def drop_nulls(value: Any, node: Node | None) -> None:
    """Drop the fields that are null, may not be and have no default; those with one get it from `default`."""
    if isinstance(value, dict):
        for key in [key for key, item in value.items() if _is_droppable(item, node, key)]:
            del value[key]
        for key, item in value.items():
            if item is not None:
                drop_nulls(item, None if node is None else node.child(key))
    elif isinstance(value, list):
        for item in value:
            drop_nulls(item, None if node is None else node.items)


def _is_droppable(item: Any, node: Node | None, key: str) -> bool:
    if item is not None or node is None:
        return False
    inner = node.child(key)
    return inner is not None and not inner.nullable and inner.default is None


def default(value: Any, node: Node | None) -> None:
    """Fill in the defaults, also inside what a default brought."""
    if node is None or not node.has_defaults:
        return
    if isinstance(value, dict):
        for key, inner in node.properties.items():
            if inner.default is not None and _is_missing(value, key, inner):
                value[key] = copied(inner.default)
        for key, item in value.items():
            inner_node = node.child(key)
            if item is None and key not in node.properties and _needs(inner_node):
                value[key] = copied(inner_node.default)  # type: ignore[union-attr]
            default(value[key], inner_node)
    elif isinstance(value, list) and node.items is not None:
        for index, item in enumerate(value):
            if item is None and _needs(node.items):
                value[index] = copied(node.items.default)
            default(value[index], node.items)


def _is_missing(fields: dict[str, Any], key: str, node: Node) -> bool:
    return key not in fields or (fields[key] is None and not node.nullable)


def _needs(node: Node | None) -> bool:
    return node is not None and not node.nullable


def copied(value: Any) -> Any:
    """Return a copy of a JSON value."""
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    return [copied(item) for item in value] if isinstance(value, list) else value
