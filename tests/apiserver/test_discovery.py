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
import yaml
from django.core.management import CommandError, call_command
from openapi_spec_validator import OpenAPIV2SpecValidator, OpenAPIV30SpecValidator

from apiserver import discovery
from apiserver.openapi import documents, gnostic, unknown_fields, written
from apiserver.openapi.definitions import definitions, referred
from apiserver.openapi.operations import APPLY_PATCH, STRATEGIC_PATCH
from kube import resources
from kube.definitions import GROUP_VERSION_KIND
from kube.errors import NotAcceptable
from kube.protobuf import wire
from tests.tables import GOLDEN, parts


def document(path, form="", served=None):
    found = discovery.Discovery(served or resources.served()).of(path, form)
    return found and json.loads(found.body)


@parts("apiserver/forms")
def test_form_follows_the_accept_header(part):
    def wanted(text):
        try:
            return discovery.wanted("" if text == "''" else text)
        except NotAcceptable:
            return "NotAcceptable"

    part.check(wanted)


@parts("apiserver/discovery")
def test_documents(story, part):
    story.goes(part)


def test_groups_keep_kubernetes_order_so_that_short_names_mean_what_they_do_elsewhere():
    names = [group["name"] for group in document("/apis")["groups"]]
    assert names.index("batch") < names.index("batch.volcano.sh")
    assert "" not in names
    given = ["v1alpha1", "foo", "v2", "v1beta2", "v1", "v1beta10", "v2alpha1"]
    assert sorted(given, key=discovery.rank) == ["v2", "v1", "v1beta10", "v1beta2", "v2alpha1", "v1alpha1", "foo"]
    assert all(group["metadata"]["name"] for group in document("/apis", "v2")["items"])


def of_groups():
    groups = discovery.Discovery(resources.served()).groups
    for name, version in ((name, version) for name, group in groups.items() for version in group.versions):
        path = f"/apis/{name}/{version}" if name else f"/api/{version}"
        yield from ((path, each["name"], each["kind"], tuple(each["verbs"])) for each in document(path)["resources"])


def of_aggregated():
    """Return the same of the aggregated documents."""
    for root in ("/api", "/apis"):
        for group in document(root, "v2")["items"]:
            for version in group["versions"]:
                path = "/".join(filter(None, (root, group["metadata"].get("name"), version["version"])))
                for item in version["resources"]:
                    parts = [(f"/{part['subresource']}", part) for part in item.get("subresources", ())]
                    for end, part in (("", item), *parts):
                        yield path, item["resource"] + end, part["responseKind"]["kind"], tuple(part["verbs"])


def test_both_forms_tell_the_same():
    assert set(of_aggregated()) == set(of_groups())


def test_a_group_goes_with_its_last_resource():
    without = tuple(resource for resource in resources.served() if resource.group != "batch.volcano.sh")
    assert document("/apis/batch.volcano.sh/v1alpha1", served=without) is None
    assert "batch.volcano.sh" not in [group["name"] for group in document("/apis", served=without)["groups"]]
    assert discovery.current() is discovery.current()


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
        assert all(APPLY_PATCH in patch["requestBody"]["content"] for patch in found)


@parts("apiserver/openapi", "operations")
def test_operations_are_named_as_upstream_names_them(part):
    items = version3("api/v1")["paths"]
    part.check(lambda text: items[text.split()[1]][text.split()[0]]["operationId"])
    eviction = items["/api/v1/namespaces/{namespace}/pods/{name}/eviction"]["post"]
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


@parts("apiserver/openapi", "unknown fields", "what patches write")
def test_unknown_fields_are_found_wherever_they_are(part):
    kinds = {each.full_name: each for each in (*resources.BUILT_IN, WIDGETS)}

    def unknown(text):
        word, obj = text.split(" ", 1)
        if part.title == "unknown fields":
            return unknown_fields(kinds[word], yaml.safe_load(obj))
        changed = written(yaml.safe_load(obj), word)
        return [path for each in changed for path in unknown_fields(resources.PODS, each)]

    part.check(unknown)


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
    assert STRATEGIC_PATCH not in patch["requestBody"]["content"]
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


def read(data):
    """Yield the fields of a message: number, then bytes or a whole number."""
    at = 0
    while at < len(data):
        key, begin = wire.varint(data, at, len(data))
        at, form = wire.skip(data, begin, len(data), key & 7), key & 7
        begin, end = wire.extent(data, begin, at) if form == 2 else (begin, at)
        yield key >> 3, wire.varint(data, begin, end)[0] if form == 0 else data[begin:end]


def fields(data, *numbers):
    """Return the messages at a path of field numbers, as gnostic's OpenAPIv2.proto gives them."""
    found = [data]
    for number in numbers:
        found = [value for part in found for key, value in read(part) if key == number]
    return found


@parts("apiserver/openapi", "fields of the protobuf form")
def test_each_thing_is_in_its_field(part):
    document = gnostic.document(yaml.safe_load((GOLDEN / "apiserver/gnostic.yaml").read_text()))

    def there(text):
        found = fields(document, *map(int, text.split()))
        return [each if isinstance(each, int) else each.decode("latin-1") for each in found]

    part.check(there)
    names = fields(documents.version2()["protobuf"].body, 9, 1, 1)
    assert b"io.k8s.api.core.v1.Pod" in names
    assert names == sorted(names)


def test_kubectl_gets_version_2_as_protobuf(api):
    answer = api.get("/openapi/v2", headers={"accept": PROTOBUF})
    # An @ would make the media type unreadable for Go.
    assert answer.headers["content-type"] == PROTOBUF.replace("@", ".")
    assert answer.content.startswith(b"\x0a\x032.0")


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
