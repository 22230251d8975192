"""The protobuf form is read back by field numbers, as gnostic's OpenAPIv2.proto gives them."""

from __future__ import annotations

from apiserver.openapi import documents, gnostic
from tests.tables import cases


def read(data):
    """Return the fields of a message: number, then bytes or a whole number."""
    found, place = [], 0
    while place < len(data):
        key, place = varint(data, place)
        if key & 7 == 0:
            value, place = varint(data, place)
        elif key & 7 == 1:
            value, place = data[place : place + 8], place + 8
        else:
            length, place = varint(data, place)
            value, place = data[place : place + length], place + length
        found.append((key >> 3, value))
    return found


def varint(data, place):
    value = shift = 0
    while data[place] >= 0x80:
        value |= (data[place] & 0x7F) << shift
        place, shift = place + 1, shift + 7
    return value | data[place] << shift, place + 1


def fields(data, *numbers):
    """Return the messages at a path of field numbers."""
    found = [data]
    for number in numbers:
        found = [value for part in found for key, value in read(part) if key == number]
    return found


B = {"$ref": "#/definitions/a.B"}
SCHEMA_B = {
    "type": "object", "description": "d" * 200, "required": ["x"],
    "properties": {
        "x": {"type": "integer", "format": "int32", "minimum": 1, "maxLength": 300},
        "y": {"type": "array", "items": B},
        "z": {"type": "object", "additionalProperties": {"type": "string", "enum": ["p", "q"]}},
    },
    "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "B"}],
}  # fmt: skip
PATCH_B = {
    "tags": ["core_v1"], "description": "partly", "operationId": "patchB",
    "consumes": ["application/merge-patch+json"], "produces": ["application/json"],
    "parameters": [
        {"in": "query", "name": "fieldValidation", "type": "string", "uniqueItems": True},
        {"in": "body", "name": "body", "required": True, "schema": {"type": "object"}},
    ],
    "responses": {"200": {"description": "OK", "schema": B}}, "x-kubernetes-action": "patch",
}  # fmt: skip
NAME = {"in": "path", "name": "name", "required": True, "type": "string"}
DOCUMENT = {
    "swagger": "2.0", "info": {"title": "t", "version": "v"}, "security": [{"BearerToken": []}],
    "securityDefinitions": {"BearerToken": {"type": "apiKey", "name": "authorization", "in": "header"}},
    "definitions": {"a.B": SCHEMA_B}, "paths": {"/b/{name}": {"parameters": [NAME], "patch": PATCH_B}},
}  # fmt: skip
SCHEMA = (9, 1, 2)
PATCH = (8, 2, 2, 8)


@cases("path, expected", {
    "version": ((1,), [b"2.0"]),
    "title": ((2, 1), [b"t"]),
    "name of a definition": ((9, 1, 1), [b"a.B"]),
    "description longer than one byte of length": ((*SCHEMA, 4), [b"d" * 200]),
    "required": ((*SCHEMA, 19), [b"x"]),
    "type": ((*SCHEMA, 22, 1), [b"object"]),
    "properties": ((*SCHEMA, 25, 1, 1), [b"x", b"y", b"z"]),
    "minimum is a double": ((*SCHEMA, 25, 1, 2, 9), [b"\0\0\0\0\0\0\xf0?"]),
    "maxLength is a whole number": ((*SCHEMA, 25, 1, 2, 11), [300]),
    "items": ((*SCHEMA, 25, 1, 2, 23, 1, 1), [b"#/definitions/a.B"]),
    "values and enum": ((*SCHEMA, 25, 1, 2, 21, 1, 20, 2), [b'"p"\n', b'"q"\n']),
    "vendor extension": ((*SCHEMA, 31, 2, 2), [b'[{"group":"","version":"v1","kind":"B"}]\n']),
    "path": ((8, 2, 1), [b"/b/{name}"]),
    "path parameter": ((8, 2, 2, 9, 1, 2, 4, 4), [b"name"]),
    "operation id": ((*PATCH, 5), [b"patchB"]),
    "consumes": ((*PATCH, 7), [b"application/merge-patch+json"]),
    "query parameter": ((*PATCH, 8, 1, 2, 3, 4), [b"fieldValidation"]),
    "body parameter": ((*PATCH, 8, 1, 1, 2), [b"body"]),
    "code": ((*PATCH, 9, 1, 1), [b"200"]),
    "schema of an answer": ((*PATCH, 9, 1, 2, 1, 2, 1, 1), [b"#/definitions/a.B"]),
    "vendor extension of an operation": ((*PATCH, 13, 1), [b"x-kubernetes-action"]),
    "security definition": ((13, 1, 2, 2, 2), [b"authorization"]),
})  # fmt: skip
def test_each_thing_is_in_its_field(path, expected):
    assert fields(gnostic.document(DOCUMENT), *path) == expected


def test_the_whole_document_can_be_read_back():
    body = documents.version2()["protobuf"].body
    names = fields(body, *SCHEMA[:-1], 1)
    assert b"io.k8s.api.core.v1.Pod" in names
    assert names == sorted(names)
