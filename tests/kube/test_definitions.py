"""Each kind has one definition; what else speaks of its fields agrees with it."""

from __future__ import annotations

import msgspec
import msgspec.inspect as mi
import pytest
from hypothesis import given

from kube import definitions, resources, schema
from kube.kinds import accounts, batch, core, flow, reviews, scheduling
from kube.meta import ObjectMeta, OwnerReference
from tests.tables import cases

from .test_schema import json

OWN = sorted(definitions._own())
VALIDATION = definitions._validation()
VIEWS = {
    ObjectMeta: definitions.OBJECT_META,
    accounts.TokenRequest: "io.k8s.api.authentication.v1.TokenRequest",
    batch.Job: "sh.volcano.batch.v1alpha1.Job",
    batch.CronJob: "sh.volcano.batch.v1alpha1.CronJob",
    flow.JobFlow: "sh.volcano.flow.v1alpha1.JobFlow",
    core.ConfigMap: "io.k8s.api.core.v1.ConfigMap",
    core.Event: "io.k8s.api.core.v1.Event",
    core.Lease: "io.k8s.api.coordination.v1.Lease",
    core.Node: "io.k8s.api.core.v1.Node",
    core.Pod: "io.k8s.api.core.v1.Pod",
    core.Secret: "io.k8s.api.core.v1.Secret",
    reviews.SelfSubjectAccessReview: "io.k8s.api.authorization.v1.SelfSubjectAccessReview",
    reviews.SelfSubjectRulesReview: "io.k8s.api.authorization.v1.SelfSubjectRulesReview",
    reviews.SubjectAccessReview: "io.k8s.api.authorization.v1.SubjectAccessReview",
    reviews.TokenReview: "io.k8s.api.authentication.v1.TokenReview",
    scheduling.Queue: "sh.volcano.scheduling.v1beta1.Queue",
}
KEYWORDS = {
    "additionalProperties", "allOf", "description", "enum", "format", "items", "maxItems", "maxLength", "maximum",
    "minItems", "minLength", "minimum", "nullable", "oneOf", "pattern", "properties", "required", "type", "$ref",
    "x-kubernetes-group-version-kind", "x-kubernetes-list-map-keys", "x-kubernetes-list-type", "x-kubernetes-map-type",
    "x-kubernetes-patch-merge-key", "x-kubernetes-patch-strategy", "x-kubernetes-preserve-unknown-fields",
}  # fmt: skip
GENERIC = {"Condition", "NameRef", "ResourceRequirements"}  # views of several types, with the fields of all
JSON_TYPES = {
    mi.StrType: "string", mi.IntType: "integer", mi.BoolType: "boolean", mi.FloatType: "number", mi.DictType: "object",
    mi.StructType: "object", mi.ListType: "array",
}  # fmt: skip


def subschemas(given):
    yield given
    for part in (*given.get("properties", {}).values(), given.get("items"), given.get("additionalProperties")):
        if isinstance(part, dict):
            yield from subschemas(part)


@pytest.mark.parametrize("resource", resources.served(), ids=lambda resource: resource.id)
def test_every_kind_has_a_definition(resource):
    assert definitions.named(definitions.of(resource))["properties"].keys() >= {"apiVersion", "kind"}


def test_a_kind_that_nobody_knows_is_an_object_with_metadata():
    stranger = resources.of_stored("strangers.example.com", {"apiVersion": "example.com/v1", "kind": "Stranger"})
    assert definitions.of(stranger) == definitions.OBJECT
    assert schema.check({"metadata": {"labels": 1}, "spec": 3}, definitions.OBJECT) != []
    assert schema.check({"metadata": {"labels": {}}, "spec": 3}, definitions.OBJECT) == []


@pytest.mark.parametrize("name", OWN)
def test_definitions_of_our_own_use_words_that_are_understood(name):
    for part in subschemas(definitions.named(name)):
        assert part.keys() <= KEYWORDS
        assert set(part.get("required", ())) <= part.get("properties", {}).keys()
        target = definitions.reference(part)
        assert not target or definitions.exists(target), target


@pytest.mark.parametrize("name", sorted(VALIDATION))
def test_what_is_asked_of_kubernetes_types_names_fields_that_they_have(name):
    fields = definitions.properties(name).keys()
    asked = VALIDATION[name]
    assert {*asked.get("required", ()), *asked.get("properties", ())} <= fields
    assert all(part.keys() <= KEYWORDS for part in asked.get("properties", {}).values())


@pytest.mark.parametrize(
    ("definition", "field", "values"),
    [
        ("sh.volcano.batch.v1alpha1.LifecyclePolicy", "event", batch.JobEvent),
        ("sh.volcano.batch.v1alpha1.JobState", "phase", batch.JobPhase),
        ("sh.volcano.batch.v1alpha1.CronJobSpec", "concurrencyPolicy", batch.ConcurrencyPolicy),
        ("sh.volcano.flow.v1alpha1.State", "phase", flow.FlowPhase),
        ("sh.volcano.flow.v1alpha1.JobFlowSpec", "jobRetainPolicy", flow.RetainPolicy),
        ("sh.volcano.scheduling.v1beta1.QueueStatus", "state", scheduling.QueueState),
        ("sh.volcano.scheduling.v1beta1.QueueSpec", "dequeueStrategy", scheduling.DequeueStrategy),
        ("sh.volcano.scheduling.v1beta1.PodGroupStatus", "phase", scheduling.PodGroupPhase),
        ("io.k8s.api.core.v1.PodStatus", "phase", core.PodPhase),
        ("io.k8s.api.core.v1.PodSpec", "restartPolicy", core.RestartPolicy),
        ("io.k8s.api.core.v1.Taint", "effect", core.TaintEffect),
    ],
)
def test_names_in_code_are_the_values_that_a_field_may_have(definition, field, values):
    assert definitions.checked(definition)["properties"][field]["enum"] == [value.value for value in values]


def test_a_field_is_required_of_kubernetes_types_only_where_the_api_server_asks_for_it():
    status = "io.k8s.api.core.v1.ContainerStatus"
    assert "imageID" in definitions.named(status)["required"]
    assert definitions.checked(status)["required"] == []
    assert definitions.checked("io.k8s.api.core.v1.Container")["required"] == ["name"]


def views():
    """Return all views with the definitions that they read, found by their fields."""
    found, waiting = set(), list(VIEWS.items())
    while waiting:
        pair = view, definition = waiting.pop()
        if pair in found:
            continue
        found.add(pair)
        for field in mi.type_info(view).fields:
            inner = structs(field.type)
            part = definitions.properties(definition).get(field.encode_name)
            if inner is not None and part is not None:
                values = part.get("items") or part.get("additionalProperties") or part
                waiting.append((inner, definitions.reference(values)))
    return sorted(found, key=str)


def structs(node):
    """Return the struct type that a field holds, alone or in a list or map."""
    for inner in getattr(node, "types", (node,)):
        inner = getattr(inner, "item_type", None) or getattr(inner, "value_type", None) or inner
        if isinstance(inner, mi.StructType):
            return inner.cls
    return None


def types_of(part):
    target = definitions.reference(part)
    if target in (definitions.QUANTITY, definitions.INT_OR_STRING):
        return {"string", "integer", "number"}
    given = definitions.named(target) if target else part
    return {given.get("type", "object")}


@pytest.mark.parametrize(("view", "definition"), views(), ids=str)
def test_a_view_reads_fields_that_its_definition_has(view, definition):
    fields = definitions.properties(definition)
    for field in mi.type_info(view).fields:
        if view.__name__ in GENERIC and field.encode_name not in fields:
            continue
        assert field.encode_name in fields
        read = {JSON_TYPES.get(type(node)) for node in getattr(field.type, "types", (field.type,))} - {None}
        assert not read or read & types_of(fields[field.encode_name])


@cases("view, definition", {
    "taint": (core.Taint, "io.k8s.api.core.v1.Taint"),
    "owner reference": (OwnerReference, "io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference"),
})  # fmt: skip
def test_what_controllers_write_back_is_read_whole(view, definition):
    fields = {field.encode_name for field in msgspec.structs.fields(view)}
    assert fields == definitions.properties(definition).keys()


@given(json)
def test_what_passes_can_be_read(obj):
    for view, definition in VIEWS.items():
        if not schema.check(obj, definition):
            msgspec.convert(schema.without_nulls(obj, definition), view)
