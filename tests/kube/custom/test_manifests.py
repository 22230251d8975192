"""The definitions of Volcano's kinds that a cluster with an API of its own is given."""

from __future__ import annotations

import io

import msgspec
import pytest
from django.core.management import call_command

from kube import definitions
from kube.custom import definition, manifests, structural
from kube.custom.structural import Structural
from kube.resources import JOBS
from proof.systems.system import PROJECT
from tests.kubernetes.manifests import jobs
from tests.tables import cases
from volcano_ui.management.commands.crds import KINDS

FOLDER = PROJECT / "deploy" / "kubernetes" / "crds"
BUILT_IN = "metadata.name"  # our own server has these kinds, and says so there


def copied(obj):
    return msgspec.json.decode(msgspec.json.encode(obj))


def schema_of(kind):
    (version,) = manifests.manifest(kind)["spec"]["versions"]
    return Structural(version["schema"]["openAPIV3Schema"])


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_definition_is_one_that_an_api_server_accepts_and_has_every_field_of_its_kind(kind):
    def check(name, node, path):
        for field, schema in definitions.properties(name).items():
            inner = node.child(field)
            assert inner is not None, f"{path}.{field}"
            part = definitions.part(name, field)
            if part and part.startswith("sh.volcano.") and not inner.preserve:
                check(part, inner.items if schema.get("type") == "array" else inner, f"{path}.{field}")

    causes = definition.check(copied(manifests.manifest(kind)), None)
    assert [str(cause) for cause in causes if cause.field != BUILT_IN] == []
    check(definitions.of(kind), schema_of(kind).node, kind.kind)


def test_nothing_that_people_write_is_dropped_and_what_nobody_knows_is():
    schema = schema_of(JOBS)
    found = jobs()
    assert len(found) > 20
    for name, job in found.items():
        shaped = copied(job)
        assert structural.shape(schema, shaped) == [], name
        assert [str(cause) for cause in structural.check(schema, shaped)] == [], name
    job = {"spec": {"tasks": [{"replica": 1, "replicas": 2}]}}
    assert structural.shape(schema, job) == ["spec.tasks[0].replica"]
    assert job == {"spec": {"tasks": [{"replicas": 2}]}}


@cases("spec, refused", {
    "amount": ({"minResources": {"cpu": "500m"}}, ""),
    "whole number as an amount": ({"minResources": {"cpu": 2}}, ""),
    "word as an amount": ({"minResources": {"cpu": "many"}}, "spec.minResources.cpu"),
    "text as a number": ({"minMember": "2"}, "spec.minMember"),
    "not among the words": ({"networkTopology": {"mode": "firm"}}, "spec.networkTopology.mode"),
})  # fmt: skip
def test_values_are_checked_as_our_own_server_does(spec, refused):
    kind = next(each for each in KINDS if each.kind == "PodGroup")
    causes = structural.check(schema_of(kind), {"metadata": {"name": "group"}, "spec": spec})
    assert [cause.field for cause in causes] == ([refused] if refused else [])


def test_list_whose_items_may_lack_their_key_is_one_value():
    found = schema_of(JOBS)
    for field in ("spec", "tasks", "template", "spec", "containers"):
        found = found.get("items", found)["properties"][field]
    assert (found["x-kubernetes-list-type"], found["x-kubernetes-list-map-keys"]) == ("map", ["name"])
    ports = found["items"]["properties"]["ports"]  # by port and protocol, of which the second has a default
    assert ports["x-kubernetes-list-type"] == "atomic"
    assert "x-kubernetes-list-map-keys" not in ports


def test_command_prints_what_the_files_hold():
    printed = io.StringIO()
    call_command("crds", stdout=printed)
    files = {file.name: file.read_text() for file in FOLDER.glob("*.yaml")}
    found = dict(zip((f"{kind.id}.yaml" for kind in KINDS), printed.getvalue().split("---\n"), strict=True))
    assert found == files, "run manage.py crds --directory deploy/kubernetes/crds"
