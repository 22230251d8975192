"""The schemas of everything served, by Kubernetes' names; each is made when first referred to.

Where they come from: Kubernetes' own types from the client package's models,
Volcano's and other kinds from their structs, custom resources from their own
schema. They are OpenAPI 3.0 schemas that refer to each other.
"""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING, Any

from cluster.apiserver.openapi import facts, models, structs
from cluster.apiserver.openapi.descriptions import PARTS
from kube import lists

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from msgspec import Struct

    from kube.meta import Object
    from kube.resource import Resource

REFERENCE = "#/components/schemas/"
GROUP_VERSION_KIND = "x-kubernetes-group-version-kind"

_MODEL = re.compile(r"([A-Z][a-z]+)??V(\d+(?:(?:alpha|beta)\d+)?)([A-Z]\w*)")
_CONTAINER = re.compile(r"(list|dict)[\[(](?:str, )?(.+)[\])]")
_PLAIN: dict[str, Object] = {
    "str": {"type": "string"},
    "bool": {"type": "boolean"},
    "float": {"type": "number", "format": "double"},
}
_FIXED: dict[str, Object] = {
    facts.TIME: {
        "description": "A moment in RFC 3339, such as 2026-01-31T12:00:00Z.",
        "type": "string",
        "format": "date-time",
    },
    facts.MICRO_TIME: {
        "description": "A moment in RFC 3339 with microseconds, such as 2026-01-31T12:00:00.000000Z.",
        "type": "string",
        "format": "date-time",
    },
    facts.QUANTITY: {
        "description": "An amount as a whole or decimal number with an optional suffix: m for thousandths, k, M, G, T, "
        "P, E for powers of 1000, Ki, Mi, Gi, Ti, Pi, Ei for powers of 1024, or an exponent such as e3. Examples: "
        "500m, 2, 1.5Gi.",
        "oneOf": [{"type": "string"}, {"type": "number"}],
    },
    facts.INT_OR_STRING: {
        "description": "A whole number, or a text such as a port's name or a percentage.",
        "format": "int-or-string",
        "oneOf": [{"type": "integer"}, {"type": "string"}],
    },
    facts.FIELDS_V1: {
        "description": "Fields as a tree: f:<name> is a field, k:<keys> an item of a list by its keys, v:<value> an item "
        "of a set, and . the thing itself.",
        "type": "object",
    },
    facts.PATCH: {
        "description": "A patch in the form that the Content-Type names.",
        # A JSON patch is a list, the other patches are objects.
        "oneOf": [{"type": "object"}, {"type": "array", "items": {"type": "object"}}],
    },
    facts.RAW_EXTENSION: {"description": "An object of any kind.", "type": "object"},
    facts.JSON: {"description": "Any JSON value."},
}


def reference(name: str) -> Object:
    """Return a schema that stands for the named definition."""
    return {"$ref": REFERENCE + name}


class Definitions:
    """All definitions made so far. Any thread may ask; what was made never changes."""

    def __init__(self) -> None:
        self._schemas: dict[str, Object] = {}
        self._custom: dict[str, Resource] = {}
        self._lock = threading.RLock()

    def __getitem__(self, name: str) -> Object:
        return self._schemas[name]

    def of(self, resource: Resource) -> str:
        """Return the name of a resource's definition."""
        with self._lock:
            if resource.schema is not None:
                return self._of_custom(resource)
            prefix = facts.group_prefix(resource.group, resource.version)
            return self.kind(prefix, resource.group, resource.version, resource.kind, resource.type)

    def kind(self, prefix: str, group: str, version: str, kind: str, struct: type[Struct] | None) -> str:
        """Return the name of the definition of a kind; struct describes it where the client package does not."""
        with self._lock:
            model = _model_of(group, version, kind)
            if model is not None:
                name = self._of_model(model, prefix)
                self._describe(prefix, struct)
            elif struct is not None:
                name = self._of_struct(struct, prefix)
            else:
                name = f"{prefix}.{kind}"
                self._schemas.setdefault(name, {"type": "object"})
            marked = {"group": group, "version": version, "kind": kind}
            self._schemas[name].setdefault(GROUP_VERSION_KIND, [marked])
            return name

    def list_of(self, resource: Resource) -> str:
        """Return the name of the definition of a list of a resource's objects."""
        with self._lock:
            item = self.of(resource)
            name = f"{item}List"
            self._schemas[name] = {
                "description": f"{resource.list_kind} is a list of {resource.kind} objects.",
                "type": "object",
                "required": ["items"],
                "properties": {
                    **_type_fields(),
                    "metadata": _described(reference(self.meta("ListMeta")), "Metadata of the list."),
                    "items": {
                        "description": "The objects.",
                        "type": "array",
                        "items": reference(item),
                    },
                },
                GROUP_VERSION_KIND: [
                    {"group": resource.group, "version": resource.version, "kind": resource.list_kind}
                ],
            }
            return name

    def meta(self, kind: str) -> str:
        """Return the name of a definition of apimachinery, such as `ObjectMeta`."""
        with self._lock:
            return self._of_model(f"V1{kind}", facts.META)

    def fixed(self, name: str) -> str:
        """Return the name of a definition that is written here."""
        self._schemas.setdefault(name, _FIXED[name])
        return name

    def reachable(self, names: Iterable[str]) -> dict[str, Object]:
        """Return these definitions and all that they refer to, by name."""
        found: dict[str, Object] = {}
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name not in found:
                found[name] = self._schemas[name]
                waiting.extend(referred(found[name]))
        return dict(sorted(found.items()))

    def _of_custom(self, resource: Resource) -> str:
        prefix = facts.group_prefix(resource.group, resource.version)
        name = f"{prefix}.{resource.kind}"
        if self._custom.get(name) is not resource:
            schema = {**(resource.schema or {}), "type": "object"}
            metadata = _described(reference(self.meta("ObjectMeta")), "Standard metadata of an object.")
            schema["properties"] = {
                **(schema.get("properties") or {}),
                **_type_fields(),
                "metadata": metadata,
            }
            marked = {"group": resource.group, "version": resource.version, "kind": resource.kind}
            self._schemas[name] = {**schema, GROUP_VERSION_KIND: [marked]}
            self._custom[name] = resource
        return name

    def _of_model(self, model: str, home: str) -> str:
        name = _definition_name(model, home)
        if name not in self._schemas:
            if not models.exists(model):
                self._schemas[name] = {"type": "object"}
                return name
            schema: Object = {"type": "object"}
            self._schemas[name] = schema  # before its fields, which may refer to it
            prefix, _, kind = name.rpartition(".")
            fields = models.fields(model)
            schema["properties"] = {field.name: self._field(name, field, prefix) for field in fields}
            if required := [field.name for field in fields if field.required]:
                schema["required"] = required
            if lists.short(name) in lists.ATOMIC:
                schema["x-kubernetes-map-type"] = "atomic"
            if kind in ("DeleteOptions", "Status") and prefix == facts.META:
                schema[GROUP_VERSION_KIND] = [{"group": "", "version": "v1", "kind": kind}]
        return name

    def _field(self, definition: str, field: models.Field, home: str) -> Object:
        schema = self._type(field.type, f"{lists.short(definition)}.{field.name}", home)
        is_list = schema.get("type") == "array"
        kind = definition.rpartition(".")[2]
        text = field.description or PARTS.get(f"{kind}.{field.name}") or PARTS.get(field.name, "")
        return {
            **_described(schema, text),
            **lists.extensions(definition, field.name, is_list=is_list),
        }

    def _type(self, text: str, where: str, home: str) -> Object:
        if match := _CONTAINER.fullmatch(text):
            inner = self._type(match[2], where, home)
            if match[1] == "list":
                return {"type": "array", "items": inner}
            return {"type": "object", "additionalProperties": inner}
        if text == "int":
            is_long = where in facts.INT64 or where.rpartition(".")[2] in facts.INT64_NAMES
            return {"type": "integer", "format": "int64" if is_long else "int32"}
        if where in facts.BYTES:
            return {"type": "string", "format": "byte"}
        if (special := _special(text, where)) is not None:
            return reference(self.fixed(special))
        if text in _PLAIN:
            return dict(_PLAIN[text])
        if text == "object":
            return {"type": "object"}
        return reference(self._of_model(text, home))

    def _describe(self, prefix: str, struct: type[Struct] | None) -> None:
        """Give the definitions of the types below struct, which have the same names, their descriptions."""
        for inner in structs.below(struct) if struct else ():
            for home in (prefix, facts.CORE, facts.META):
                schema = self._schemas.get(f"{home}.{inner.__name__}")
                if schema is not None and "description" not in schema:
                    schema["description"] = structs.description(inner)

    def _of_struct(self, struct: type[Struct], prefix: str) -> str:
        model = f"V1{struct.__name__}"
        home = structs.upstream_home(struct)
        if home and models.exists(model):
            name = self._of_model(model, home)
            self._describe(home, struct)
            return name
        name = f"{prefix}.{struct.__name__}"
        if name not in self._schemas:
            schema: Object = {}
            self._schemas[name] = schema
            schema.update(structs.schema(struct, name, lambda inner: self._inner(inner, prefix)))
        return name

    def _inner(self, inner: type[Struct] | str, prefix: str) -> Object:
        """Return a reference to what a struct's field holds: another struct, or something with a name."""
        if isinstance(inner, str):
            fixed = inner in _FIXED
            return reference(self.fixed(inner) if fixed else self.meta(inner.rpartition(".")[2]))
        return reference(self._of_struct(inner, prefix))


definitions = Definitions()


def referred(schema: Any) -> Iterator[str]:
    """Return the names that a schema refers to."""
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key == "$ref" and isinstance(value, str):
                yield value.removeprefix(REFERENCE)
            else:
                yield from referred(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from referred(item)


def _special(text: str, where: str) -> str | None:
    """Return the definition of a type that is more than the model's notation says."""
    if text == "datetime":
        return facts.MICRO_TIME if where in facts.MICRO_TIMES else facts.TIME
    if text == "str":
        return facts.QUANTITY if where in facts.QUANTITIES else None
    if text != "object":
        return None
    if where in facts.INTS_OR_STRINGS:
        return facts.INT_OR_STRING
    if where in facts.RAW:
        return facts.RAW_EXTENSION
    return facts.OBJECTS.get(where) or (facts.JSON if where.startswith("apiextensions.") else None)


def _definition_name(model: str, home: str) -> str:
    """Return the definition that a model stands for; home is the prefix of what refers to it."""
    match = _MODEL.fullmatch(model)
    if match is None:
        return f"{home}.{model}"
    group, version, kind = match.groups()
    if model in facts.META_MODELS:
        return f"{facts.META}.{kind}"
    if group == "Apiextensions":
        return f"{facts.EXTENSIONS}.{kind}"
    if group:
        return f"io.k8s.api.{group.lower()}.v{version}.{kind}"
    return f"{facts.CORE if model in facts.CORE_MODELS else home}.{kind}"


def _model_of(group: str, version: str, kind: str) -> str | None:
    """Return the model that describes a kind, None for kinds that are not Kubernetes' own."""
    if not facts.is_kubernetes(group):
        return None
    name = version.capitalize() + kind
    label = (group.partition(".")[0] or "core").capitalize()
    return next((model for model in (label + name, name) if models.exists(model)), None)


def _type_fields() -> Object:
    return {name: {"type": "string", "description": text} for name, text in structs.TYPE_FIELDS.items()}


def _described(schema: Object, text: str) -> Object:
    """Add a description; beside a reference nothing else may stand, so it is wrapped."""
    if not text:
        return schema
    if "$ref" in schema:
        return {"description": text, "allOf": [schema]}
    return {"description": text, **schema}
