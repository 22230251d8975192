"""What was written of a stored job, and how it differs from what is stored."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from jobs.rules import additions
from jobs.rules.written import written
from tests.jobs.builders import defaulted
from tests.tables import cases

ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
POD = {"containers": [{"name": "main", "image": "busybox"}]}


def stored(spec, **metadata):
    """A job as it is stored after it was written so."""
    return defaulted({"metadata": {"name": "demo", "namespace": "default", **metadata}, "spec": spec}, None)


def task(**fields):
    return {"replicas": 2, "template": {"spec": POD}, **fields}


@cases("spec", {
    "as little as possible": {"tasks": [task()]},
    "numbers of one's own": {"tasks": [task(name="a"), task(name="b", minAvailable=1)], "minAvailable": 2},
    "values of one's own": {"tasks": [task()], "queue": "batch", "maxRetry": 9, "schedulerName": "other"},
    "a plugin that brings others": {"tasks": [task()], "plugins": {"mpi": ["--port=23"]}},
    "partitions": {"tasks": [task(partitionPolicy={"totalPartitions": 2, "partitionSize": 1})]},
    "a topology": {"tasks": [task()], "networkTopology": {"highestTierAllowed": 1}},
    "the host's network": {"tasks": [task(template={"spec": {**POD, "hostNetwork": True}})]},
})  # fmt: skip
def test_what_the_defaults_fill_in_was_not_written(spec):
    assert written(stored(spec)) == (spec, False)


APPLIED = {"tasks": [task()], "queue": "default"}


@cases("noted, found", {
    "nothing: what was written as the default is taken for one": (None, ({"tasks": [task()]}, False)),
    "what kubectl applied": (json.dumps({"spec": APPLIED}), (APPLIED, True)),
    **{
        f"no longer so: {noted}": (noted, ({"tasks": [task()]}, False))
        for noted in ("", "{", "[]", '{"spec": 3}', '{"spec": {"tasks": []}}')
    },
})  # fmt: skip
def test_what_kubectl_noted_is_what_was_written_if_it_is_still_so(noted, found):
    annotations = {} if noted is None else {ANNOTATION: noted}
    assert written(stored(APPLIED, annotations=annotations)) == found


def test_claims_that_the_controller_made_were_not_written():
    volume = {"mountPath": "/data", "volumeClaim": {"storageClassName": "fast"}}
    job = stored({"tasks": [task()], "volumes": [{**volume, "volumeClaimName": "demo-pvc-1"}]})
    assert written(job, {"demo-pvc-1"}).spec["volumes"] == [volume]
    assert written(job).spec["volumes"] == [{**volume, "volumeClaimName": "demo-pvc-1"}]


few = st.integers(0, 4)
partitions = st.fixed_dictionaries({"partitionSize": st.integers(1, 2)}, optional={"minPartitions": st.integers(0, 2)})
names = st.sampled_from(["a", "default0", "default1", ""])
tasks = st.fixed_dictionaries(
    {"template": st.just({"spec": POD})},
    optional={"name": names, "replicas": few, "minAvailable": few, "maxRetry": few, "partitionPolicy": partitions},
)
plugins = st.dictionaries(st.sampled_from(["svc", "ssh", "mpi", "env"]), st.lists(st.just("--x"), max_size=1))
queues = st.sampled_from(["default", "batch", ""])
specs = st.fixed_dictionaries(
    {"tasks": st.lists(tasks, min_size=1, max_size=3)},
    optional={"queue": queues, "minAvailable": few, "maxRetry": few, "plugins": plugins},
)


@given(specs)
def test_what_was_written_is_stored_as_the_job_is(spec):
    job = stored(spec)
    found = written(job)
    assert stored(found.spec)["spec"] == job["spec"]
    assert written(stored(found.spec)) == found


@cases("before, after, found", {
    "equal": ({"a": 1}, {"a": 1}, []),
    "added": ({}, {"queue": "x"}, [("queue", "", "x")]),
    "changed": ({"a": {"b": 1}}, {"a": {"b": 2}}, [("a.b", "1", "2")]),
    "removed": ({"a": "x", "b": 1}, {"b": 1}, [("a", "x", "")]),
    "an item by its name": ({"env": [{"name": "A", "value": "1"}]},
        {"env": [{"name": "B", "value": "2"}, {"name": "A", "value": "1"}]}, [("env[B]", "", "2")]),
    "one volume at two paths": ({"volumeMounts": [{"name": "v", "mountPath": "/a"}]},
        {"volumeMounts": [{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/b"}]},
        [("volumeMounts[/b]", "", '{"name": "v", "mountPath": "/b"}')]),
    "texts are one value": ({"args": ["a"]}, {"args": ["a", "b"]}, [("args", '["a"]', '["a", "b"]')]),
    "a name twice": ({"env": [{"name": "A"}, {"name": "A"}]}, {"env": [{"name": "A"}, {"name": "B"}]},
        [("env[1].name", "A", "B")]),
    "an empty text": ({}, {"a": ""}, [("a", "", '""')]),
    "a long value": ({}, {"a": "x" * 999}, [("a", "", "x" * 300 + "…")]),
})  # fmt: skip
def test_each_difference_is_a_field(before, after, found):
    assert [(each.name, each.before, each.after) for each in additions.of(before, after)] == found


values = st.recursive(
    st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


@given(values, values)
def test_only_what_is_equal_has_no_differences(before, after):
    assert bool([*additions.of(before, after)]) == (before != after)
