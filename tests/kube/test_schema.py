"""Each kind has one definition, with which objects and what else speaks of its fields agree."""

import time

import msgspec
import msgspec.inspect as mi
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kube import definitions, lists, resources, schema
from kube.kinds import accounts, batch, core, flow, reviews, scheduling
from kube.kinds.meta import ObjectMeta, OwnerReference
from kube.lists import ListRule
from kube.meta import key_of
from tests.kube.samples import SCALARS, json_values
from tests.tables import cases, parts

KINDS = {
    kind.kind: definitions.of(kind) for kind in (resources.JOBS, resources.PODS, resources.POD_GROUPS, resources.QUEUES)
}
Job, Pod, _, Queue = KINDS.values()

FIELDS = st.sampled_from(["spec", "metadata", "status", "tasks", "template", "containers", "labels", "policies", "queue", "name"])  # fmt: skip
json = json_values(st.text(max_size=5) | FIELDS, SCALARS | st.floats(), 15)


def task(**fields):
    return {"template": {"spec": {"containers": [{"name": "main"}]}}, **fields}


def job(**spec):
    return {"spec": {"tasks": [task()], **spec}}


def causes(obj, kind=Job):
    return [str(cause) for cause in schema.check(obj, kind)]


@pytest.mark.shows("queues 4/no name", "groups 3.1/minMember", "groups 3.1/minTaskMember")
@parts("kube/schema")
def test_a_fault_gives_one_cause_in_kubernetes_words_and_a_sound_object_none(part):
    def cause(text):
        kind, obj = text.split(" ", 1)
        found = causes(yaml.safe_load(obj), KINDS[kind])
        return found[0] if len(found) == 1 else found

    part.check(cause)


def test_all_faults_are_found_at_once_at_their_paths():
    obj = job(minAvailable=-1, queue="A", tasks=[task(replicas=-1, name="B"), {"template": {"spec": {}}}])
    assert [text.split(":")[0] for text in causes(obj)] == [
        "spec.tasks[0].replicas", "spec.tasks[0].name", "spec.tasks[1].template.spec.containers", "spec.minAvailable", "spec.queue",
    ]  # fmt: skip
    (cause,) = schema.check({"spec": {"containers": [{}]}}, Pod, "spec.tasks[0].template")
    assert cause.field == "spec.tasks[0].template.spec.containers[0].name"


@given(json)
def test_a_check_never_raises_and_what_passes_can_be_stored(obj):
    for kind in (Job, Pod, Queue):
        msgspec.json.encode([list(cause) for cause in schema.check(obj, kind)])
        schema.unknown_fields(obj, kind)
        schema.without_nulls(obj, kind)
    for resource in resources.ALL:
        definition = definitions.of(resource)
        if not schema.check(obj, definition):
            clean = schema.without_nulls(obj, definition)
            msgspec.json.encode(clean)
            resource.index(clean)
            key_of(clean)


def nested(depth, value=0):
    for _ in range(depth):
        value = [value]
    return value


def contained(**fields):
    return {"spec": {"containers": [{"name": "a", **fields}]}}


def labelled(key, value="a"):
    return {"metadata": {"labels": {key: value}}}


@cases("obj", {
    "deep JSON": contained(lifecycle={"x": nested(5000)}), "deep JSON in a typed place": {"spec": {"containers": nested(5000)}},
    "a million faults": {"spec": {"containers": [0] * 1_000_000}}, "lone surrogate": labelled("a", "\ud800"),
    "lone surrogate as key": labelled("\udfff"), "not a number": {"spec": {"affinity": {"x": float("nan")}}},
    "number too large to store": {"spec": {"affinity": {"x": 2**70}}}, "number too large to print": {"spec": {"priority": 10**5000}},
    "not JSON": {"spec": {"affinity": {"x": b"bytes"}}}, "keys that are no texts": {"spec": {"affinity": {1: 2}}},
    "keys too large to print": labelled(10**5000), "field names that are no texts": {1: 2},
})  # fmt: skip
def test_hostile_objects_are_refused_quickly(obj):
    began = time.thread_time()
    found = schema.check(obj, Pod)
    assert time.thread_time() - began < 1
    assert 0 < len(found) <= schema.MAX_CAUSES
    msgspec.json.encode([list(cause) for cause in found])
    msgspec.json.encode(schema.unknown_fields(obj, Pod))


def test_unknown_fields_are_named_by_path_and_with_the_name_that_is_near_and_nulls_of_fields_go():
    obj = {"spac": 1, **job(tasks=[task(replica=1, minAvailable=1)], plugins={"x": []})}
    obj["metadata"] = {"labels": {"any": "thing"}, "lables": {}}
    obj["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["comand"] = []
    found = ["spac", "spec.tasks[0].template.spec.containers[0].comand", "spec.tasks[0].replica", "metadata.lables"]
    assert schema.unknown_fields(obj, Job) == found
    assert schema.misspelled(job(tasks=[task(replica=1, dependson={}, quux=1)], MinAvailable=1), Job) == {
        "spec.tasks[0].replica": "replicas", "spec.tasks[0].dependson": "dependsOn", "spec.tasks[0].quux": "",
        "spec.MinAvailable": "minAvailable",
    }  # fmt: skip
    obj = {"metadata": None, "spec": {"queue": None, "plugins": {"svc": None}, "own": None, "tasks": [{"name": None}]}}
    before = msgspec.json.encode(obj)
    assert schema.without_nulls(obj, Job) == {"spec": {"plugins": {"svc": None}, "own": None, "tasks": [{}]}}
    assert msgspec.json.encode(obj) == before


def test_a_definition_that_refers_to_itself_is_followed_as_deep_as_the_object_goes_and_no_deeper_than_may_be():
    definition = definitions.of(resources.CUSTOM_RESOURCE_DEFINITIONS)

    def around(inner, depth, wrap):
        for _ in range(depth):
            inner = wrap(inner)
        return {"spec": {"versions": [{"schema": {"openAPIV3Schema": inner}}]}}

    wrong = around({"type": 1}, 20, lambda inner: {"properties": {"a": inner}})
    path = f"spec.versions[0].schema.openAPIV3Schema{'.properties[a]' * 20}.type"
    assert path in [cause.field for cause in schema.check(wrong, definition)]
    deep = around({"typ": ""}, 5000, lambda inner: {"not": inner})
    assert "levels deep" in schema.check(deep, definition)[-1].message
    assert schema.unknown_fields(deep, definition) == []


OWN = sorted(definitions._own())
CORE, BATCH = "io.k8s.api.core.v1", "sh.volcano.batch.v1alpha1"
FLOW, SCHEDULING = "sh.volcano.flow.v1alpha1", "sh.volcano.scheduling.v1beta1"
REVIEWS = {name: f"io.k8s.api.authorization.v1.{name}" for name in ("SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview")}  # fmt: skip
VIEWS = {
    ObjectMeta: definitions.OBJECT_META,
    accounts.TokenRequest: "io.k8s.api.authentication.v1.TokenRequest",
    reviews.TokenReview: "io.k8s.api.authentication.v1.TokenReview",
    core.Lease: "io.k8s.api.coordination.v1.Lease",
    flow.JobFlow: f"{FLOW}.JobFlow",
    scheduling.Queue: f"{SCHEDULING}.Queue",
    **{kind: f"{BATCH}.{kind.__name__}" for kind in (batch.Job, batch.CronJob)},
    **{kind: f"{CORE}.{kind.__name__}" for kind in (core.ConfigMap, core.Event, core.Node, core.Pod, core.Secret)},
    **{getattr(reviews, name): definition for name, definition in REVIEWS.items()},
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


def test_every_kind_has_a_definition_and_one_that_nobody_knows_is_an_object_with_metadata():
    for resource in resources.served():
        assert definitions.named(definitions.of(resource))["properties"].keys() >= {"apiVersion", "kind"}, resource.id
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


def test_what_is_asked_of_kubernetes_types_is_of_fields_that_they_have_and_less_than_they_require():
    for name, rules in definitions._validation().items():
        assert {*rules.get("required", ()), *rules.get("properties", ())} <= definitions.properties(name).keys(), name
        assert all(part.keys() <= KEYWORDS for part in rules.get("properties", {}).values()), name
    status = "io.k8s.api.core.v1.ContainerStatus"
    assert "imageID" in definitions.named(status)["required"]
    assert definitions.checked(status)["required"] == []
    assert definitions.checked("io.k8s.api.core.v1.Container")["required"] == ["name"]


ENUMS = {
    f"{BATCH}.LifecyclePolicy event": batch.JobEvent, f"{BATCH}.JobState phase": batch.JobPhase,
    f"{BATCH}.CronJobSpec concurrencyPolicy": batch.ConcurrencyPolicy, f"{FLOW}.State phase": flow.FlowPhase,
    f"{FLOW}.JobFlowSpec jobRetainPolicy": flow.RetainPolicy, f"{SCHEDULING}.QueueStatus state": scheduling.QueueState,
    f"{SCHEDULING}.QueueSpec dequeueStrategy": scheduling.DequeueStrategy,
    f"{SCHEDULING}.PodGroupStatus phase": scheduling.PodGroupPhase, f"{CORE}.PodStatus phase": core.PodPhase,
    f"{CORE}.PodSpec restartPolicy": core.RestartPolicy, f"{CORE}.Taint effect": core.TaintEffect,
}  # fmt: skip


def test_names_in_code_are_the_values_that_a_field_may_have():
    for key, values in ENUMS.items():
        definition, field = key.split()
        assert definitions.checked(definition)["properties"][field]["enum"] == [value.value for value in values], key


def views():
    """Return all views with the definitions that they read, found by their fields."""
    found, waiting = set(), list(VIEWS.items())
    while waiting:
        pair = view, definition = waiting.pop()
        if pair not in found:
            found.add(pair)
            for field in mi.type_info(view).fields:
                inner, part = structs(field.type), definitions.properties(definition).get(field.encode_name)
                if inner is not None and part is not None:
                    values = part.get("items") or part.get("additionalProperties") or part
                    waiting.append((inner, definitions.reference(values)))
    return sorted(found, key=str)


def structs(node):
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
        if view.__name__ not in GENERIC or field.encode_name in fields:
            assert field.encode_name in fields
            read = {JSON_TYPES.get(type(node)) for node in getattr(field.type, "types", (field.type,))} - {None}
            assert not read or read & types_of(fields[field.encode_name])


def test_what_controllers_write_back_is_read_whole():
    owner = "io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference"
    for view, definition in ((core.Taint, f"{CORE}.Taint"), (OwnerReference, owner)):
        fields = {field.encode_name for field in msgspec.structs.fields(view)}
        assert fields == definitions.properties(definition).keys()


@given(json)
def test_what_passes_can_be_read(obj):
    for view, definition in VIEWS.items():
        if not schema.check(obj, definition):
            msgspec.convert(schema.without_nulls(obj, definition), view)


def merging(type_, strategy=None, keys=None, key=None):
    words = {"list-type": type_, "patch-strategy": strategy, "list-map-keys": keys, "patch-merge-key": key}
    return {f"x-kubernetes-{name}": value for name, value in words.items() if value}


META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
PORT = ["containerPort", "protocol"]


@cases("definition, field, keywords, rule", {
    "keyed list": (f"{CORE}.PodSpec", "containers", merging("map", "merge", ["name"], "name"), ListRule("map", ("name",), "merge", "name")),
    "two keys for apply, one for a patch": (f"{CORE}.Container", "ports", merging("map", "merge", PORT, PORT[0]), ListRule("map", tuple(PORT), "merge", PORT[0])),
    "set": (META, "finalizers", merging("set", "merge"), ListRule("set", (), "merge")),
    "other lists are atomic": (f"{CORE}.Container", "args", merging("atomic"), None),
    "atomic map": (f"{CORE}.PodSpec", "nodeSelector", {"x-kubernetes-map-type": "atomic"}, ListRule("atomic")),
    "objects merge": (f"{CORE}.Pod", "spec", {}, None),
})  # fmt: skip
def test_how_a_field_merges_is_what_its_published_schema_says(definition, field, keywords, rule):
    published = definitions.properties(definition)[field]
    assert {key: value for key, value in published.items() if key.startswith("x-kubernetes-")} == keywords
    assert lists.rule(definition, field) == rule
    atomic = [each for each in (f"{CORE}.LocalObjectReference", f"{CORE}.PodSpec", "") if lists.is_atomic(each)]
    assert atomic == [f"{CORE}.LocalObjectReference"], "which are replaced whole"
