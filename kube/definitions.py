"""What every kind is made of: OpenAPI 3.0 schemas by name, which refer to each other.

Kubernetes' own types are read from the installed package `kubernetes-validate`, which carries the
definitions that Kubernetes publishes, with its `x-kubernetes-` keywords. Those of Volcano and of this
project are the files in `kube/openapi`, in the form that is served:

common      what every kind shares, and what the package says too little of
validation  what the API server asks of Kubernetes' types beyond the type of a field

A file is mapped into memory and split by definition, so that processes share it and read only what
they need.
"""

from __future__ import annotations

import mmap
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from kube.meta import Object
from kube.resource import Resource

VERSION = "v1.36.0"
REFERENCE = "#/components/schemas/"
GROUP_VERSION_KIND = "x-kubernetes-group-version-kind"
LIST_TYPE, MAP_TYPE = "x-kubernetes-list-type", "x-kubernetes-map-type"
MAP_KEYS = "x-kubernetes-list-map-keys"

KUBERNETES = "io.k8s."
CORE = "io.k8s.api.core.v1"
META = "io.k8s.apimachinery.pkg.apis.meta.v1"
QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
OBJECT = "Object"  # an object of a kind that is described elsewhere, such as a custom resource
OBJECT_META = f"{META}.ObjectMeta"

_OWN = Path(__file__).parent / "openapi"
_LOCAL = "#/$defs/"  # how the package refers
_PREFIXES = {
    "apiextensions.k8s.io": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions",
    "metrics.k8s.io": "io.k8s.metrics.pkg.apis.metrics",
}
_decode = msgspec.json.Decoder(dict[str, Any]).decode
_split = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class MissingDefinitionsError(Exception):
    """The installed package lacks the definitions of the Kubernetes version that is served."""


def of(resource: Resource) -> str:
    """Return the name of a kind's definition, such as `io.k8s.api.core.v1.Pod`; OBJECT for another kind."""
    return OBJECT if resource.schema is not None else _of(resource.group, resource.version, resource.kind)


@cache
def _of(group: str, version: str, kind: str) -> str:
    name = f"{prefix(group, version)}.{kind}"
    return name if exists(name) else OBJECT


def of_kind(api_version: str, kind: str) -> str:
    """Return the name of the definition of a kind, such as Scale of `autoscaling/v1`."""
    group, _, version = api_version.rpartition("/")
    return f"{prefix(group, version)}.{kind}"


def prefix(group: str, version: str) -> str:
    """Return what precedes the names of a group's definitions: `io.k8s.api.batch.v1`, `sh.volcano.batch.v1alpha1`."""
    if group in _PREFIXES:
        return f"{_PREFIXES[group]}.{version}"
    if "." not in group or group.endswith(".k8s.io"):
        return f"io.k8s.api.{group.partition('.')[0] or 'core'}.{version}"
    return ".".join((*reversed(group.split(".")), version))


def exists(name: str) -> bool:
    """Whether there is a definition of this name."""
    return name in _own() or name in _kubernetes()


@cache
def named(name: str) -> Object:
    """Return a definition, which nobody may change; KeyError when there is none."""
    own = _own().get(name)
    return _decode(own) if own is not None else _standard(_decode(_kubernetes()[name]), root=True)


@cache
def checked(name: str) -> Object:
    """Return a definition as objects are checked against it.

    Kubernetes publishes every field as required that Go always writes, and checks few of them: those,
    and the bounds of values, are in the file `validation`.
    """
    schema = named(name)
    if name in _own() or not name.startswith(KUBERNETES):
        return schema
    validation = _validation().get(name, {})
    bounds = validation.get("properties", {})
    properties = schema.get("properties", {})
    merged = {field: _merged(inner, bounds[field]) for field, inner in properties.items() if field in bounds}
    return {**schema, "required": validation.get("required", []), "properties": {**properties, **merged}}


def properties(name: str) -> dict[str, Object]:
    """Return the fields of a definition with their schemas."""
    found: dict[str, Object] = named(name).get("properties", {}) if name else {}
    return found


@cache
def part(definition: str, field: str) -> str:
    """Return the definition of a field's value, or of the items of its list; "" where it has none."""
    schema = properties(definition).get(field, {})
    return reference(schema.get("items", schema))


def reference(schema: Object) -> str:
    """Return the name that a schema refers to, also beside a description; "" when it is one of its own."""
    alternatives = schema.get("allOf") or [schema]
    found: str = alternatives[0].get("$ref", "") if len(alternatives) == 1 else ""
    return found.removeprefix(REFERENCE)


def _merged(schema: Object, more: Object) -> Object:
    return {
        **schema,
        **{key: _merged(schema.get(key, {}), value) if type(value) is dict else value for key, value in more.items()},
    }


@cache
def _own() -> dict[str, msgspec.Raw]:
    definitions: dict[str, msgspec.Raw] = {}
    for path in sorted(_OWN.glob("*.json")):
        if path.stem != "validation":
            definitions |= _split(_mapped(path))
    return definitions


@cache
def _validation() -> Object:
    return _decode((_OWN / "validation.json").read_bytes())


@cache
def _kubernetes() -> dict[str, msgspec.Raw]:
    """Return the package's definitions. It is found and not imported: importing it costs seconds."""
    package = find_spec("kubernetes_validate")
    if package is None or package.origin is None:
        raise MissingDefinitionsError("The package kubernetes-validate is not installed; run `make`.")
    schemas = Path(package.origin).parent / "kubernetes-json-schema"
    path = schemas / f"{VERSION}-local" / "_definitions.json"
    if not path.exists():
        raise MissingDefinitionsError(
            f"The installed package kubernetes-validate has no definitions of Kubernetes {VERSION}."
            " Install the version that requirements.txt names."
        )
    return _split(_split(_mapped(path))["$defs"])


def _mapped(path: Path) -> memoryview:
    with path.open("rb") as file:
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _standard(schema: Object, *, root: bool = False) -> Object:
    """Return a schema of the package in OpenAPI's words: no null among the types, nothing beside a reference."""
    found = {key: _converted(key, value) for key, value in schema.items() if key != "$ref"}
    if root and GROUP_VERSION_KIND in found:
        for field in ("apiVersion", "kind"):
            found["properties"][field].pop("enum", None)  # the package adds it
    if "$ref" not in schema:
        return found
    target = {"$ref": REFERENCE + schema["$ref"].removeprefix(_LOCAL)}
    return {**found, "allOf": [target]} if found else target


def _converted(key: str, value: Any) -> Any:
    if key == "properties":
        return {name: _field(schema) for name, schema in value.items()}
    if key == "type" and type(value) is list:
        return value[0]
    if key in ("items", "additionalProperties") and type(value) is dict:
        return _standard(value)
    if key == GROUP_VERSION_KIND:
        return [{part: kind[part] for part in ("group", "version", "kind")} for kind in value]
    if key in ("oneOf", "anyOf", "allOf"):
        return [_standard(schema) for schema in value]
    return value


def _field(schema: Object) -> Object:
    """Return the schema of a field: its list is one value unless Kubernetes says otherwise."""
    found = _standard(schema)
    return {**found, LIST_TYPE: found.get(LIST_TYPE, "atomic")} if found.get("type") == "array" else found
