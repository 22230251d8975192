"""Checking raw JSON against the kinds: types, bounds, enums and patterns, all at once.

Each struct type is translated once into a tree of nodes that mirrors it. A
check then walks object and tree together and never raises, whatever the
object: what it finds are causes with Kubernetes' wording. `null` counts as
absent, as it does for Kubernetes' own kinds; `without_nulls` removes it, which
must happen before an object is stored, because views expect values.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import msgspec.inspect as mi
from msgspec import Struct

from kube import errors, quantity
from kube.errors import MOST_CAUSES, Cause
from kube.kinds.fields import INT64_MAX
from kube.meta import Object, parse_duration, parse_time

DEEPEST = 100  # levels of passed-through JSON

# A place in an object: the place around it, and a field name, map key or list index.
Where = tuple[Any, "str | int | _Key"]


def check(obj: Any, struct_type: type[Struct], path: str = "") -> list[Cause]:
    """Return everything that is wrong with obj as a struct_type; path is where obj stands."""
    causes = _Causes()
    try:
        _plan(struct_type).check(obj, (None, path), causes)
    except _EnoughError:
        pass  # the list is full
    return list(causes)


def unknown_fields(obj: Any, struct_type: type[Struct]) -> list[str]:
    """Return the paths of fields that struct_type does not know, such as `spec.tasks[0].replica`."""
    return [_text(where) for where in _plan(struct_type).unknown(obj, (None, ""))]


def without_nulls(obj: Object, struct_type: type[Struct]) -> Object:
    """Return obj without the struct fields that are null; parts without one are not copied."""
    result: Object = _plan(struct_type).without_nulls(obj)
    return result


@lru_cache(maxsize=512)
def parts(struct_type: type[Struct]) -> dict[str, type[Struct]]:
    """Return the JSON fields of struct_type that hold structs or lists of them, with their struct type."""
    found = {}
    for field in info(struct_type).fields:
        node: Any = bare(field.type)
        node = bare(node.item_type) if isinstance(node, mi.ListType) else node
        if isinstance(node, mi.StructType):
            found[field.encode_name] = node.cls
    return found


class _EnoughError(Exception):
    """Ends a check that has found MOST_CAUSES."""


class _Causes(list[Cause]):
    def add(self, cause: Cause) -> None:
        self.append(cause)
        if len(self) >= MOST_CAUSES:
            raise _EnoughError


class _Key(str):
    """A key of a map, written in brackets; a field name is written with a dot."""

    __slots__ = ()


def _text(where: Where | None) -> str:
    names: list[str | int] = []
    while where is not None:
        where, name = where
        names.append(name)
    text = ""
    for name in reversed(names):
        if isinstance(name, int | _Key):
            text += f"[{name}]"
        else:
            text += f".{name}" if text and name else name
    return text.encode("utf-8", "backslashreplace").decode()


class _Any:
    """Passed-through JSON: everything that can be stored and sent again."""

    type_name = "value"

    def check(self, value: Any, where: Where, causes: _Causes) -> None:
        self._check(value, where, causes, 0)

    def _check(self, value: Any, where: Where, causes: _Causes, depth: int) -> None:
        if depth > DEEPEST:
            causes.add(errors.invalid(_text(where), "...", f"is nested more than {DEEPEST} levels deep"))
        elif type(value) is dict:
            for key, item in value.items():
                inner = (where, _key(key, where, causes))
                self._check(item, inner, causes, depth + 1)
        elif type(value) is list:
            for index, item in enumerate(value):
                self._check(item, (where, index), causes, depth + 1)
        elif type(value) is str:
            _check_encodable(value, where, causes)
        elif type(value) is int:
            _check_int64(value, where, causes)
        elif not (value is None or type(value) is bool or (type(value) is float and math.isfinite(value))):
            causes.add(errors.wrong_type(_text(where), value, "must be a JSON value"))

    def unknown(self, value: Any, where: Where) -> Iterator[Where]:
        return iter(())

    def without_nulls(self, value: Any) -> Any:
        return value


class _Scalar(_Any):
    """A text, number or truth value, or one of several."""

    def __init__(self, types: tuple[type, ...], rules: list[_Rule]) -> None:
        self.types = types
        self.rules = rules
        self.type_name = " or ".join(_TYPE_NAMES[t] for t in types)

    def check(self, value: Any, where: Where, causes: _Causes) -> None:
        if type(value) not in self.types:
            _refuse_type(value, where, causes, self.type_name)
            return
        if type(value) is str:
            _check_encodable(value, where, causes)
        elif type(value) is int and not _check_int64(value, where, causes):
            return
        for rule in self.rules:
            if (cause := rule(value, where)) is not None:
                causes.add(cause)
                return


class _List(_Any):
    type_name = "array"

    def __init__(self, item: _Any, nullable: bool, least: int, most: int) -> None:
        self.item = item
        self.nullable = nullable
        self.least = least
        self.most = most

    def check(self, value: Any, where: Where, causes: _Causes) -> None:
        if type(value) is not list:
            _refuse_type(value, where, causes, self.type_name)
            return
        if len(value) < self.least:
            causes.add(errors.invalid(_text(where), len(value), f"should have at least {self.least} items"))
        if len(value) > self.most:
            causes.add(errors.too_many(_text(where), len(value), self.most))
        check = self.item.check
        for index, item in enumerate(value):
            if item is not None or not self.nullable:
                check(item, (where, index), causes)

    def unknown(self, value: Any, where: Where) -> Iterator[Where]:
        if type(value) is list:
            for index, item in enumerate(value):
                yield from self.item.unknown(item, (where, index))

    def without_nulls(self, value: Any) -> Any:
        if type(value) is not list:
            return value
        result = [self.item.without_nulls(item) for item in value]
        return value if all(new is old for new, old in zip(result, value, strict=True)) else result


class _Map(_Any):
    type_name = "object"

    def __init__(self, item: _Any, nullable: bool) -> None:
        self.item = item
        self.nullable = nullable

    def check(self, value: Any, where: Where, causes: _Causes) -> None:
        if type(value) is not dict:
            _refuse_type(value, where, causes, self.type_name)
            return
        check = self.item.check
        for key, item in value.items():
            inner = (where, _key(key, where, causes))
            if item is not None or not self.nullable:
                check(item, inner, causes)

    def unknown(self, value: Any, where: Where) -> Iterator[Where]:
        if type(value) is dict:
            for key, item in value.items():
                yield from self.item.unknown(item, (where, _key_text(key)))

    def without_nulls(self, value: Any) -> Any:
        if type(value) is not dict:
            return value
        result = {key: self.item.without_nulls(item) for key, item in value.items()}
        return value if all(result[key] is item for key, item in value.items()) else result


class _Fields(_Any):
    """A struct: known fields are checked, others passed through."""

    type_name = "object"

    def __init__(self, fields: dict[str, _Any], required: tuple[str, ...], texts: frozenset[str]) -> None:
        self.fields = fields
        self.required = required
        self.texts = texts  # required fields that may not be empty either

    def check(self, value: Any, where: Where, causes: _Causes) -> None:
        if type(value) is not dict:
            _refuse_type(value, where, causes, self.type_name)
            return
        fields = self.fields
        for name, item in value.items():
            node = fields.get(name)
            if node is None:
                _ANY.check(item, (where, _key(name, where, causes, field=True)), causes)
            elif item is not None:
                node.check(item, (where, name), causes)
        for name in self.required:
            item = value.get(name)
            if item is None or (item == "" and name in self.texts):
                causes.add(errors.required(_text((where, name))))

    def unknown(self, value: Any, where: Where) -> Iterator[Where]:
        if type(value) is not dict:
            return
        for name, item in value.items():
            node = self.fields.get(name)
            if node is None:
                yield (where, name if type(name) is str else _key_text(name))
            else:
                yield from node.unknown(item, (where, name))

    def without_nulls(self, value: Any) -> Any:
        if type(value) is not dict:
            return value
        result = {}
        same = True
        for name, item in value.items():
            node = self.fields.get(name)
            if node is None:
                result[name] = item
            elif item is None:
                same = False
            else:
                result[name] = new = node.without_nulls(item)
                same = same and new is item
        return value if same else result


_Rule = Callable[[Any, Where], "Cause | None"]
_ANY = _Any()
_TYPE_NAMES: dict[type, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    dict: "object",
    list: "array",
    type(None): "null",
}
_SCALARS: dict[type, type] = {
    mi.StrType: str,
    mi.IntType: int,
    mi.FloatType: float,
    mi.BoolType: bool,
    mi.NoneType: type(None),
}


def _key(key: Any, where: Where, causes: _Causes, *, field: bool = False) -> str:
    if type(key) is str:
        _check_encodable(key, where, causes)
        return key if field else _Key(key)
    causes.add(errors.wrong_type(_text(where), key, "keys must be of type string"))
    return _key_text(key)


def _key_text(key: Any) -> _Key:
    return _Key(key if type(key) is str else errors.shown(key))


def _refuse_type(value: Any, where: Where, causes: _Causes, wanted: str) -> None:
    given = _TYPE_NAMES.get(type(value), type(value).__name__)
    causes.add(errors.wrong_type(_text(where), value, f"must be of type {wanted}, not {given}"))


def _check_encodable(value: str, where: Where, causes: _Causes) -> None:
    if value.isascii():
        return
    try:
        value.encode()
    except UnicodeEncodeError:
        causes.add(errors.invalid(_text(where), value, "must be valid Unicode text"))


def _check_int64(value: int, where: Where, causes: _Causes) -> bool:
    """Refuse a number that no store and no client could hold; say whether it is fine."""
    if abs(value) <= INT64_MAX:
        return True
    causes.add(errors.invalid(_text(where), value, f"should be less than or equal to {INT64_MAX}"))
    return False


@lru_cache(maxsize=512)
def _plan(struct_type: type[Struct]) -> _Any:
    fields, required, texts = {}, [], set()
    for field in info(struct_type).fields:
        schema, must = marks(field.type)
        fields[field.encode_name] = _node(field.type)
        if must:
            required.append(field.encode_name)
            if isinstance(bare(field.type), mi.StrType) and "minLength" not in schema:
                texts.add(field.encode_name)
    return _Fields(fields, tuple(required), frozenset(texts))


def info(struct_type: type[Struct]) -> mi.StructType:
    """Return what msgspec knows of a struct type; TypeError for another type."""
    info = mi.type_info(struct_type)
    if not isinstance(info, mi.StructType):
        raise TypeError(f"{struct_type!r} is not a struct type")
    return info


def _node(node: mi.Type) -> _Any:
    schema, _ = marks(node)
    node = bare(node)
    if isinstance(node, mi.StructType):
        return _plan(node.cls)
    if isinstance(node, mi.ListType):
        most = schema.get("maxItems", INT64_MAX)
        return _List(_node(node.item_type), _nullable(node.item_type), schema.get("minItems", 0), most)
    if isinstance(node, mi.DictType):
        return _Map(_node(node.value_type), _nullable(node.value_type))
    members = node.types if isinstance(node, mi.UnionType) else (node,)
    if all(type(member) in _SCALARS for member in members):
        return _Scalar(tuple(_SCALARS[type(member)] for member in members), _rules(schema))
    return _ANY


def bare(node: mi.Type) -> mi.Type:
    """Return the type below marks and `| None`."""
    while isinstance(node, mi.Metadata):
        node = node.type
    if isinstance(node, mi.UnionType):
        members = [member for member in node.types if not isinstance(member, mi.NoneType)]
        if len(members) == 1:
            return bare(members[0])
        if len(members) < len(node.types):
            return mi.UnionType(tuple(members))
    return node


def _nullable(node: mi.Type) -> bool:
    while isinstance(node, mi.Metadata):
        node = node.type
    return isinstance(node, mi.UnionType) and any(isinstance(member, mi.NoneType) for member in node.types)


def marks(node: mi.Type) -> tuple[dict[str, Any], bool]:
    """Return the JSON Schema keywords of a field, msgspec's own bounds among them, and whether it is required."""
    schema: dict[str, Any] = {}
    must = False
    while isinstance(node, mi.Metadata | mi.UnionType):
        if isinstance(node, mi.UnionType):
            members = [member for member in node.types if not isinstance(member, mi.NoneType)]
            if len(members) != 1:
                return schema, must
            node = members[0]
        else:
            schema = {**(node.extra_json_schema or {}), **schema}
            must = must or bool((node.extra or {}).get("required"))
            node = node.type
    for attribute, keyword in _NATIVE.items():
        if (bound := getattr(node, attribute, None)) is not None:
            schema.setdefault(keyword[isinstance(node, mi.ListType)], bound)
    return schema, must


_NATIVE = {
    "ge": ("minimum", "minimum"),
    "le": ("maximum", "maximum"),
    "min_length": ("minLength", "minItems"),
    "max_length": ("maxLength", "maxItems"),
    "pattern": ("pattern", "pattern"),
}


def _rules(schema: dict[str, Any]) -> list[_Rule]:
    return [_RULES[keyword](schema[keyword]) for keyword in _RULES if keyword in schema]


def _minimum(bound: int) -> _Rule:
    detail = f"should be greater than or equal to {bound}"
    return lambda value, where: errors.invalid(_text(where), value, detail) if value < bound else None


def _maximum(bound: int) -> _Rule:
    detail = f"should be less than or equal to {bound}"
    return lambda value, where: errors.invalid(_text(where), value, detail) if value > bound else None


def _min_length(bound: int) -> _Rule:
    detail = f"should be at least {bound} chars long"
    return lambda value, where: errors.invalid(_text(where), value, detail) if len(value) < bound else None


def _max_length(bound: int) -> _Rule:
    return lambda value, where: errors.too_long(_text(where), bound) if len(value) > bound else None


def _pattern(pattern: str) -> _Rule:
    # Python's $ also matches before a final newline, that of the CRDs does not.
    matches = re.compile(re.sub(r"\$$", r"\\Z", pattern)).search
    detail = f"should match '{pattern}'"

    def rule(value: str, where: Where) -> Cause | None:
        # An empty text is Go's "not given" and is left out when Go writes JSON.
        return None if not value or matches(value) else errors.invalid(_text(where), value, detail)

    return rule


def _enum(allowed: list[str]) -> _Rule:
    known = frozenset(allowed) | {""}
    return lambda value, where: None if value in known else errors.not_supported(_text(where), value, allowed)


def _format(name: str) -> _Rule:
    read = _FORMATS.get(name)

    def rule(value: Any, where: Where) -> Cause | None:
        # An empty text is Go's "not given", but no quantity: Kubernetes refuses it, and sums would.
        if read is None or (value == "" and name != "quantity"):
            return None
        try:
            read(value)
        except ValueError as error:
            return errors.invalid(_text(where), value, str(error))
        return None

    return rule


_RULES: dict[str, Callable[[Any], _Rule]] = {
    "minimum": _minimum,
    "maximum": _maximum,
    "minLength": _min_length,
    "maxLength": _max_length,
    "pattern": _pattern,
    "enum": _enum,
    "format": _format,
}
_FORMATS: dict[str, Callable[[Any], object]] = {
    "quantity": quantity.parse,
    "date-time": parse_time,
    "duration": parse_duration,
}
