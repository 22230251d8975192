"""Paths and operations of OpenAPI 3.0 for every verb and subresource of the resource table."""

from __future__ import annotations

import re
from typing import NamedTuple

from apiserver.openapi import parameters
from apiserver.openapi.definitions import PATCH, definitions, reference
from kube import resources
from kube.definitions import GROUP_VERSION_KIND
from kube.meta import Object
from kube.resource import Resource, Subresource

READABLE = ("application/json", "application/yaml")
WRITABLE = (*READABLE, "application/vnd.kubernetes.protobuf")
JSON_PATCH, MERGE_PATCH = "application/json-patch+json", "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
WATCH_STREAM = "application/json;stream=watch"
CONNECTIONS = frozenset({"exec", "attach", "link", "portforward", "proxy"})
LOG = "log"

# verb: method, first word of the operation's id, x-kubernetes-action, what the description says, codes beside 200
_VERBS: dict[str, tuple[str, str, str, str, tuple[int, ...]]] = {
    "get": ("get", "read", "get", "read the specified", ()),
    "list": ("get", "list", "list", "list or watch objects of kind", ()),
    "create": ("post", "create", "post", "create a", (201, 202)),
    "update": ("put", "replace", "put", "replace the specified", (201,)),
    "patch": ("patch", "patch", "patch", "partially update the specified", (201,)),
    "delete": ("delete", "delete", "delete", "delete a", (202,)),
    "deletecollection": ("delete", "deleteCollection", "deletecollection", "delete collection of", ()),
}
_OBJECT_VERBS = ("get", "update", "patch", "delete")
_COLLECTION_VERBS = ("list", "create", "deletecollection")
_CODES = {200: "OK", 201: "Created", 202: "Accepted"}
_WORDS = re.compile(r"[.-]")


class Names(NamedTuple):
    """The definitions that a resource's operations speak of."""

    item: str
    list: str
    status: str
    options: str


def paths(resource: Resource) -> Object:
    """Return the path items of a resource by their paths."""
    names = Names(
        definitions.of(resource),
        definitions.list_of(resource),
        definitions.meta("Status"),
        definitions.meta("DeleteOptions"),
    )
    everywhere = f"{root(resource)}/{resource.plural}"
    collection = f"{root(resource)}/namespaces/{{namespace}}/{resource.plural}" if resource.namespaced else everywhere
    single = f"{collection}/{{name}}"
    items = {
        collection: _item(resource, names, _COLLECTION_VERBS, named=False),
        single: _item(resource, names, _OBJECT_VERBS, named=True),
    }
    if resource.namespaced and "list" in resource.verbs:
        listed = _operation(resource, "list", names, suffix="ForAllNamespaces")
        items[everywhere] = {"get": listed, "parameters": [parameters.PRETTY]}
    for part in resource.parts:
        operations = {_VERBS[verb][0]: _part_operation(resource, part, verb) for verb in part.verbs if verb in _VERBS}
        items[f"{single}/{part.name}"] = {**operations, "parameters": _path_parameters(resource, named=True)}
    return {path: item for path, item in items.items() if set(item) - {"parameters"}}


def root(resource: Resource) -> str:
    """Return the path below which a group's version is served."""
    return f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"


def patch_types(resource: Resource) -> tuple[str, ...]:
    """Return the media types in which objects of a kind can be patched."""
    strategic = () if resource.schema is not None else (STRATEGIC_PATCH,)
    return (JSON_PATCH, MERGE_PATCH, *strategic, APPLY_PATCH)


def _item(resource: Resource, names: Names, verbs: tuple[str, ...], *, named: bool) -> Object:
    item: Object = {_VERBS[verb][0]: _operation(resource, verb, names) for verb in verbs if verb in resource.verbs}
    return {**item, "parameters": _path_parameters(resource, named=named)}


def _path_parameters(resource: Resource, *, named: bool) -> list[Object]:
    result = [parameters.PRETTY]
    if resource.namespaced:
        result.insert(0, parameters.NAMESPACE)
    if named:
        result.insert(0, parameters.name(resource.kind))
    return result


def _operation(resource: Resource, verb: str, names: Names, suffix: str = "") -> Object:
    _, _, action, text, codes = _VERBS[verb]
    answer = {
        "list": reference(names.list),
        # What is deleted later, because of finalizers or a grace period, is answered with as it is.
        "delete": {"anyOf": [reference(names.status), reference(names.item)]},
        "deletecollection": {"anyOf": [reference(names.status), reference(names.list)]},
    }.get(verb, reference(names.item))
    operation = _frame(resource, f"{text} {resource.kind}", action, _operation_id(resource, verb, suffix))
    operation["parameters"] = list(parameters.OF_VERB.get(verb, ()))
    if verb == "patch":
        operation["requestBody"] = _patch_body(resource)
    elif verb in ("create", "update"):
        operation["requestBody"] = {"content": _content(WRITABLE, reference(names.item)), "required": True}
    elif verb in ("delete", "deletecollection"):
        operation["requestBody"] = {"content": _content(WRITABLE, reference(names.options))}
    media = (*READABLE, WATCH_STREAM) if verb == "list" else READABLE
    operation["responses"] = _responses((200, *codes), answer, media, names.status)
    return operation


def _patch_body(resource: Resource) -> Object:
    schema = reference(PATCH)
    return {"content": _content(patch_types(resource), schema), "required": True}


def _part_operation(resource: Resource, part: Subresource, verb: str) -> Object:
    method, _, action, text, codes = _VERBS[verb]
    status = definitions.meta("Status")
    title = part.name[0].upper() + part.name[1:]
    if part.name in CONNECTIONS:
        operation = _frame(
            resource,
            f"connect {method.upper()} requests to {part.name} of {resource.kind}",
            "connect",
            _id("connect", resource, method.capitalize(), title),
        )
        operation["parameters"] = list(parameters.OF_PART.get(part.name, ()))
        operation["responses"] = _responses((200,), {"type": "string"}, ("*/*",), status)
        return operation
    operation = _frame(
        resource,
        f"{text} {part.name} of {resource.kind}" if part.name == LOG else f"{text} {resource.kind}'s {part.name}",
        action,
        _operation_id(resource, verb, title),
        part,
    )
    if part.name == LOG:
        operation["parameters"] = list(parameters.OF_PART[LOG])
        operation["responses"] = _responses((200,), {"type": "string"}, ("text/plain",), status)
        return operation
    schema = reference(_part_definition(resource, part))
    operation["parameters"] = list(parameters.OF_VERB.get(verb, ()))
    if verb == "patch":
        operation["requestBody"] = _patch_body(resource)
    elif verb in ("create", "update"):
        operation["requestBody"] = {"content": _content(WRITABLE, schema), "required": True}
    # Evictions and bindings are answered with a Status.
    answer = {"anyOf": [reference(status), schema]} if verb == "create" else schema
    operation["responses"] = _responses((200, *codes), answer, READABLE, status)
    return operation


def _part_definition(resource: Resource, part: Subresource) -> str:
    if not part.kind:
        return definitions.of(resource)
    own = part if part.version else resource
    served = resources.by_kind(f"{own.group}/{own.version}" if own.group else own.version, part.kind)
    if served is not None:
        return definitions.of(served)
    return definitions.kind(own.group, own.version, part.kind)


def _frame(resource: Resource, text: str, action: str, operation_id: str, part: Subresource | None = None) -> Object:
    kind = (resource.group, resource.version, resource.kind)
    if part is not None and part.kind:
        kind = (part.group, part.version, part.kind)
    return {
        "description": text,
        "operationId": operation_id,
        "tags": [f"{_camel(resource.group)}_{resource.version}"],
        "x-kubernetes-action": action,
        GROUP_VERSION_KIND: dict(zip(("group", "version", "kind"), kind, strict=True)),
    }


def _operation_id(resource: Resource, verb: str, suffix: str = "") -> str:
    if verb == "deletecollection":
        return _id("delete", resource, "Collection", suffix)
    return _id(_VERBS[verb][1], resource, "", suffix)


def _id(first: str, resource: Resource, middle: str, suffix: str) -> str:
    group = _camel(resource.group)
    version = resource.version[0].upper() + resource.version[1:]
    scope = "Namespaced" if resource.namespaced and suffix != "ForAllNamespaces" else ""
    return f"{first}{group[0].upper()}{group[1:]}{version}{middle}{scope}{resource.kind}{suffix}"


def _camel(group: str) -> str:
    first, *rest = _WORDS.split(group.removesuffix(".k8s.io") or "core")
    return first + "".join(word.capitalize() for word in rest)


def _content(media_types: tuple[str, ...], schema: Object) -> Object:
    return {media_type: {"schema": schema} for media_type in media_types}


def _responses(codes: tuple[int, ...], schema: Object, media_types: tuple[str, ...], status: str) -> Object:
    responses: Object = {
        str(code): {"description": _CODES[code], "content": _content(media_types, schema)} for code in codes
    }
    responses["401"] = {"description": "Unauthorized"}
    failure = _content(READABLE, reference(status))
    responses["default"] = {"description": "An error, as a Status that says what is wrong.", "content": failure}
    return responses
