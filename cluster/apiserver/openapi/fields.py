"""Which fields of an object its kind does not know, for `fieldValidation`.

The published schemas decide, which know every field of a kind; the structs
are views that may leave fields out. Each definition is translated once into a
tree that keeps names only, because every write of every client asks.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from cluster.apiserver.openapi.definitions import REFERENCE, definitions
from kube.custom import structural

if TYPE_CHECKING:
    from kube.meta import Object
    from kube.resource import Resource

MOST = 100  # an answer longer than this helps nobody
DIRECTIVES = ("$patch", "$retainKeys", "$setElementOrder/", "$deleteFromPrimitiveList/")
EMBEDDED = ("apiVersion", "kind", "metadata")

# Spellings of Volcano's own example jobs that admission accepts, where Kubernetes' schema has no place for them.
_OLDER = {
    "jobs.batch.volcano.sh": re.compile(
        r"spec\.(tasks|taskSpecs)\[\d+\]\.template\.spec\.priorityClass|spec\.volumes\[\d+\]\.claim"
    )
}


class Node:
    """What is known of a value: the names of its fields, or what its items or values are. Empty: anything."""

    __slots__ = ("fields", "inner")

    def __init__(self) -> None:
        self.fields: dict[str, Node] | None = None
        self.inner: Node | None = None


_ANYTHING = Node()
_nodes: dict[str, Node] = {}
_roots: dict[str, tuple[Resource, Node]] = {}


def unknown_fields(resource: Resource, obj: Object) -> list[str]:
    """Return the paths of the fields that the kind does not know, such as `spec.containers[0].imagee`."""
    if resource.schema is not None:
        return structural.unknown_fields(structural.of(resource), obj) if isinstance(obj, dict) else []
    known, node = _roots.get(resource.id, (None, _ANYTHING))
    if known is not resource:
        node = _compiled(definitions[definitions.of(resource)])
        _roots[resource.id] = (resource, node)
    found: list[str] = []
    _walk(node, obj, "", found)
    older = _OLDER.get(resource.id)
    return [path for path in found if older is None or not older.fullmatch(path)]


def written(change: Any, how: str) -> list[Any]:
    """Return objects with the fields that a patch gives values to; how is `merge`, `strategic` or `json`.

    A field that a patch removes may be unknown: that is how one gets rid of it.
    """
    if how != "json":
        return [_without_directives(change, strategic=how == "strategic")]
    return [
        _placed(str(operation.get("path", "")), operation.get("value"))
        for operation in (change if isinstance(change, list) else ())
        if isinstance(operation, dict) and operation.get("op") in ("add", "replace")
    ]


def _without_directives(value: Any, *, strategic: bool) -> Any:
    if type(value) is dict:
        return {
            key: _without_directives(item, strategic=strategic)
            for key, item in value.items()
            if item is not None and not (strategic and key.startswith(DIRECTIVES))
        }
    if type(value) is list:
        return [_without_directives(item, strategic=strategic) for item in value]
    return value


def _placed(pointer: str, value: Any) -> Any:
    """Return an object that has value where a JSON pointer says."""
    for part in reversed(pointer.split("/")[1:]):
        if part == "-" or part.isdecimal():
            before = int(part) if part.isdecimal() and len(part) < 3 else 0
            value = [*([None] * before), value]
        else:
            value = {part.replace("~1", "/").replace("~0", "~"): value}
    return value


def _walk(node: Node, value: Any, path: str, found: list[str]) -> None:
    if len(found) >= MOST:
        return
    if type(value) is dict:
        if node.fields is not None:
            _walk_fields(node.fields, value, f"{path}." if path else "", found)
        elif node.inner is not None:
            for name, item in value.items():
                _walk(node.inner, item, f"{path}.{name}", found)
    elif type(value) is list and node.inner is not None and node.fields is None:
        for index, item in enumerate(value):
            _walk(node.inner, item, f"{path}[{index}]", found)


def _walk_fields(fields: dict[str, Node], value: Object, prefix: str, found: list[str]) -> None:
    for name, item in value.items():
        inner = fields.get(name)
        if inner is None:
            found.append(prefix + name)
        elif inner is not _ANYTHING and item:
            _walk(inner, item, prefix + name, found)


def _compiled(schema: Object) -> Node:
    if "$ref" in schema:
        return _named(schema["$ref"].removeprefix(REFERENCE))
    alternatives: list[Object] = schema.get("allOf") or []
    if len(alternatives) == 1 and "properties" not in schema:
        return _compiled(alternatives[0])
    node = Node()
    _fill(node, schema)
    return node if node.fields is not None or node.inner is not None else _ANYTHING


def _named(name: str) -> Node:
    """Return the node of a definition; it may refer to itself."""
    if name not in _nodes:
        _nodes[name] = node = Node()
        _fill(node, definitions[name])
        if node.fields is None and node.inner is None:
            _nodes[name] = _ANYTHING
    return _nodes[name]


def _fill(node: Node, schema: Object) -> None:
    properties = schema.get("properties")
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return
    values = schema.get("additionalProperties") or schema.get("items")
    if properties:
        node.fields = {name: _compiled(inner) for name, inner in properties.items()}
        if schema.get("x-kubernetes-embedded-resource"):
            node.fields = {**dict.fromkeys(EMBEDDED, _ANYTHING), **node.fields}
    elif isinstance(values, dict):
        inner = _compiled(values)
        node.inner = None if inner is _ANYTHING else inner
