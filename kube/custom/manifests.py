"""A kind of the table as a CustomResourceDefinition, for clusters that have an API server of their own.

Schemas are those of `kube.definitions`, with all that they refer to written out, as a structural schema must be.
Sources of the form: k8s.io/apiextensions-apiserver pkg/apis/apiextensions/validation/validation.go;
kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions.
"""

from __future__ import annotations

from kube import definitions, quantity
from kube.meta import Object
from kube.resource import Column, Resource

_PRESERVE = "x-kubernetes-preserve-unknown-fields"
# What a structural schema may say of a value itself; what else a definition has is for other readers.
_KEYWORDS = frozenset(
    (
        "type",
        "format",
        "enum",
        "pattern",
        "nullable",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "required",
        _PRESERVE,
        definitions.LIST_TYPE,
        definitions.MAP_TYPE,
        definitions.MAP_KEYS,
    )
)
_TWO_TYPES = {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}
_WRITTEN_OUT: dict[str, Object] = {
    definitions.QUANTITY: {**_TWO_TYPES, "pattern": f"^{quantity.PATTERN}$"},
    definitions.INT_OR_STRING: _TWO_TYPES,
}


def manifest(resource: Resource) -> Object:
    """Return the CustomResourceDefinition of a kind whose definition is ours."""
    version: Object = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _root(definitions.of(resource))},
        "subresources": {"status": {}} if resource.status_subresource else {},
        "additionalPrinterColumns": [_column(each) for each in resource.columns if each.name != "Name"],
    }
    called = {
        "kind": resource.kind,
        "listKind": resource.list_kind,
        "plural": resource.plural,
        "singular": resource.singular,
        "shortNames": list(resource.short_names),
        "categories": list(resource.categories),
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": resource.id},
        "spec": {
            "group": resource.group,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "names": {key: value for key, value in called.items() if value},
            "versions": [{key: value for key, value in version.items() if value}],
        },
    }


def _column(column: Column) -> Object:
    fields: Object = {"name": column.name, "type": column.type, "jsonPath": f".{column.path}"}
    return {**fields, "priority": column.priority} if column.priority else fields


def _root(name: str) -> Object:
    """Return the schema of a kind, of whose metadata the API server knows by itself."""
    schema = _structural({"$ref": definitions.REFERENCE + name}, described=True)
    return {**schema, "properties": {**schema["properties"], "metadata": {"type": "object"}}}


def _structural(schema: Object, *, described: bool) -> Object:
    """Return a schema with all that it refers to written out.

    Kubernetes describes its own kinds in its own documents, so they are not `described` once more.
    """
    name = definitions.reference(schema)
    if not name:
        return _plain(schema, described=described)
    is_ours = not name.startswith(definitions.KUBERNETES)
    structural = _WRITTEN_OUT.get(name) or _plain(definitions.checked(name), described=is_ours)
    return {**structural, "description": schema["description"]} if described and "description" in schema else structural


def _plain(schema: Object, *, described: bool) -> Object:
    plain = {key: value for key, value in schema.items() if key in _KEYWORDS and value not in ([], "")}
    if described and "description" in schema:
        plain["description"] = schema["description"]
    kind = schema.get("type", "object")
    if kind == "array":
        return _list(plain, _structural(schema.get("items", {}), described=described))
    if schema.get("properties"):
        fields = schema["properties"].items()
        return {**plain, "properties": {name: _structural(each, described=described) for name, each in fields}}
    if "additionalProperties" in schema:
        items = _structural(schema["additionalProperties"], described=described)
        return {**plain, "additionalProperties": items}
    # The content of an object without declared fields is unknown, which is no reason to drop it.
    return {**plain, _PRESERVE: True} if kind == "object" else plain


def _list(schema: Object, items: Object) -> Object:
    """Return the schema of a list; one whose items need not have their key is a single value for who merges."""
    kind = schema.get(definitions.LIST_TYPE)
    keys = set(schema.get(definitions.MAP_KEYS, ()))
    if kind == "map" and not keys <= set(items.get("required", ())):
        schema = {key: value for key, value in schema.items() if key != definitions.MAP_KEYS}
        schema[definitions.LIST_TYPE] = "atomic"
    return {**schema, "items": items}
