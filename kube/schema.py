"""Checking raw JSON against the definition of its kind: types, bounds, enums and patterns, all at once.

A definition is translated into a tree of nodes when an object first needs it, part by part. A
check then walks object and tree together and never raises, whatever the
object: what it finds are causes with Kubernetes' wording. `null` counts as
absent, as it does for Kubernetes' own kinds; `without_nulls` removes it, which
must happen before an object is stored, because views expect values.

Objects of custom kinds are checked by `kube.custom`, in the words and with the rules that
Kubernetes has for those.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import cache, cached_property
from typing import Any

from kube import definitions, errors, quantity
from kube.errors import MAX_CAUSES, Cause
from kube.kinds.fields import INT32_MAX, INT64_MAX
from kube.meta import Object, parse_duration, parse_time

DEEPEST = 100  # levels of passed-through JSON
MAX_UNKNOWN = 100  # unknown fields that are reported of one object; more help nobody
_TOO_DEEP = f"is nested more than {DEEPEST} levels deep"

# The path of an unknown field, and the names of the known ones beside it.
_Unknown = tuple[str, Iterable[str]]
# A place in an object: the place around it, and a field name, map key or list index.
Where = tuple[Any, "str | int | _Key"]


def check(obj: Any, definition: str, path: str = "") -> list[Cause]:
    """Return everything that is wrong with obj as what a definition describes; path is where obj stands."""
    causes = _Causes()
    try:
        _of(definition).check(obj, (None, path), causes)
    except _EnoughError:
        pass  # the list is full
    except RecursionError:
        causes.append(errors.invalid(path, "...", _TOO_DEEP))
    return list(causes)


def unknown_fields(obj: Any, definition: str) -> list[str]:
    """Return the paths of the first fields that a definition does not have, such as `spec.tasks[0].replica`."""
    return [path for path, _ in _unknown(obj, definition)]


def misspelled(obj: Any, definition: str) -> dict[str, str]:
    """Return the unknown fields with the name nearest to each of those that may stand there, "" where none is near."""
    unknown = _unknown(obj, definition)[:MAX_UNKNOWN]
    return {path: _nearest(path.rpartition(".")[2], names) for path, names in unknown}


def _unknown(obj: Any, definition: str) -> list[_Unknown]:
    unknown: list[_Unknown] = []
    try:
        _of(definition).unknown(obj, "", unknown)
    except RecursionError:
        pass  # what is deeper is refused by the check
    return [(path.encode("utf-8", "backslashreplace").decode(), names) for path, names in unknown]


def _nearest(name: str, names: Iterable[str]) -> str:
    folded = {each.lower(): each for each in names}
    return next((folded[each] for each in get_close_matches(name.lower(), folded, n=1)), "")


def without_nulls(obj: Object, definition: str) -> Object:
    """Return obj without the fields of its definition that are null; parts without one are not copied."""
    result: Object = _of(definition).without_nulls(obj)
    return result


class _EnoughError(Exception):
    """Ends a check that has found MAX_CAUSES."""


class _Causes(list[Cause]):
    def add(self, cause: Cause) -> None:
        self.append(cause)
        if len(self) >= MAX_CAUSES:
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
    has_fields = False  # whether anything in it may be unknown

    def check(self, value: Any, where: Where, causes: _Causes) -> None:
        self._check(value, where, causes, 0)

    def _check(self, value: Any, where: Where, causes: _Causes, depth: int) -> None:
        if depth > DEEPEST:
            causes.add(errors.invalid(_text(where), "...", _TOO_DEEP))
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

    def unknown(self, value: Any, path: str, found: list[_Unknown]) -> None:
        """Add the unknown fields in value; path is that of the value."""

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
        self.has_fields = item.has_fields
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

    def unknown(self, value: Any, path: str, found: list[_Unknown]) -> None:
        if type(value) is list:
            for index, item in enumerate(value):
                self.item.unknown(item, f"{path}[{index}]", found)

    def without_nulls(self, value: Any) -> Any:
        if type(value) is not list:
            return value
        result = [self.item.without_nulls(item) for item in value]
        return value if all(new is old for new, old in zip(result, value, strict=True)) else result


class _Map(_Any):
    type_name = "object"

    def __init__(self, item: _Any, nullable: bool) -> None:
        self.item = item
        self.has_fields = item.has_fields
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

    def unknown(self, value: Any, path: str, found: list[_Unknown]) -> None:
        if type(value) is dict:
            for key, item in value.items():
                self.item.unknown(item, f"{path}.{_key_text(key)}", found)

    def without_nulls(self, value: Any) -> Any:
        if type(value) is not dict:
            return value
        result = {key: self.item.without_nulls(item) for key, item in value.items()}
        return value if all(result[key] is item for key, item in value.items()) else result


class _Fields(_Any):
    """An object with fields of its own: known ones are checked, others passed through."""

    type_name = "object"
    has_fields = True

    def __init__(self, schema: Object) -> None:
        self._schema = schema
        self.required: list[str] = schema.get("required", [])

    @cached_property
    def fields(self) -> dict[str, _Any]:
        """The nodes of the fields; made late, for definitions may refer to themselves and few parts are used."""
        return {name: _node(inner) for name, inner in self._schema["properties"].items()}

    @cached_property
    def texts(self) -> frozenset[str]:
        """The required fields that may not be empty either."""
        schemas = ((name, self._schema["properties"].get(name, {})) for name in self.required)
        return frozenset(
            name for name, schema in schemas if schema.get("type") == "string" and "minLength" not in schema
        )

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

    def unknown(self, value: Any, path: str, found: list[_Unknown]) -> None:
        if type(value) is not dict or len(found) >= MAX_UNKNOWN:
            return
        around = f"{path}." if path else ""
        fields = self.fields
        for name, item in value.items():
            node = fields.get(name)
            if node is None:
                found.append((around + _key_text(name), fields))
            elif node.has_fields and item:
                node.unknown(item, around + name, found)

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
_SCALARS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (float, int),
    "boolean": (bool,),
}


def _key(key: Any, where: Where, causes: _Causes, *, field: bool = False) -> str:
    if type(key) is str:
        _check_encodable(key, where, causes)
        return key if field else _Key(key)
    causes.add(errors.wrong_type(_text(where), key, "keys must be of type string"))
    return _key_text(key)


def _key_text(key: Any) -> _Key:
    return _Key(key if type(key) is str else errors.quoted(key))


def _refuse_type(value: Any, where: Where, causes: _Causes, wanted: str) -> None:
    actual = _TYPE_NAMES.get(type(value), type(value).__name__)
    causes.add(errors.wrong_type(_text(where), value, f"must be of type {wanted}, not {actual}"))


def _check_encodable(value: str, where: Where, causes: _Causes) -> None:
    if value.isascii():
        return
    try:
        value.encode()
    except UnicodeEncodeError:
        causes.add(errors.invalid(_text(where), value, "must be valid Unicode text"))


def _check_int64(value: int, where: Where, causes: _Causes) -> bool:
    """Refuse a number that no store and no client could hold; return whether it is fine."""
    if abs(value) <= INT64_MAX:
        return True
    causes.add(errors.invalid(_text(where), value, f"should be less than or equal to {INT64_MAX}"))
    return False


@cache
def _of(definition: str) -> _Any:
    """Return the node of a definition."""
    special = _SPECIAL.get(definition)
    return _node(definitions.checked(definition)) if special is None else special()


def _node(schema: Object) -> _Any:
    if name := definitions.reference(schema):
        return _of(name)
    kind = schema.get("type", "")
    if kind == "array":
        item = schema.get("items", {})
        most = schema.get("maxItems", INT64_MAX)
        return _List(_node(item), item.get("nullable", False), schema.get("minItems", 0), most)
    if kind == "object":
        return _object(schema)
    return _Scalar(_SCALARS[kind], _rules(schema)) if kind in _SCALARS else _ANY


def _object(schema: Object) -> _Any:
    if schema.get("properties"):
        return _Fields(schema)
    item = schema.get("additionalProperties", {})
    return _Map(_node(item), item.get("nullable", False))


def _rules(schema: Object) -> list[_Rule]:
    if schema.get("format") == "int32":
        schema = {"minimum": -INT32_MAX - 1, "maximum": INT32_MAX, **schema}
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
    accepted = frozenset(allowed) | {""}
    return lambda value, where: None if value in accepted else errors.not_supported(_text(where), value, allowed)


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
# What has a type in Go that writes itself.
_SPECIAL: dict[str, Callable[[], _Any]] = {
    definitions.QUANTITY: lambda: _Scalar((str, int, float), [_format("quantity")]),
    definitions.INT_OR_STRING: lambda: _Scalar((int, str), []),
}
