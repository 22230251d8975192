"""OpenAPI 2.0 made from 3.0: for old clients, which ask for one document of everything."""

from __future__ import annotations

from typing import Any

from apiserver.openapi.definitions import PATCH
from kube.definitions import INT_OR_STRING, QUANTITY, REFERENCE
from kube.meta import Object

_ALTERNATIVES: dict[str, Object] = {
    QUANTITY: {"type": "string"},
    INT_OR_STRING: {"type": "string", "format": "int-or-string"},
    PATCH: {"type": "object"},
}
# What version 2 has no words for.
_DROPPED = frozenset({"oneOf", "anyOf", "not", "nullable", "allOf", "default", "example", "externalDocs"})
_PARAMETER = ("type", "format", "items")


def document(paths: Object, schemas: Object, info: Object) -> Object:
    """Return the OpenAPI 2.0 document of these path items and definitions."""
    return {
        "swagger": "2.0",
        "info": info,
        "paths": {path: _path_item(item) for path, item in paths.items()},
        "definitions": {name: definition(name, schema) for name, schema in schemas.items()},
        "securityDefinitions": {
            "BearerToken": {
                "type": "apiKey",
                "name": "authorization",
                "in": "header",
                "description": "A token: Bearer …",
            }
        },
        "security": [{"BearerToken": []}],
    }


def definition(name: str, schema: Object) -> Object:
    """Return a definition in version 2."""
    if name in _ALTERNATIVES:
        return {"description": schema["description"], **_ALTERNATIVES[name]}
    return convert(schema)


def convert(schema: Object) -> Object:
    """Return a schema in version 2; beside a reference its description may stand."""
    if "$ref" in schema:
        return {"$ref": "#/definitions/" + schema["$ref"].removeprefix(REFERENCE)}
    converted: Object = {}
    wrapped = schema.get("allOf") or schema.get("anyOf") or ()
    if wrapped and "$ref" in wrapped[0] and "properties" not in schema:
        converted = convert(wrapped[0])
    converted |= {key: _value(key, value) for key, value in schema.items() if key not in _DROPPED}
    if schema.get("x-kubernetes-int-or-string"):
        converted |= {"type": "string", "format": "int-or-string"}
    return converted


def _value(key: str, value: Any) -> Any:
    if key in ("items", "additionalProperties") and isinstance(value, dict):
        return convert(value)
    if key == "properties":
        return {name: convert(inner) for name, inner in value.items()}
    return value


def _path_item(item: Object) -> Object:
    return {
        key: [_parameter(parameter) for parameter in value] if key == "parameters" else _operation(value)
        for key, value in item.items()
    }


def _parameter(parameter: Object) -> Object:
    schema = parameter["schema"]
    converted = {key: value for key, value in parameter.items() if key != "schema"}
    return {**converted, "uniqueItems": True, **{key: schema[key] for key in _PARAMETER if key in schema}}


def _operation(operation: Object) -> Object:
    converted = {key: value for key, value in operation.items() if key != "requestBody"}
    converted["parameters"] = [_parameter(parameter) for parameter in operation.get("parameters", ())]
    body = operation.get("requestBody")
    converted["consumes"] = list(body["content"]) if body else ["*/*"]
    if body:
        schema = convert(next(iter(body["content"].values()))["schema"])
        converted["parameters"].append(
            {"in": "body", "name": "body", "required": bool(body.get("required")), "schema": schema}
        )
    responses = operation["responses"]
    converted["produces"] = list(responses["200"]["content"])
    converted["responses"] = {code: _response(answer) for code, answer in responses.items()}
    return converted


def _response(answer: Object) -> Object:
    converted = {"description": answer["description"]}
    contents = list(answer.get("content", {}).values())
    return {**converted, "schema": convert(contents[0]["schema"])} if contents else converted
