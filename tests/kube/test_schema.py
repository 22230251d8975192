from __future__ import annotations

import time

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kube import definitions, resources, schema
from kube.meta import key_of
from tests.tables import cases, parts

KINDS = {
    kind.kind: definitions.of(kind) for kind in (resources.JOBS, resources.PODS, resources.POD_GROUPS, resources.QUEUES)
}
Job, Pod, _, Queue = KINDS.values()

FIELDS = st.sampled_from(["spec", "metadata", "status", "tasks", "template", "containers", "labels", "policies", "queue", "name"])  # fmt: skip
json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | FIELDS, inner, max_size=4),
    max_leaves=15,
)


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
    assert 0 < len(found) <= schema.MOST_CAUSES
    msgspec.json.encode([list(cause) for cause in found])
    msgspec.json.encode(schema.unknown_fields(obj, Pod))


def test_unknown_fields_are_named_by_path_and_with_the_name_that_is_near():
    obj = {"spac": 1, **job(tasks=[task(replica=1, minAvailable=1)], plugins={"x": []})}
    obj["metadata"] = {"labels": {"any": "thing"}, "lables": {}}
    obj["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["comand"] = []
    found = ["spac", "spec.tasks[0].template.spec.containers[0].comand", "spec.tasks[0].replica", "metadata.lables"]
    assert schema.unknown_fields(obj, Job) == found
    assert schema.misspelled(job(tasks=[task(replica=1, dependson={}, quux=1)], MinAvailable=1), Job) == {
        "spec.tasks[0].replica": "replicas", "spec.tasks[0].dependson": "dependsOn", "spec.tasks[0].quux": "",
        "spec.MinAvailable": "minAvailable",
    }  # fmt: skip


def test_nulls_of_fields_go_and_other_nulls_stay():
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
