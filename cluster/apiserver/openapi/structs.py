"""Schemas of the kinds that are described by msgspec structs alone: Volcano's and the project's own."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import msgspec.inspect as mi

from cluster.apiserver.openapi import descriptions, facts
from kube import lists
from kube import schema as checks
from kube.kinds.fields import INT32_MAX, INT64_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from msgspec import Struct

    from kube.meta import Object

TYPE_FIELDS = {
    "apiVersion": "The version of the schema of this object, with its group: group/version.",
    "kind": "The kind of this object, in CamelCase. It cannot be changed.",
}
# Modules whose structs are views of Kubernetes' own types, and where those are defined.
_UPSTREAM = {
    "kube.kinds.core": facts.CORE,
    "kube.kinds.pod": facts.CORE,
    "kube.meta": facts.META,
}
_GENERIC = frozenset({"Condition"})  # a view of many types with the same purpose
_FORMATS = {
    "quantity": facts.QUANTITY,
    "int-or-string": facts.INT_OR_STRING,
    "date-time": facts.TIME,
}
_PLAIN = {
    mi.StrType: {"type": "string"},
    mi.BoolType: {"type": "boolean"},
    mi.FloatType: {"type": "number", "format": "double"},
}
_FREE: Object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_LIMITS = frozenset({-INT32_MAX - 1, INT32_MAX, -INT64_MAX - 1, INT64_MAX})


def upstream_home(struct: type[Struct]) -> str:
    """Return the prefix of the definition that struct is a view of; empty when it is a type of its own."""
    return "" if struct.__name__ in _GENERIC else _UPSTREAM.get(struct.__module__, "")


def description(struct: type[Struct]) -> str:
    """Return what a struct says of itself."""
    return " ".join((inspect.getdoc(struct) or "").split())


def below(struct: type[Struct]) -> Iterator[type[Struct]]:
    """Return struct and all structs that its fields hold."""
    found, waiting = set(), [struct]
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            yield one
            waiting.extend(checks.parts(one).values())


def schema(struct: type[Struct], name: str, refer: Callable[[type[Struct] | str], Object]) -> Object:
    """Return the schema of a struct, whose definition has this name; refer returns a reference to what a field holds."""
    properties: Object = {}
    required = []
    for field in checks.info(struct).fields:
        wire = field.encode_name
        properties[wire] = _field(struct.__name__, name, wire, field.type, refer)
        if checks.marks(field.type)[1]:
            required.append(wire)
    for alias, wire in descriptions.ALIASES.get(struct.__name__, {}).items():
        older = {**properties[wire], "description": f"An older name of {wire}, under which it is stored."}
        properties[alias] = older
    found: Object = {
        "description": description(struct),
        "type": "object",
        "properties": dict(sorted(properties.items())),
    }
    return {**found, "required": required} if required else found


def _field(struct: str, name: str, wire: str, node: mi.Type, refer: Callable[..., Object]) -> Object:
    special = descriptions.REFERENCES.get(f"{struct}.{wire}")
    content = refer(special) if special else _type(node, refer)
    text = TYPE_FIELDS.get(wire) if wire in TYPE_FIELDS and name.endswith(f".{struct}") else None
    text = descriptions.FIELDS.get(f"{struct}.{wire}") or text or descriptions.COMMON.get(wire, "")
    if "$ref" in content and text:
        content = {"allOf": [content]}
    keywords = lists.extensions(name, wire, is_list=content.get("type") == "array")
    return {**({"description": text} if text else {}), **content, **keywords}


def _type(node: mi.Type, refer: Callable[..., Object]) -> Object:
    keywords, _ = checks.marks(node)
    node = checks.bare(node)
    if (named := _FORMATS.get(keywords.get("format", ""))) is not None:
        return refer(named)
    keywords = {key: value for key, value in keywords.items() if key != "format"}
    if isinstance(node, mi.StructType):
        return refer(node.cls)
    if isinstance(node, mi.ListType):
        return {"type": "array", "items": _type(node.item_type, refer), **keywords}
    if isinstance(node, mi.DictType):
        return {**_map(node, refer), **keywords}
    if isinstance(node, mi.IntType):
        return {"type": "integer", **_width(keywords)}
    plain: Any = _PLAIN.get(type(node))
    return {**plain, **keywords} if plain else {}


def _map(node: mi.DictType, refer: Callable[..., Object]) -> Object:
    if isinstance(node.value_type, mi.AnyType):
        return dict(_FREE)
    return {"type": "object", "additionalProperties": _type(node.value_type, refer)}


def _width(keywords: Object) -> Object:
    """Say of how many bits a whole number is, instead of by its bounds."""
    bounds = (keywords.get("minimum"), keywords.get("maximum"))
    width = "int64" if (bounds[1] or 0) > INT32_MAX else "int32"
    kept = {
        key: value
        for key, value in keywords.items()
        if not (key in ("minimum", "maximum") and value in _LIMITS)
    }
    return {"format": width, **kept}
