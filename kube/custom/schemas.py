"""Whether the schema of a version is one that objects can be checked with.

A schema must be structural: what is a field, and of which type, is declared once,
outside of allOf, anyOf, oneOf and not. Sources: k8s.io/apiextensions-apiserver
pkg/apiserver/schema/{validation,complete}.go and
pkg/apis/apiextensions/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kube import patterns
from kube.custom import checking, extensions, shaping
from kube.custom.nodes import META_FIELDS, Node, compiled
from kube.errors import MAX_CAUSES, Cause, forbidden, invalid, not_supported, required, too_many, wrong_type
from kube.lenient import mapping, sequence, text

Schema = dict[str, Any]
MAX_SCHEMAS = 10_000  # schemas in one, the largest known has some 5,000
MAX_MAP_KEYS = 100
MAX_PATTERN_WORK = 200_000  # instructions of all patterns' automata; those of a large schema have some 20,000
TYPES = ("array", "boolean", "integer", "number", "object", "string")
_UNSUPPORTED = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_ONE = ("items", "not", "additionalProperties")
_LISTS = ("allOf", "oneOf", "anyOf")
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_VALIDATION_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
# What may stand at the root when the status has a path of its own, by JSON name and by the name in Go.
_ROOT_KEYWORDS = {
    "description": "Description",
    "type": "Type",
    "format": "Format",
    "title": "Title",
    "maximum": "Maximum",
    "exclusiveMaximum": "ExclusiveMaximum",
    "minimum": "Minimum",
    "exclusiveMinimum": "ExclusiveMinimum",
    "maxLength": "MaxLength",
    "minLength": "MinLength",
    "pattern": "Pattern",
    "maxItems": "MaxItems",
    "minItems": "MinItems",
    "uniqueItems": "UniqueItems",
    "multipleOf": "MultipleOf",
    "required": "Required",
    "items": "Items",
    "properties": "Properties",
    "externalDocs": "ExternalDocs",
    "example": "Example",
    "x-kubernetes-preserve-unknown-fields": "XPreserveUnknownFields",
    "x-kubernetes-validations": "XValidations",
}
_BOOL, _TEXT, _WHOLE, _NUMBER, _LIST, _MAP = "boolean", "string", "integer", "number", "array", "object"
_KEYWORDS = {
    "id": _TEXT,
    "$schema": _TEXT,
    "$ref": _TEXT,
    "description": _TEXT,
    "title": _TEXT,
    "type": _TEXT,
    "format": _TEXT,
    "pattern": _TEXT,
    "maximum": _NUMBER,
    "minimum": _NUMBER,
    "multipleOf": _NUMBER,
    "exclusiveMaximum": _BOOL,
    "exclusiveMinimum": _BOOL,
    "uniqueItems": _BOOL,
    "nullable": _BOOL,
    "maxLength": _WHOLE,
    "minLength": _WHOLE,
    "maxItems": _WHOLE,
    "minItems": _WHOLE,
    "maxProperties": _WHOLE,
    "minProperties": _WHOLE,
    "enum": _LIST,
    "required": _LIST,
    "allOf": _LIST,
    "oneOf": _LIST,
    "anyOf": _LIST,
    "not": _MAP,
    "properties": _MAP,
    "patternProperties": _MAP,
    "definitions": _MAP,
    "dependencies": _MAP,
    "externalDocs": _MAP,
    "x-kubernetes-preserve-unknown-fields": _BOOL,
    "x-kubernetes-embedded-resource": _BOOL,
    "x-kubernetes-int-or-string": _BOOL,
    "x-kubernetes-list-type": _TEXT,
    "x-kubernetes-map-type": _TEXT,
    "x-kubernetes-list-map-keys": _LIST,
    "x-kubernetes-validations": _LIST,
}
_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    _BOOL: (bool,),
    _TEXT: (str,),
    _WHOLE: (int,),
    _NUMBER: (int, float),
    _LIST: (list,),
    _MAP: (dict,),
}


def check(schema: Schema, path: str, *, has_status: bool) -> list[Cause]:
    """Return what is wrong with an `openAPIV3Schema` at path."""
    causes, count = _check_types(schema, path)
    if count > MAX_SCHEMAS:
        causes.append(invalid(path, "", f"must not contain more than {MAX_SCHEMAS:,} schemas"))
    if causes:
        return causes
    if _pattern_work(schema) > MAX_PATTERN_WORK:
        return [forbidden(path, "the patterns in it are too large to be matched by all objects of a kind")]
    causes += _check_root(schema, path, has_status)
    unusual = list(_check_openapi(schema, path, root=True))
    structural = sorted(_structural(schema, path, "root"), key=str)
    structural += sorted(_complete(schema, schema, path, path), key=str)
    if not structural and not unusual:
        structural = list(_check_defaults(schema, path, compiled(schema), checking.Run()))
    return [*causes, *structural, *unusual]


def _check_types(schema: Schema, path: str) -> tuple[list[Cause], int]:
    """Return the keywords of a wrong type, and how many schemas there are."""
    causes: list[Cause] = []
    todo: list[tuple[Any, str]] = [(schema, path)]
    count = 0
    while todo and count <= MAX_SCHEMAS and len(causes) < MAX_CAUSES:
        one, where = todo.pop()
        count += 1
        if not isinstance(one, dict):
            causes.append(wrong_type(where, one, "must be of type object"))
            continue
        for key, value in one.items():
            wanted = _KEYWORDS.get(key)
            if wanted and value is not None and type(value) not in _PYTHON_TYPES[wanted]:
                causes.append(wrong_type(f"{where}.{key}", value, f"must be of type {wanted}"))
        causes += (
            wrong_type(f"{where}.required[{i}]", item, "must be of type string")
            for i, item in enumerate(sequence(one, "required"))
            if not isinstance(item, str)
        )
        todo += _inner(one, where)
    return causes, count


def _pattern_work(schema: Schema) -> int:
    """Return how large the patterns of a schema are, or of a part of it that is too large already."""
    todo: list[Any] = [schema]
    size = 0
    while todo and size <= MAX_PATTERN_WORK:
        one = todo.pop()
        if pattern := text(one, "pattern"):
            size += patterns.size(pattern)
        todo += (inner for inner, _ in _inner(one, ""))
    return size


def _inner(schema: Schema, path: str) -> Iterator[tuple[Any, str]]:
    """Yield the schemas inside a schema, with their paths."""
    for key in _ONE:
        inner = schema.get(key)
        if inner is not None and not (key == "additionalProperties" and isinstance(inner, bool)):
            yield from (_items(inner, f"{path}.{key}") if isinstance(inner, list) else [(inner, f"{path}.{key}")])
    for key in _LISTS:
        yield from _items(sequence(schema, key), f"{path}.{key}")
    for name, inner in mapping(schema, "properties").items():
        yield inner, f"{path}.properties[{name}]"


def _items(schemas: list[Any], path: str) -> Iterator[tuple[Any, str]]:
    yield from ((inner, f"{path}[{index}]") for index, inner in enumerate(schemas))


def _check_root(schema: Schema, path: str, has_status: bool) -> Iterator[Cause]:
    if has_status:
        keywords = [key for key, value in schema.items() if value not in (None, "", False, [], {})]
        strange = [key for key in keywords if key in _KEYWORDS and key not in _ROOT_KEYWORDS]
        if schema.get("additionalProperties") is not None:
            strange.append("additionalProperties")
        if schema.get("type") and schema["type"] != "object":
            detail = (
                'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
            )
            yield invalid(f"{path}.type", schema["type"], detail)
        elif strange and strange != ["nullable"]:
            allowed = " ".join(_ROOT_KEYWORDS.values())
            detail = (
                f"only [{allowed}] fields are allowed at the root of the schema if the status subresource is enabled"
            )
            yield invalid(path, strange[0], detail)
    if schema.get("nullable"):
        yield forbidden(f"{path}.nullable", "nullable cannot be true at the root")


# What OpenAPI allows and Kubernetes does not


def _check_openapi(
    schema: Any, path: str, *, root: bool = False, meta: bool = False, no_default: str | None = None
) -> Iterator[Cause]:
    if not isinstance(schema, dict):
        return
    yield from _check_keywords(schema, path, meta=meta, no_default=no_default)
    yield from _check_maps(schema, path)
    yield from _check_lists(schema, path)
    yield from _check_rules(schema, path)
    additional = schema.get("additionalProperties")
    reason = "inside additionalProperties applying to object metadata" if meta else no_default
    yield from _check_openapi(additional, f"{path}.additionalProperties", meta=meta, no_default=reason)
    embedded = bool(schema.get("x-kubernetes-embedded-resource"))
    for name, inner in mapping(schema, "properties").items():
        is_meta = (root or embedded) and name in META_FIELDS
        reason = f"in top-level {name}" if root and is_meta else no_default
        where = f"{path}.properties[{name}]"
        yield from _check_openapi(inner, where, meta=meta or is_meta, no_default=reason)
    for inner, where in _alternatives(schema, path):
        yield from _check_openapi(inner, where, meta=meta, no_default=no_default)
    if isinstance(schema.get("items"), dict):
        yield from _check_openapi(schema["items"], f"{path}.items", meta=meta, no_default=no_default)


def _alternatives(schema: Schema, path: str) -> Iterator[tuple[Any, str]]:
    if schema.get("not") is not None:
        yield schema["not"], f"{path}.not"
    for key in _LISTS:
        yield from _items(sequence(schema, key), f"{path}.{key}")


def _check_keywords(schema: Schema, path: str, *, meta: bool, no_default: str | None) -> Iterator[Cause]:
    kind = text(schema, "type")
    if kind and kind not in TYPES:
        yield not_supported(f"{path}.type", kind, TYPES)
    if schema.get("default") is not None and no_default is not None:
        yield forbidden(f"{path}.default", f"must not be set {no_default}".rstrip())
    for key in _UNSUPPORTED:
        if schema.get(key) not in (None, "", {}) or (key == "additionalItems" and schema.get(key) is not None):
            yield forbidden(f"{path}.{key}", f"{key} is not supported")
    if text(schema, "$schema"):
        yield invalid(path, "", "OpenAPIV3Schema 'schema' is not supported")
    if kind == "null":
        yield forbidden(f"{path}.type", "type cannot be set to null, use nullable as an alternative")
    if isinstance(schema.get("items"), list) and schema["items"]:
        yield forbidden(f"{path}.items", "items must be a schema object and not an array")
    yield from _check_marks(schema, path, meta=meta)


def _check_marks(schema: Schema, path: str, *, meta: bool) -> Iterator[Cause]:
    if meta and schema.get("x-kubernetes-embedded-resource"):
        yield forbidden(f"{path}.x-kubernetes-embedded-resource", "must not be used inside of resource meta")
    if schema.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(f"{path}.uniqueItems", detail)
    additional = schema.get("additionalProperties")
    if additional is not None and additional is not True and schema.get("properties"):
        detail = "additionalProperties and properties are mutual exclusive"
        yield forbidden(f"{path}.additionalProperties", detail)
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        yield invalid(f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined")


def _check_maps(schema: Schema, path: str) -> Iterator[Cause]:
    map_type = schema.get("x-kubernetes-map-type")
    if map_type is None:
        return
    yield from _check_kind(schema, path, "object", "must be object if x-kubernetes-map-type is specified")
    if map_type not in ("atomic", "granular"):
        yield not_supported(f"{path}.x-kubernetes-map-type", map_type, ("atomic", "granular"))


def _check_kind(schema: Schema, path: str, wanted: str, detail: str) -> Iterator[Cause]:
    kind = text(schema, "type")
    if not kind:
        yield required(f"{path}.type", detail)
    elif kind != wanted:
        yield invalid(f"{path}.type", kind, detail)


def _check_lists(schema: Schema, path: str) -> Iterator[Cause]:
    list_type, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or []
    where = f"{path}.x-kubernetes-list-type"
    if list_type is not None:
        if text(schema, "type") != "array":
            detail = "must be array if x-kubernetes-list-type is specified"
            yield from _check_kind(schema, path, "array", detail)
        elif list_type == "set":
            yield from _check_set(mapping(schema, "items"), f"{path}.items")
        if list_type not in ("atomic", "set", "map"):
            yield not_supported(where, list_type, ("atomic", "set", "map"))
    if keys and list_type != "map":
        detail = "must be map if x-kubernetes-list-map-keys is non-empty"
        yield required(where, detail) if list_type is None else invalid(where, list_type, detail)
    if list_type == "map":
        yield from _check_map_list(schema, path, keys)
    if list_type in ("set", "map") and mapping(schema, "items").get("nullable"):
        detail = f"cannot be nullable when x-kubernetes-list-type is {list_type}"
        yield forbidden(f"{path}.items.nullable", detail)


def _check_set(items: Schema, path: str) -> Iterator[Cause]:
    detail = "must be atomic as item of a list with x-kubernetes-list-type=set"
    kind, list_type = items.get("type"), items.get("x-kubernetes-list-type")
    if kind == "array" and list_type not in (None, "atomic"):
        yield invalid(f"{path}.x-kubernetes-list-type", list_type, detail)
    if kind == "object" and items.get("x-kubernetes-map-type") != "atomic":
        yield invalid(f"{path}.x-kubernetes-map-type", list_type, detail)


def _check_map_list(schema: Schema, path: str, keys: list[Any]) -> Iterator[Cause]:
    where = f"{path}.x-kubernetes-list-map-keys"
    if not keys:
        yield required(where, "must not be empty if x-kubernetes-list-type is map")
    if len(keys) > MAX_MAP_KEYS:
        yield too_many(where, len(keys), MAX_MAP_KEYS)
        return
    items = schema.get("items")
    if items is None:
        yield required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map")
    elif not isinstance(items, dict):
        yield invalid(f"{path}.items", items, "must only have a single schema if x-kubernetes-list-type is map")
    elif items.get("type") != "object":
        detail = "must be object if parent array's x-kubernetes-list-type is map"
        yield invalid(f"{path}.items.type", text(items, "type"), detail)
    else:
        yield from _check_map_keys(items, path, keys)


def _check_map_keys(items: Schema, path: str, keys: list[Any]) -> Iterator[Cause]:
    where = f"{path}.x-kubernetes-list-map-keys"
    properties = mapping(items, "properties")
    for index, key in enumerate(keys):
        inner = properties.get(key) if isinstance(key, str) else None
        of_key = f"{path}.items.properties[{key}]"
        if inner is None:
            yield invalid(where, keys, "entries must all be names of item properties")
        elif inner.get("type") in ("array", "object"):
            detail = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield invalid(f"{of_key}.type", items.get("type"), detail)
        if key in keys[:index]:
            yield invalid(where, keys, "must not contain duplicate entries")
        if inner is None:
            continue
        about = "this property is in x-kubernetes-list-map-keys, so it"
        if key not in sequence(items, "required") and inner.get("default") is None:
            yield required(f"{of_key}.default", f"{about} must have a default or be a required property")
        if inner.get("nullable"):
            yield forbidden(f"{of_key}.nullable", f"{about} cannot be nullable")


def _check_rules(schema: Schema, path: str) -> Iterator[Cause]:
    """Check the form of CEL rules; they are stored, and not evaluated."""
    for index, rule in enumerate(sequence(schema, "x-kubernetes-validations")):
        where = f"{path}.x-kubernetes-validations[{index}]"
        expression, message = text(rule, "rule"), text(rule, "message")
        if not expression.strip():
            yield required(f"{where}.rule", "rule is not specified")
        elif message and not message.strip():
            yield invalid(f"{where}.message", message, "must be non-empty if specified")
        elif _has_newlines(message.strip()):
            yield invalid(f"{where}.message", message, "must not contain line breaks")
        elif _has_newlines(expression.strip()) and not message.strip():
            yield required(f"{where}.message", "message must be specified if rule contains line breaks")
        if (reason := text(rule, "reason")) and reason not in _VALIDATION_REASONS:
            yield not_supported(f"{where}.reason", reason, _VALIDATION_REASONS)


def _has_newlines(words: str) -> bool:
    return "\n" in words or "\r" in words


# What makes a schema structural


def _structural(schema: Any, path: str, level: str) -> Iterator[Cause]:
    """Yield what is missing where fields and types are declared."""
    if not isinstance(schema, dict):
        return
    kind, properties = text(schema, "type"), mapping(schema, "properties")
    if kind == "array" and schema.get("items") is None:
        yield required(f"{path}.items", "must be specified")
    yield from _structural(schema.get("items"), f"{path}.items", "item")
    for name, inner in properties.items():
        yield from _structural(inner, f"{path}.properties[{name}]", "field")
    if schema.get("additionalProperties") is not None:
        if level == "root":
            yield forbidden(f"{path}.additionalProperties", "must not be used at the root")
        yield from _structural(schema["additionalProperties"], f"{path}.additionalProperties", "field")
    yield from _check_extensions(schema, path)
    skip = _is_int_or_string(schema.get("anyOf"))
    first = sequence(schema, "allOf")[:1]
    yield from _nested_inside(schema, path, skip, bool(first) and _is_int_or_string(mapping(first[0]).get("anyOf")))
    yield from _check_own_type(schema, path, level)
    if level == "root" or schema.get("x-kubernetes-embedded-resource"):
        yield from _check_meta(properties, path, level)


def _check_extensions(schema: Schema, path: str) -> Iterator[Cause]:
    keep = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    embedded = bool(schema.get("x-kubernetes-embedded-resource"))
    detail = "must be false if x-kubernetes-int-or-string is true"
    if schema.get("x-kubernetes-int-or-string"):
        if keep:
            yield invalid(f"{path}.x-kubernetes-preserve-unknown-fields", True, detail)
        if embedded:
            yield invalid(f"{path}.x-kubernetes-embedded-resource", True, detail)
    if embedded and schema.get("additionalProperties") is not None:
        detail = "must not be used if x-kubernetes-embedded-resource is set"
        yield forbidden(f"{path}.additionalProperties", detail)
    if embedded and not keep and not schema.get("properties"):
        detail = (
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        )
        yield required(f"{path}.properties", detail)


def _check_own_type(schema: Schema, path: str, level: str) -> Iterator[Cause]:
    kind = text(schema, "type")
    if schema.get("x-kubernetes-embedded-resource") and kind != "object":
        detail = "must be object if x-kubernetes-embedded-resource is true"
        yield required(f"{path}.type", detail) if not kind else invalid(f"{path}.type", kind, detail)
    elif not kind and not (
        schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    ):
        where = {"root": "at the root", "item": "for specified array items", "field": "for specified object fields"}
        yield required(f"{path}.type", f"must not be empty {where[level]}")
    if level == "root" and kind and kind != "object":
        yield invalid(f"{path}.type", kind, "must be object at the root")


def _check_meta(properties: Schema, path: str, level: str) -> Iterator[Cause]:
    for name in ("kind", "apiVersion"):
        if name in properties and text(properties[name], "type") != "string":
            kind = text(properties[name], "type")
            yield invalid(f"{path}.properties[{name}].type", kind, "must be string")
    if "metadata" not in properties:
        return
    metadata, where = mapping(properties, "metadata"), f"{path}.properties[metadata]"
    if text(metadata, "type") != "object":
        yield invalid(f"{where}.type", text(metadata, "type"), "must be object")
    if level == "root":
        keywords = {key for key, value in metadata.items() if value not in (None, "", False, [], {})}
        if keywords - {"type", "properties", "default"} or set(mapping(metadata, "properties")) - {
            "name",
            "generateName",
        }:
            detail = "must not specify anything other than name and generateName, but metadata is implicitly specified"
            yield forbidden(where, detail)


def _is_int_or_string(alternatives: Any) -> bool:
    return bool(alternatives == _INT_OR_STRING)


def _nested_inside(schema: Schema, path: str, skip_any: bool, skip_first: bool) -> Iterator[Cause]:
    """Check what stands under the junctors of a schema, and its pattern."""
    if not skip_any:
        for inner, where in _items(sequence(schema, "anyOf"), f"{path}.anyOf"):
            yield from _nested(inner, where)
    for index, inner in enumerate(sequence(schema, "allOf")):
        yield from _nested(inner, f"{path}.allOf[{index}]", skip_any=skip_first and index == 0)
    for inner, where in _items(sequence(schema, "oneOf"), f"{path}.oneOf"):
        yield from _nested(inner, where)
    yield from _nested(schema.get("not"), f"{path}.not")
    pattern = text(schema, "pattern")
    if pattern and (wrong := patterns.problem(pattern)):
        detail = f"must be a valid regular expression, but isn't: {wrong}"
        yield invalid(f"{path}.pattern", pattern, detail)


_NESTED = {
    "type": "must be empty to be structural",
    "additionalProperties": "must be undefined to be structural",
    "default": "must be undefined to be structural",
    "title": "must be empty to be structural",
    "description": "must be empty to be structural",
    "nullable": "must be false to be structural",
    "x-kubernetes-preserve-unknown-fields": "must be false to be structural",
    "x-kubernetes-embedded-resource": "must be false to be structural",
    "x-kubernetes-int-or-string": "must be false to be structural",
    "x-kubernetes-list-map-keys": "must be empty to be structural",
    "x-kubernetes-list-type": "must be undefined to be structural",
    "x-kubernetes-map-type": "must be undefined to be structural",
    "x-kubernetes-validations": "must be empty to be structural",
}
_SET_BY_PRESENCE = frozenset({"additionalProperties", "default", "x-kubernetes-list-type", "x-kubernetes-map-type"})


def _nested(schema: Any, path: str, *, skip_any: bool = False) -> Iterator[Cause]:
    """Check a schema that may only restrict what is declared elsewhere."""
    if not isinstance(schema, dict):
        return
    yield from _nested_inside(schema, path, skip_any, skip_first=False)
    yield from _nested(schema.get("items"), f"{path}.items")
    for name, inner in mapping(schema, "properties").items():
        yield from _nested(inner, f"{path}.properties[{name}]")
    for key, detail in _NESTED.items():
        value = schema.get(key)
        if value if key not in _SET_BY_PRESENCE else value is not None:
            yield forbidden(f"{path}.{key}", detail)
    if "metadata" in mapping(schema, "properties"):
        yield forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context")


def _complete(values: Schema, schema: Any, path: str, values_path: str) -> Iterator[Cause]:
    """Yield what the junctors of `values` (at values_path) restrict that schema (at path) does not declare."""
    for inner, where in _alternatives(values, values_path):
        yield from _complete_nested(inner, schema, path, where)


def _complete_nested(values: Any, schema: Any, path: str, values_path: str) -> Iterator[Cause]:
    if not isinstance(values, dict):
        return
    if not isinstance(schema, dict):
        yield required(path, f"because it is defined in {values_path}")
        return
    yield from _complete(values, schema, path, values_path)
    yield from _complete_nested(values.get("items"), schema.get("items"), f"{path}.items", f"{values_path}.items")
    for name, inner in mapping(values, "properties").items():
        counterpart = mapping(schema, "properties").get(name)
        yield from _complete_nested(
            inner, counterpart, f"{path}.properties[{name}]", f"{values_path}.properties[{name}]"
        )


def _check_defaults(
    schema: Schema, path: str, node: Node, run: checking.Run, *, in_meta: bool = False, root: bool = True
) -> Iterator[Cause]:
    """Yield defaults that would not pass the check themselves; node is the schema's."""
    if schema.get("default") is not None and not in_meta:
        yield from _check_default(schema["default"], f"{path}.default", node, run)
    if isinstance(schema.get("items"), dict) and node.items is not None:
        where = f"{path}.items"
        yield from _check_defaults(schema["items"], where, node.items, run, in_meta=in_meta, root=False)
    holds_meta = root or bool(schema.get("x-kubernetes-embedded-resource"))
    for name, inner in mapping(schema, "properties").items():
        is_meta = (in_meta and not schema.get("x-kubernetes-embedded-resource")) or (holds_meta and name in META_FIELDS)
        where = f"{path}.properties[{name}]"
        yield from _check_defaults(inner, where, node.properties[name], run, in_meta=is_meta, root=False)


def _check_default(value: Any, path: str, node: Node, run: checking.Run) -> Iterator[Cause]:
    if shaping.prune(shaping.copied(value), node):
        yield invalid(path, value, "must not have unknown fields")
    if wrong := list(extensions.check_embedded(value, node, path)):
        yield from wrong
    else:
        for cause in checking.check(value, node, run=run):
            yield cause._replace(field=f"{path}.{cause.field}" if cause.field else path)
