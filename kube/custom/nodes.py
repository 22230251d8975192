"""A structural schema as a tree of nodes, made once and walked for every object.

A schema that was admitted is structural; a keyword of a wrong type, which only
a write past admission could have left, counts as absent.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kube import lenient
from kube.custom import formats

META_FIELDS = frozenset({"apiVersion", "kind", "metadata"})
INT_OR_STRING = ("integer", "string")


@dataclass(slots=True, eq=False)
class Node:
    """One schema; what is None or empty is not declared."""

    types: tuple[str, ...] = ()
    nullable: bool = False
    format: str = ""
    enum: list[Any] | None = None
    default: Any = None
    # numbers
    minimum: float | None = None
    maximum: float | None = None
    exclusive_minimum: bool = False
    exclusive_maximum: bool = False
    multiple_of: float | None = None
    # texts
    min_length: int | None = None
    max_length: int | None = None
    pattern: str = ""
    # lists
    items: Node | None = None
    min_items: int | None = None
    max_items: int | None = None
    list_type: str = ""
    map_keys: tuple[str, ...] = ()
    # objects
    properties: dict[str, Node] = field(default_factory=dict)
    additional: Node | bool | None = None
    required: tuple[str, ...] = ()
    min_properties: int | None = None
    max_properties: int | None = None
    preserve: bool = False
    embedded: bool = False
    # all of these look at the same value
    all_of: tuple[Node, ...] = ()
    any_of: tuple[Node, ...] = ()
    one_of: tuple[Node, ...] = ()
    negated: Node | None = None
    # whether something in the tree asks for a second look
    has_lists: bool = field(init=False)
    has_embedded: bool = field(init=False)
    has_defaults: bool = field(init=False)

    @property
    def children(self) -> list[Node]:
        """The nodes of the values inside this one's."""
        inner = [*self.properties.values()]
        if self.items is not None:
            inner.append(self.items)
        if isinstance(self.additional, Node):
            inner.append(self.additional)
        return inner

    def child(self, name: str) -> Node | None:
        """Return the node of a field, None where none is declared."""
        node = self.properties.get(name)
        if node is not None:
            return node
        return self.additional if isinstance(self.additional, Node) else None


def compiled(schema: Any) -> Node:
    """Return the tree of a schema."""
    schema = schema if isinstance(schema, dict) else {}
    node = Node(
        types=_types(schema),
        nullable=schema.get("nullable") is True,
        format=_format(schema),
        enum=lenient.sequence(schema, "enum") or None,
        default=schema.get("default"),
        pattern=lenient.text(schema, "pattern"),
        list_type=lenient.text(schema, "x-kubernetes-list-type"),
        map_keys=tuple(lenient.texts(schema, "x-kubernetes-list-map-keys")),
        required=tuple(lenient.texts(schema, "required")),
        preserve=schema.get("x-kubernetes-preserve-unknown-fields") is True,
        embedded=schema.get("x-kubernetes-embedded-resource") is True,
    )
    _bounds(node, schema)
    _inner(node, schema)
    _marks(node)
    return node


def _types(schema: dict[str, Any]) -> tuple[str, ...]:
    if schema.get("x-kubernetes-int-or-string") is True:
        return INT_OR_STRING
    kind = lenient.text(schema, "type")
    return (kind,) if kind else ()


def _format(schema: dict[str, Any]) -> str:
    name = lenient.text(schema, "format")
    return name if name and formats.is_supported(name) else ""


def _bounds(node: Node, schema: dict[str, Any]) -> None:
    node.minimum = _number(schema, "minimum")
    node.maximum = _number(schema, "maximum")
    node.exclusive_minimum = schema.get("exclusiveMinimum") is True
    node.exclusive_maximum = schema.get("exclusiveMaximum") is True
    node.multiple_of = _number(schema, "multipleOf")
    node.min_length = lenient.whole(schema, "minLength")
    node.max_length = lenient.whole(schema, "maxLength")
    node.min_items = lenient.whole(schema, "minItems")
    node.max_items = lenient.whole(schema, "maxItems")
    node.min_properties = lenient.whole(schema, "minProperties")
    node.max_properties = lenient.whole(schema, "maxProperties")


def _number(schema: dict[str, Any], key: str) -> float | None:
    value = schema.get(key)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _inner(node: Node, schema: dict[str, Any]) -> None:
    if isinstance(schema.get("items"), dict):
        node.items = compiled(schema["items"])
    node.properties = {name: compiled(inner) for name, inner in lenient.mapping(schema, "properties").items()}
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict):
        node.additional = compiled(additional)
    elif isinstance(additional, bool):
        node.additional = additional
    node.all_of = tuple(map(compiled, lenient.sequence(schema, "allOf")))
    node.any_of = tuple(map(compiled, lenient.sequence(schema, "anyOf")))
    node.one_of = tuple(map(compiled, lenient.sequence(schema, "oneOf")))
    if isinstance(schema.get("not"), dict):
        node.negated = compiled(schema["not"])


def _marks(node: Node) -> None:
    children = node.children
    node.has_lists = node.list_type in ("set", "map") or any(child.has_lists for child in children)
    node.has_embedded = node.embedded or any(child.has_embedded for child in children)
    node.has_defaults = any(child.has_defaults or child.default is not None for child in children)
