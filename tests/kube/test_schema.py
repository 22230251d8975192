from __future__ import annotations

import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube import definitions, resources, schema
from kube.meta import key_of
from tests.tables import cases

Job, Pod, PodGroup, Queue = (
    definitions.of(kind) for kind in (resources.JOBS, resources.PODS, resources.POD_GROUPS, resources.QUEUES)
)

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


GREATER = "should be greater than or equal to 0"


@pytest.mark.shows("queues 4/no name", "groups 3.1/minMember", "groups 3.1/minTaskMember")
@pytest.mark.parametrize(
    ("obj", "kind", "expected"),
    [
        (job(minAvailable=-1), Job, f"spec.minAvailable: Invalid value: -1: {GREATER}"),
        (job(maxRetry=-1), Job, f"spec.maxRetry: Invalid value: -1: {GREATER}"),
        (job(ttlSecondsAfterFinished=-1), Job, f"spec.ttlSecondsAfterFinished: Invalid value: -1: {GREATER}"),
        (job(tasks=[task(replicas=-1)]), Job, f"spec.tasks[0].replicas: Invalid value: -1: {GREATER}"),
        (job(tasks=[task(minAvailable=-1)]), Job, f"spec.tasks[0].minAvailable: Invalid value: -1: {GREATER}"),
        (job(tasks=[task(name="A")]), Job, 'spec.tasks[0].name: Invalid value: "A": should match \'^[a-z0-9]([-a-z0-9]*[a-z0-9])?$\''),
        (job(tasks=[task(name="a" * 64)]), Job, "spec.tasks[0].name: Too long: may not be more than 63 bytes"),
        (job(volumes=[{"mountPath": ""}]), Job, 'spec.volumes[0].mountPath: Invalid value: "": should be at least 1 chars long'),
        (job(volumes=[{}]), Job, "spec.volumes[0].mountPath: Required value"),
        (job(volumes=[{"mountPath": "/a:b"}]), Job, "spec.volumes[0].mountPath: Invalid value: \"/a:b\": should match '^[^:]*$'"),
        (job(tasks=[]), Job, "spec.tasks: Invalid value: 0: should have at least 1 items"),
        (job(minSuccess=0), Job, "spec.minSuccess: Invalid value: 0: should be greater than or equal to 1"),
        (job(minAvailable=2**31), Job, "spec.minAvailable: Invalid value: 2147483648: should be less than or equal to 2147483647"),
        (job(queue="a\n"), Job, "spec.queue: Invalid value: \"a\\n\": should match '^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$'"),
        (job(networkTopology={"mode": "firm"}), Job, 'spec.networkTopology.mode: Unsupported value: "firm": supported values: "hard", "soft"'),
        (job(runningEstimate="soon"), Job, 'spec.runningEstimate: Invalid value: "soon": \'soon\' is not a duration; write it like 30s, 5m or 1h30m.'),
        (job(minAvailable="3"), Job, 'spec.minAvailable: Invalid value: "3": must be of type integer, not string'),
        (job(minAvailable=True), Job, "spec.minAvailable: Invalid value: true: must be of type integer, not boolean"),
        (job(minAvailable=1.0), Job, "spec.minAvailable: Invalid value: 1.0: must be of type integer, not number"),
        (job(tasks={}), Job, "spec.tasks: Invalid value: {}: must be of type array, not object"),
        (job(tasks=[None]), Job, "spec.tasks[0]: Invalid value: null: must be of type object, not null"),
        (job(plugins={"svc": [1]}), Job, "spec.plugins[svc][0]: Invalid value: 1: must be of type string, not integer"),
        ({"metadata": {"labels": {"a/b": 1}}}, Job, "metadata.labels[a/b]: Invalid value: 1: must be of type string, not integer"),
        ({"metadata": {"creationTimestamp": "today"}}, Job, "metadata.creationTimestamp: Invalid value: \"today\": 'today' is not a time; write it like 2026-01-01T00:00:00Z."),
        ({"spec": {"weight": 0}}, Queue, "spec.weight: Invalid value: 0: should be greater than or equal to 1"),
        ({"spec": {"weight": 65536}}, Queue, "spec.weight: Invalid value: 65536: should be less than or equal to 65535"),
        ({"spec": {"state": "Closing"}}, Queue, 'spec.state: Unsupported value: "Closing": supported values: "Open", "Closed"'),
        ({"spec": {"dequeueStrategy": "lifo"}}, Queue, 'spec.dequeueStrategy: Unsupported value: "lifo": supported values: "fifo", "traverse"'),
        ({"spec": {"capability": {"cpu": "much"}}}, Queue, "spec.capability[cpu]: Invalid value: \"much\": 'much' is not a quantity; write a number and one of n u m k M G T P E Ki Mi Gi Ti Pi Ei."),
        ({"spec": {"capability": {"cpu": ""}}}, Queue, "spec.capability[cpu]: Invalid value: \"\": '' is not a quantity; write a number and one of n u m k M G T P E Ki Mi Gi Ti Pi Ei."),
        ({"spec": {"minMember": -1}}, PodGroup, f"spec.minMember: Invalid value: -1: {GREATER}"),
        ({"spec": {"minTaskMember": {"a": -1}}}, PodGroup, f"spec.minTaskMember[a]: Invalid value: -1: {GREATER}"),
        ({"spec": {"containers": []}}, Pod, "spec.containers: Invalid value: 0: should have at least 1 items"),
        ({"spec": {"containers": [{}]}}, Pod, "spec.containers[0].name: Required value"),
        ({"spec": {"containers": [{"name": ""}]}}, Pod, "spec.containers[0].name: Required value"),
        ({"spec": {}}, Pod, "spec.containers: Required value"),
        ({}, Pod, "spec: Required value"),
        ([], Pod, "Invalid value: []: must be of type object, not array"),
        ({"spec": {"containers": [{"name": "a"}], "dnsConfig": {"searches": "x"}}}, Pod, 'spec.dnsConfig.searches: Invalid value: "x": must be of type array, not string'),
    ],
    ids=lambda value: value[:60] if isinstance(value, str) else "",
)  # fmt: skip
def test_one_fault_gives_one_cause_in_kubernetes_words(obj, kind, expected):
    assert causes(obj, kind) == [expected]


@cases("obj", {
    "smallest": job(),
    "empty texts are absent": job(queue="", priorityClassName="", networkTopology={"mode": ""}),
    "null is absent": job(queue=None, minAvailable=None, tasks=[task(replicas=None)]),
    "a plugin without arguments": job(plugins={"svc": None, "env": []}),
    "as kubectl writes it": {"metadata": {"creationTimestamp": None}, "status": {}},
    "unknown fields are not this check's": job(tuks=[{"a": None}]),
})  # fmt: skip
def test_sound_objects_have_no_cause(obj):
    assert causes(obj) == []


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
