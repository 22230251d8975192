"""OpenAPI 2.0 in gnostic's protobuf form, the only one in which kubectl reads it (reference: kubernetes-api §3.2).

Written from JSON-like values; only what these documents contain is encoded.
Field numbers are those of gnostic's OpenAPIv2.proto. Values without a field of
their own, vendor extensions above all, travel as YAML text, and JSON is YAML.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import msgspec

from kube.meta import Object

_LENGTH, _VARINT, _DOUBLE = 2, 0, 1


def document(content: Object) -> bytes:
    """Return an OpenAPI 2.0 document as `openapi.v2.Document`."""
    definitions = b"".join(
        _message(1, _named(name, _schema(schema))) for name, schema in content["definitions"].items()
    )
    paths = b"".join(_message(2, _named(path, _path_item(item))) for path, item in content["paths"].items())
    info = _text(1, content["info"]["title"]) + _text(2, content["info"]["version"])
    keys = content.get("securityDefinitions", {}).items()
    return b"".join(
        (
            _text(1, content["swagger"]),
            _message(2, info),
            _message(8, paths),
            _message(9, definitions),
            *(_message(12, _message(1, _named(name, b""))) for item in content.get("security", ()) for name in item),
            _message(13, b"".join(_message(1, _named(name, _message(2, _api_key(key)))) for name, key in keys)),
        )
    )


def _api_key(key: Object) -> bytes:
    texts = (key["type"], key["name"], key["in"], key.get("description", ""))
    return b"".join(_text(number, text) for number, text in enumerate(texts, start=1))


def _path_item(item: Object) -> bytes:
    methods = {"get": 2, "put": 3, "post": 4, "delete": 5, "patch": 8}
    parts = [_message(number, _operation(item[method])) for method, number in methods.items() if method in item]
    parts += [_message(9, _parameter(parameter)) for parameter in item.get("parameters", ())]
    return b"".join(parts)


def _operation(operation: Object) -> bytes:
    responses = b"".join(
        _message(1, _named(code, _message(1, _response(response)))) for code, response in operation["responses"].items()
    )
    return b"".join(
        (
            *(_text(1, tag) for tag in operation["tags"]),
            _text(3, operation["description"]),
            _text(5, operation["operationId"]),
            *(_text(6, media) for media in operation["produces"]),
            *(_text(7, media) for media in operation["consumes"]),
            *(_message(8, _parameter(parameter)) for parameter in operation["parameters"]),
            _message(9, responses),
            *_extensions(operation, 13),
        )
    )


def _response(response: Object) -> bytes:
    schema = response.get("schema")
    return _text(1, response["description"]) + (_message(2, _message(1, _schema(schema))) if schema else b"")


def _parameter(parameter: Object) -> bytes:
    """Return a ParametersItem."""
    if parameter["in"] == "body":
        body = b"".join(
            (
                _text(1, parameter.get("description", "")),
                _text(2, parameter["name"]),
                _text(3, "body"),
                _flag(4, parameter.get("required")),
                _message(5, _schema(parameter["schema"])),
            )
        )
        return _message(1, _message(1, body))
    is_query = parameter["in"] == "query"
    # The schemas of both kinds differ in one field that is never set, which shifts the numbers after it.
    numbers = {"type": 6 if is_query else 5, "format": 7 if is_query else 6, "items": 8 if is_query else 7}
    content = b"".join(
        (
            _flag(1, parameter.get("required")),
            _text(2, parameter["in"]),
            _text(3, parameter.get("description", "")),
            _text(4, parameter["name"]),
            _text(numbers["type"], parameter["type"]),
            _text(numbers["format"], parameter.get("format", "")),
            _message(numbers["items"], _text(1, parameter["items"]["type"])) if "items" in parameter else b"",
            _flag(20 if is_query else 19, parameter.get("uniqueItems")),
        )
    )
    return _message(1, _message(2, _message(3 if is_query else 4, content)))


def _schema(schema: Object) -> bytes:
    parts = [
        write(number, schema[key])
        for key, (number, write) in _SCHEMA_FIELDS.items()
        if schema.get(key) not in (None, "")
    ]
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict):
        parts.append(_message(21, _message(1, _schema(additional))))
    elif additional is not None:
        parts.append(_message(21, _flag(2, additional)))
    return b"".join((*parts, *_extensions(schema, 31)))


def _extensions(content: Object, number: int) -> list[bytes]:
    return [_message(number, _named(key, _any(value))) for key, value in content.items() if key.startswith("x-")]


def _named(name: str, value: bytes) -> bytes:
    """Return an entry of a map."""
    return _text(1, name) + _message(2, value)


def _any(value: Any) -> bytes:
    return _text(2, msgspec.json.encode(value).decode() + "\n")


def _properties(number: int, values: Object) -> bytes:
    return _message(number, b"".join(_message(1, _named(name, _schema(inner))) for name, inner in values.items()))


def _text(number: int, value: str) -> bytes:
    return _message(number, value.encode()) if value else b""


def _message(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | _LENGTH) + _varint(len(content)) + content


def _flag(number: int, value: Any) -> bytes:
    return _varint(number << 3 | _VARINT) + b"\x01" if value else b""


def _whole(number: int, value: int) -> bytes:
    return _varint(number << 3 | _VARINT) + _varint(value & 0xFFFF_FFFF_FFFF_FFFF)


def _double(number: int, value: float) -> bytes:
    return _varint(number << 3 | _DOUBLE) + struct.pack("<d", value)


def _varint(value: int) -> bytes:
    if value < 0x80:
        return bytes((value,))
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


_SCHEMA_FIELDS: dict[str, tuple[int, Callable[[int, Any], bytes]]] = {
    "$ref": (1, _text),
    "format": (2, _text),
    "title": (3, _text),
    "description": (4, _text),
    "default": (5, lambda number, value: _message(number, _any(value))),
    "multipleOf": (6, _double),
    "maximum": (7, _double),
    "exclusiveMaximum": (8, _flag),
    "minimum": (9, _double),
    "exclusiveMinimum": (10, _flag),
    "maxLength": (11, _whole),
    "minLength": (12, _whole),
    "pattern": (13, _text),
    "maxItems": (14, _whole),
    "minItems": (15, _whole),
    "uniqueItems": (16, _flag),
    "maxProperties": (17, _whole),
    "minProperties": (18, _whole),
    "required": (19, lambda number, values: b"".join(_text(number, value) for value in values)),
    "enum": (20, lambda number, values: b"".join(_message(number, _any(value)) for value in values)),
    "type": (22, lambda number, value: _message(number, _text(1, value))),
    "items": (23, lambda number, value: _message(number, _message(1, _schema(value)))),
    "properties": (25, _properties),
}
