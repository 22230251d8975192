"""Lists that are sets or maps, and objects inside objects.

Sources: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/{listtype,objectmeta}.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from kube import errors, names, schema
from kube.custom.nodes import Node
from kube.definitions import OBJECT_META
from kube.errors import Cause

_encode = msgspec.json.Encoder(order="deterministic").encode


def check_lists(value: Any, node: Node | None, path: str = "") -> Iterator[Cause]:
    """Yield what appears twice in a list of type set, or under one key in a list of type map."""
    if node is None or not node.has_lists:
        return
    if isinstance(value, dict):
        for key, item in value.items():
            yield from check_lists(item, node.child(key), f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        if node.list_type == "set":
            yield from (errors.duplicate(f"{path}[{i}]", value[i]) for i in _repeated(value))
        elif node.list_type == "map":
            yield from _check_map(value, node, path)
        for index, item in enumerate(value):
            yield from check_lists(item, node.items, f"{path}[{index}]")


def _check_map(value: list[Any], node: Node, path: str) -> Iterator[Cause]:
    for index, item in enumerate(value):
        if item is not None and not isinstance(item, dict):
            yield errors.invalid(f"{path}[{index}]", item, "must be an object for an array of list-type map")
            return
    keys = [{key: item[key] for key in node.map_keys if key in (item or {})} for item in value]
    yield from (errors.duplicate(f"{path}[{i}]", keys[i]) for i in _repeated(keys))


def _repeated(items: Sequence[Any]) -> Iterator[int]:
    """Yield the index of the second appearance of everything that appears twice."""
    seen: dict[bytes, int] = {}
    for index, item in enumerate(items):
        body = _encode(item)
        times = seen[body] = seen.get(body, 0) + 1
        if times == 2:
            yield index


def check_embedded(value: Any, node: Node | None, path: str = "") -> Iterator[Cause]:
    """Yield what keeps an embedded resource from being one: its apiVersion, kind and metadata."""
    if node is None or not node.has_embedded:
        return
    if isinstance(value, dict):
        if node.embedded:
            yield from _check_resource(value, path)
        for key, item in value.items():
            yield from check_embedded(item, node.child(key), f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from check_embedded(item, node.items, f"{path}[{index}]")


def _check_resource(value: dict[str, Any], path: str) -> Iterator[Cause]:
    for field in ("apiVersion", "kind"):
        if field not in value:
            yield errors.required(f"{path}.{field}")
        elif not isinstance(value[field], str):
            yield errors.invalid(f"{path}.{field}", value[field], "must be a string")
        elif not value[field]:
            yield errors.invalid(f"{path}.{field}", value[field], "must not be empty")
    version, kind = value.get("apiVersion"), value.get("kind")
    if isinstance(version, str) and version.count("/") > 1:
        detail = f"unexpected GroupVersion string: {version}"
        yield errors.invalid(f"{path}.apiVersion", version, detail)
    if isinstance(kind, str) and kind and (wrong := names.dns1035_label(kind.lower())):
        detail = f"may have mixed case, but should otherwise match: {wrong}"
        yield errors.invalid(f"{path}.kind", kind, detail)
    if "metadata" in value:
        yield from _check_metadata(value["metadata"], f"{path}.metadata")


def _check_metadata(metadata: Any, path: str) -> Iterator[Cause]:
    if not isinstance(metadata, dict):
        yield errors.invalid(path, metadata, "must be an object")
        return
    yield from schema.check(metadata, OBJECT_META, path)
    labels = metadata.get("labels")
    for key, text in (labels if isinstance(labels, dict) else {}).items():
        if wrong := names.qualified_name(key):
            yield errors.invalid(f"{path}.labels", key, wrong)
        elif isinstance(text, str) and (wrong := names.label_value(text)):
            yield errors.invalid(f"{path}.labels", text, wrong)
