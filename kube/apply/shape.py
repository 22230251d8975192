"""How each part of a kind is divided among its managers.

A value has a shape. A map or object is granular, so that each key has its own
managers, unless its shape is atomic. A list is atomic unless its shape tells
its items apart, by key fields or (a set) by their values. Kubernetes' own
kinds are described by `kube.lists` and `kube.definitions`, custom resources
by the `x-kubernetes-` keywords of their own schema (reference: kubernetes-api
§3.4, §3.5).

Keys of an object are *named* where a schema names them, and everywhere in
kinds without a schema of their own. A named field that holds an object
belongs to whoever manages something in it; any other key has managers of
its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

import msgspec

from kube import definitions, lists
from kube.apply import fieldset
from kube.meta import Object
from kube.resources import Resource

MISSING: Any = object()  # stands for a value that is not there
DEEPEST = 100  # levels of a schema that are looked at
_text = msgspec.json.Encoder().encode


class ItemError(ValueError):
    """An item of a list has nothing that tells it apart from the others."""


@dataclass(slots=True, eq=False)
class Shape:
    """How one value is divided; type is "", "atomic", "map" (a list with keys) or "set"."""

    type: str = ""
    keys: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)  # of key fields
    fields: Mapping[str, Shape] = field(default_factory=dict)
    named: bool = False  # all keys are named, those outside `fields` too
    other: Shape | None = None  # of keys outside `fields`; None: as this one
    item: Shape | None = None  # of a list's items

    def of(self, key: str) -> Shape:
        """Return the shape of the value of a key."""
        return self.fields.get(key) or self.other or self

    def names(self, key: str) -> bool:
        """Whether a key is named."""
        return self.named or key in self.fields

    def divides(self, value: Any) -> bool:
        """Whether parts of a value can have different managers."""
        if type(value) is dict:
            return self.type != "atomic"
        return type(value) is list and self.item is not None

    def step(self, item: Any) -> str:
        """Return the step to an item of a list that is divided; ItemError if there is none."""
        if self.type == "set":
            if item is None or isinstance(item, dict | list):
                raise ItemError("a set holds plain values only")
            return f"v:{_text(item).decode()}" if type(item) is str else fieldset.value_step(item)
        if type(item) is not dict:
            raise ItemError("associative list with keys may not have non-map elements")
        values = {}
        for key in self.keys:
            value = item.get(key, MISSING)
            if value is MISSING:
                value = self.defaults.get(key, MISSING)
            if value is not MISSING:
                values[key] = value
        if not values:
            raise ItemError(
                f"associative list with keys has an element that omits all key fields {list(self.keys)}"
                " (and doesn't have default values for any key fields)"
            )
        return fieldset.key_step(values)

    def steps(self, items: Sequence[Any]) -> list[str] | None:
        """Return the steps to all items, which need not differ; None when an item has none."""
        try:
            return [self.step(item) for item in items]
        except ItemError:
            return None


PLAIN = Shape(named=True)  # objects merge by key, lists are replaced
UNKNOWN = Shape()  # the same where no schema names the keys
ATOMIC = Shape("atomic")
_DEFAULTS = {"protocol": "TCP"}  # the only key field of Kubernetes' own lists that has one


def of(resource: Resource) -> Shape:
    """Return the shape of a kind's objects."""
    if resource.schema is None:
        return _object(definitions.of(resource))
    return _custom(_Schema(resource.schema))


@cache
def _object(definition: str) -> Shape:
    """Return the shape of a definition's objects."""
    if lists.is_atomic(definition):
        return ATOMIC
    return Shape(fields=_Fields(definition), named=True, other=PLAIN) if definition else PLAIN


class _Fields(Mapping[str, Shape]):
    """The shapes of a definition's fields, each made when it is first read: definitions may refer to themselves."""

    def __init__(self, definition: str) -> None:
        self._definition = definition
        self._shapes: dict[str, Shape] = {}

    def __getitem__(self, name: str) -> Shape:
        shape = self._shapes.get(name)
        if shape is None:
            if name not in definitions.properties(self._definition):
                raise KeyError(name)
            self._shapes[name] = shape = _field(self._definition, name)
        return shape

    def __iter__(self) -> Iterator[str]:
        return iter(definitions.properties(self._definition))

    def __len__(self) -> int:
        return len(definitions.properties(self._definition))


def _field(definition: str, name: str) -> Shape:
    part = _object(definitions.part(definition, name))
    rule = lists.rule(definition, name)
    if rule is None or not rule.type:
        return part
    if rule.type == "atomic":
        return ATOMIC
    defaults = {key: _DEFAULTS[key] for key in rule.keys if key in _DEFAULTS}
    return Shape(rule.type, rule.keys, defaults, item=part)


class _Schema:
    """A schema as a key of a cache: the same dict object is the same schema."""

    __slots__ = ("schema",)

    def __init__(self, schema: Object) -> None:
        self.schema = schema

    def __hash__(self) -> int:
        return id(self.schema)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Schema) and other.schema is self.schema


@lru_cache(maxsize=256)
def _custom(key: _Schema) -> Shape:
    root = _from_schema(key.schema, 0)
    fields = {**root.fields, "metadata": _object(definitions.OBJECT_META)}
    return Shape(fields=fields, named=root.named, other=root.other)


def _from_schema(schema: Any, depth: int) -> Shape:
    """Return the shape that a structural schema describes."""
    if not isinstance(schema, dict) or depth > DEEPEST:
        return UNKNOWN
    if schema.get("x-kubernetes-list-type") in ("map", "set"):
        return _list(schema, depth)
    if schema.get("x-kubernetes-map-type") == "atomic":
        return ATOMIC
    properties = schema.get("properties") or {}
    fields = {name: _from_schema(inner, depth + 1) for name, inner in properties.items()}
    if schema.get("x-kubernetes-embedded-resource"):
        fields["metadata"] = _object(definitions.OBJECT_META)
    more = schema.get("additionalProperties")
    return Shape(fields=fields, other=_from_schema(more, depth + 1) if type(more) is dict else UNKNOWN)


def _list(schema: Object, depth: int) -> Shape:
    item = schema.get("items") or {}
    keys = tuple(schema.get(definitions.MAP_KEYS) or ())
    properties = item.get("properties") or {}
    schema_defaults = {key: (properties.get(key) or {}).get("default") for key in keys}
    defaults = {key: value for key, value in schema_defaults.items() if value is not None}
    return Shape(schema["x-kubernetes-list-type"], keys, defaults, item=_from_schema(item, depth + 1))
