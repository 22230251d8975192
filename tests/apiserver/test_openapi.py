from __future__ import annotations

import dataclasses
import gzip
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from django.core.management import CommandError, call_command
from openapi_spec_validator import OpenAPIV2SpecValidator, OpenAPIV30SpecValidator

from apiserver.openapi import documents, unknown_fields, written
from apiserver.openapi.definitions import definitions, referred
from apiserver.openapi.operations import APPLY, STRATEGIC
from kube import resources
from kube.definitions import GROUP_VERSION_KIND
from tests.tables import cases

PROJECT = Path(__file__).parents[2]
CLIENTS = PROJECT / "tests/kube/protobuf/golden"  # bodies of client-go
PATHS = list(documents.group_versions())
PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"


def version3(path):
    return msgspec.json.decode(documents.version3(path).body)


def version2():
    return msgspec.json.decode(documents.version2()["json"].body)


def kinds_of(schemas):
    return [tuple(kind.values()) for schema in schemas for kind in schema.get(GROUP_VERSION_KIND, ())]


def test_version_2_is_valid_and_describes_every_field_of_volcanos_kinds():
    OpenAPIV2SpecValidator(version2()).validate()
    for name, schema in version2()["definitions"].items():
        if name.startswith("sh.volcano."):
            fields = schema.get("properties", {}).items()
            assert [field for field, content in fields if not content.get("description")] == [], name


@pytest.mark.parametrize("path", PATHS)
def test_each_document_is_valid_refers_to_what_it_has_and_tells_its_operations_apart(path):
    document = version3(path)
    OpenAPIV30SpecValidator(document).validate()
    assert set(referred(document)) <= set(document["components"]["schemas"])
    parts = [part for item in document["paths"].values() for part in item.values() if isinstance(part, dict)]
    assert len({part["operationId"] for part in parts}) == len(parts)


@pytest.mark.parametrize("resource", resources.served(), ids=lambda resource: resource.id)
def test_every_kind_has_its_schema_and_kubectl_finds_that_the_server_checks_its_fields(resource):
    document = version3(f"apis/{resource.api_version}" if resource.group else f"api/{resource.version}")
    names = {resource.kind, *([resource.list_kind] if "list" in resource.verbs else [])}
    wanted = {(resource.group, resource.version, name) for name in names}
    assert wanted <= set(kinds_of(document["components"]["schemas"].values()))
    if resource in resources.ALL:
        patches = [item["patch"] for item in document["paths"].values() if "patch" in item]
        found = [patch for patch in patches if tuple(patch[GROUP_VERSION_KIND].values()) in wanted]
        assert found
        assert all("fieldValidation" in {p["name"] for p in patch["parameters"]} for patch in found)
        assert all(APPLY in patch["requestBody"]["content"] for patch in found)


PODS = "/api/v1/namespaces/{namespace}/pods"


@pytest.mark.parametrize(
    ("path", "method", "name"),
    [
        (PODS, "get", "listCoreV1NamespacedPod"),
        (PODS, "delete", "deleteCoreV1CollectionNamespacedPod"),
        ("/api/v1/pods", "get", "listCoreV1PodForAllNamespaces"),
        (f"{PODS}/{{name}}/status", "put", "replaceCoreV1NamespacedPodStatus"),
        (f"{PODS}/{{name}}/log", "get", "readCoreV1NamespacedPodLog"),
        (f"{PODS}/{{name}}/exec", "post", "connectCoreV1PostNamespacedPodExec"),
    ],
)
def test_operations_are_named_as_upstream_names_them(path, method, name):
    items = version3("api/v1")["paths"]
    assert items[path][method]["operationId"] == name
    eviction = items[f"{PODS}/{{name}}/eviction"]["post"]
    assert eviction[GROUP_VERSION_KIND] == {"group": "policy", "version": "v1", "kind": "Eviction"}


def test_the_package_of_definitions_is_read_and_not_imported():
    script = """import sys, django
django.setup()
from apiserver import reference
from apiserver.openapi import documents
documents.version3("api/v1")
sys.exit("kubernetes_validate" in sys.modules)"""
    alone = {**os.environ, "DJANGO_SETTINGS_MODULE": "volcano_ui.settings"}
    subprocess.run([sys.executable, "-c", script], check=True, env=alone, cwd=PROJECT)


@pytest.mark.parametrize("path", sorted(CLIENTS.glob("*.json")), ids=lambda path: path.stem)
def test_what_clients_write_has_no_unknown_field(path):
    obj = json.loads(path.read_text())
    resource = resources.by_kind(obj["apiVersion"], obj["kind"])
    assert resource is None or unknown_fields(resource, obj) == []


def objects(**properties):
    return {"type": "object", "properties": properties}


SPEC = objects(
    size={"type": "integer", "minimum": 1},
    port={"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
    free={"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    inner={**objects(a={"type": "string"}), "x-kubernetes-embedded-resource": True},
)
WIDGETS = dataclasses.replace(
    resources.CONFIGMAPS,
    group="example.com", kind="Widget", plural="widgets", singular="widget",
    schema=objects(spec={**SPEC, "description": "What is wished of a widget."}),
)  # fmt: skip


@cases("resource, obj, expected", {
    "pod": (resources.PODS,
        {"spec": {"containers": [{"imagee": "x", "env": [{"valuee": ""}]}]}, "metadata": {"labelz": {}}},
        ["spec.containers[0].imagee", "spec.containers[0].env[0].valuee", "metadata.labelz"]),
    "Volcano job": (resources.JOBS,
        {"spec": {"tasks": [{"template": {"spec": {"container": []}}, "replica": 1}], "minAvailble": 1}},
        ["spec.tasks[0].template.spec.container", "spec.tasks[0].replica", "spec.minAvailble"]),
    "the older spellings": (resources.JOBS,
        {"spec": {"taskSpecs": [{"template": {"spec": {"priorityClass": "x"}}}], "volumes": [{"claim": {}}]}}, []),
    "wrong types": (resources.PODS, {"spec": {"containers": {"name": "a"}}}, []),
    "no objects": (resources.PODS, {"spec": [1], "metadata": "x", "status": None}, []),
    "schemas within schemas": (resources.CUSTOM_RESOURCE_DEFINITIONS,
        {"spec": {"versions": [{"schema": {"openAPIV3Schema": {"properties": {"a": {"typ": ""}}}}}]}},
        ["spec.versions[0].schema.openAPIV3Schema.properties.a.typ"]),
    "a kind that somebody defined": (WIDGETS,
        {"spec": {"size": 1, "colour": "", "free": {"x": 1}, "inner": {"kind": "", "a": "", "b": ""}}},
        ["spec.colour", "spec.inner.b"]),
})  # fmt: skip
def test_unknown_fields_are_found_wherever_they_are(resource, obj, expected):
    assert unknown_fields(resource, obj) == expected


DELETED = {"$patch": "delete", "name": "a", "imagee": ""}
IN_ORDER = {"$setElementOrder/containers": [{"name": "a"}], "containers": [DELETED]}
OPERATIONS = [
    {"op": "add", "path": "/spec/containers/1/imagee", "value": "x"},
    {"op": "replace", "path": "/metadata/labels/a~1b", "value": "x"},
    {"op": "remove", "path": "/spec/foo"},
    {"op": "add", "path": "/spec/containers/-", "value": {"comand": []}},
]


@cases("how, change, expected", {
    "merge": ("merge", {"spec": {"foo": 1}}, ["spec.foo"]),
    "an unknown field may be removed": ("merge", {"spec": {"foo": None}}, []),
    "directives are no fields": ("strategic", {"spec": IN_ORDER}, ["spec.containers[0].imagee"]),
    "JSON patch": ("json", OPERATIONS, ["spec.containers[1].imagee", "spec.containers[0].comand"]),
    "no patch at all": ("json", "nonsense", []),
})  # fmt: skip
def test_a_patch_is_checked_for_what_it_writes(how, change, expected):
    assert [path for obj in written(change, how) for path in unknown_fields(resources.PODS, obj)] == expected


@cases("kind, change", {
    "merge": ("application/merge-patch+json", {"dat": {"a": "b"}}),
    "strategic": ("application/strategic-merge-patch+json", {"dat": {"a": "b"}}),
    "JSON": ("application/json-patch+json", [{"op": "add", "path": "/dat", "value": {}}]),
})  # fmt: skip
def test_a_strict_patch_with_an_unknown_field_is_refused(api, kind, change):
    maps = "/api/v1/namespaces/default/configmaps"
    api.post(maps, {"metadata": {"name": "a"}})
    answer = api.patch(f"{maps}/a?fieldValidation=Strict", change, kind).json()
    assert (answer["code"], answer["message"]) == (400, 'strict decoding error: unknown field "dat"')
    warned = api.patch(f"{maps}/a?dryRun=All", change, kind)
    assert (warned.status_code, warned.headers["warning"]) == (200, '299 - "unknown field \\"dat\\""')


@pytest.fixture
def widgets(monkeypatch):
    served = (*resources.served(), WIDGETS)
    monkeypatch.setattr(resources, "served", lambda: served)


def test_a_custom_resource_has_a_document_with_its_own_schema(widgets):
    document = version3("apis/example.com/v1")
    OpenAPIV30SpecValidator(document).validate()
    schema = document["components"]["schemas"]["com.example.v1.Widget"]
    assert kinds_of([schema]) == [("example.com", "v1", "Widget")]
    assert schema["properties"]["spec"]["properties"]["size"] == {"type": "integer", "minimum": 1}
    patch = document["paths"]["/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"]["patch"]
    assert STRATEGIC not in patch["requestBody"]["content"]
    OpenAPIV2SpecValidator(version2()).validate()


def test_a_changed_schema_is_noticed(widgets):
    before = documents.version3("apis/example.com/v1").hash
    changed = dataclasses.replace(WIDGETS, schema={"type": "object", "properties": {"other": {}}})
    assert unknown_fields(changed, {"other": 1, "spec": {}}) == ["spec"]
    assert definitions[definitions.of(changed)]["properties"].keys() == {"other", "apiVersion", "kind", "metadata"}
    assert documents.version3("apis/example.com/v1").hash == before


def test_the_index_leads_to_documents_that_may_be_kept_for_ever(api):
    index = api.get("/openapi/v3").json()["paths"]
    assert set(index) == set(PATHS)
    address = index["api/v1"]["serverRelativeURL"]
    answer = api.get(address)
    assert answer.headers["cache-control"].startswith("public, immutable")
    assert answer.json()["openapi"] == "3.0.0"
    assert api.get(address, headers={"if-none-match": answer.headers["etag"]}).status_code == 304
    stale = api.get("/openapi/v3/api/v1?hash=OLD")
    assert (stale.status_code, stale.headers["location"]) == (301, address)
    assert documents.version3("api/v1") is documents.version3("api/v1")
    assert documents.version2() is documents.version2()


def test_documents_travel_compressed_where_the_client_can_read_that(api):
    plain = api.get("/openapi/v2", headers={"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers
    with api.stream("/openapi/v2", headers={"accept-encoding": "gzip"}) as answer:
        assert answer.headers["content-encoding"] == "gzip"
        assert gzip.decompress(b"".join(answer.iter_raw())) == plain.content


def test_kubectl_gets_version_2_as_protobuf(api):
    answer = api.get("/openapi/v2", headers={"accept": PROTOBUF})
    # An @ would make the media type unreadable for Go.
    assert answer.headers["content-type"] == PROTOBUF.replace("@", ".")
    assert answer.content.startswith(b"\x0a\x032.0")


def test_what_is_not_there_is_refused(api):
    for path, accept, code in (
        ("/openapi/v3/apis/nobody.example/v1", "*/*", 404), ("/openapi/v3", "text/html", 406), ("/openapi/v2", "text/html", 406),
        ("/openapi/v2", "application/json;q=0.5,*/*", 200),
    ):  # fmt: skip
        assert api.get(path, headers={"accept": accept}).status_code == code


def test_the_reference_is_what_is_served_and_an_outdated_one_is_noticed(tmp_path, settings):
    call_command("apidocs", "--check")
    settings.BASE_DIR = tmp_path
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "kubernetes-api-differences.md").write_text("# Title\n\nSome.\n")
    with pytest.raises(CommandError, match="out of date"):
        call_command("apidocs", "--check", stdout=io.StringIO())
    call_command("apidocs")
    call_command("apidocs", "--check")
    assert "Some." in (tmp_path / "docs" / "kubernetes-api.md").read_text()
