"""What is published and how objects are merged are one: the tables name the parts that the schemas have."""

from __future__ import annotations

import pytest

from cluster.apiserver.openapi import documents
from kube import definitions, lists


@pytest.fixture(scope="module")
def published():
    found = {}
    for path in documents.group_versions():
        found |= documents.content(documents.group_versions()[path])["components"]["schemas"]
    return {lists.short(name): schema for name, schema in found.items()}


def _referred(schema):
    """Return the definition of a field's value, or of its items."""
    schema = schema.get("items", schema)
    (reference,) = [schema["$ref"]] if "$ref" in schema else [part["$ref"] for part in schema["allOf"]]
    return lists.short(reference.rpartition("/")[2])


def test_parts_are_those_of_the_published_schemas(published):
    served = definitions.PARTS.keys() & published.keys()
    assert {"core.v1.Pod", "core.v1.PodSpec", "core.v1.EnvVarSource", "core.v1.ServiceAccount"} <= served
    for definition in served:
        properties = published[definition]["properties"]
        for field, part in definitions.PARTS[definition].items():
            where = f"{definition}.{field}"
            assert field in properties, where
            assert part not in published or _referred(properties[field]) == part, where
