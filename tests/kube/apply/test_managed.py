from __future__ import annotations

from dataclasses import replace

import pytest

from kube import apply, resources
from kube.apply import kubectl
from kube.errors import Conflict
from tests.kube.custom.samples import objects
from tests.tables import cases

from .things import LATER, NOW, THINGS, content, owned, run, take, thing


def put(live, obj, manager="u", now=NOW):
    return apply.track(live, obj, THINGS, manager=manager, now=now)


def managed(live, *entries):
    """Return an object as a client sends it with these managedFields."""
    return {**live, "metadata": {**live["metadata"], "managedFields": list(entries)}}


def test_a_new_object_is_tracked_from_the_start_and_an_old_one_without_managers_is_not():
    obj = put(None, thing({"labels": {"a": "1"}, "generateName": "x-"}, text="x", status={"phase": "no"}))
    fields = {"f:metadata": {"f:labels": {".": {}, "f:a": {}}, "f:generateName": {}}, "f:text": {}}
    entry = {"manager": "u", "operation": "Update", "apiVersion": "example.org/v1", "time": "2025-10-09T08:53:20Z"}
    assert obj["metadata"]["managedFields"] == [{**entry, "fieldsType": "FieldsV1", "fieldsV1": fields}]
    assert put(thing(text="x"), thing(text="y")) == thing(text="y")
    group = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": "x"}}
    obj = apply.track(None, {**group, "status": {"phase": "A"}}, resources.POD_GROUPS, manager="m", now=NOW)
    assert owned(obj) == {"m": [".status.phase"]}, "a kind without a path for its status"


@cases("reset", {"empty list": [], "empty entry": [{}]})
def test_managers_can_be_forgotten(reset):
    live = run("a {text: x}; u= {text: y}")
    obj = put(live, managed(live, *reset))
    assert "managedFields" not in obj["metadata"]
    assert content(obj) == {"text": "y"}


APPLIED = {"manager": "x", "operation": "Apply", "apiVersion": "example.org/v1"}
WHOLE = {**APPLIED, "fieldsType": "FieldsV1", "fieldsV1": {"f:text": {}}}


@cases("sent", {
    "left out": None,
    "without operation": {"manager": "x"},
    "without type": APPLIED,
    "with a wrong step": {**WHOLE, "fieldsV1": {"text": {}}},
    "with a number for a name": {"manager": 1},
    "with a long name": {**WHOLE, "manager": "x" * 129},
    "with a wrong time": {**WHOLE, "time": "yesterday"},
})  # fmt: skip
def test_managed_fields_that_cannot_be_read_leave_the_old_ones(sent):
    live = run("a {text: x}")
    obj = managed(live, sent) if sent is not None else thing(text="x")
    assert owned(put(live, obj)) == {"a": [".text"]}


def test_managed_fields_can_be_changed_and_are_written_in_one_way():
    live = run("kubectl-client-side-apply= {text: x, number: 1}")
    entry = {**live["metadata"]["managedFields"][0], "manager": "kubectl", "operation": "Apply"}
    obj = put(live, managed(live, entry), now=LATER)
    assert obj["metadata"]["managedFields"] == [entry]
    assert content(take(obj, "kubectl {text: x}")) == {"text": "x"}
    step = 'k: { "protocol" : "\\u0054CP", "port": 80 }'
    obj = put(live, managed(live, {**entry, "fieldsV1": {"f:ports": {step: {".": {}, "f:name": {}}}}}))
    written = {"f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:name": {}}}}
    assert obj["metadata"]["managedFields"][0]["fieldsV1"] == written


def test_a_manager_has_an_entry_for_each_operation_and_subresource():
    live = run("a= {text: x}; a {text: x, number: 1}")
    assert owned(live) == {"a": [".number", ".text"], "a Update": [".text"]}
    live = run("a {text: x}")
    obj = {**managed(live, {}), "status": {"phase": "A"}}
    obj = apply.track(live, obj, THINGS, manager="c", subresource="status", now=NOW)
    assert owned(obj) == {"a": [".text"], "c/status": [".status", ".status.phase"]}


def test_the_oldest_of_many_updates_are_thrown_together_but_not_appliers():
    live, fields = None, {}
    for number in range(14):
        fields[f"k{number:02}"] = "x"
        live = put(live, thing(map=dict(fields)), f"m{number:02}", NOW + number * 1000)
    entries = live["metadata"]["managedFields"]
    assert [entry["manager"] for entry in entries] == ["ancient-changes", *(f"m{n:02}" for n in range(5, 14))]
    assert entries[0]["time"] == "2025-10-09T08:53:24Z"
    assert owned(live)["ancient-changes"] == [".map", *(f".map.k{n:02}" for n in range(5))]
    live = run(f"m{number:02} {{map: {{k{number}: x}}}}" for number in range(14))
    assert len(live["metadata"]["managedFields"]) == 14


def test_what_was_said_about_a_version_that_is_gone_is_forgotten():
    live = run("a {text: x, number: 1}")
    entry = {**live["metadata"]["managedFields"][0], "apiVersion": "example.org/v1alpha1"}
    obj = take(managed(live, entry), "b! {text: y}")
    assert owned(obj) == {"b": [".text"], "before-first-apply": [".number"]}
    assert content(obj) == {"text": "y", "number": 1}


def schema_with(**changes):
    return replace(THINGS, schema=objects(**{**THINGS.schema["properties"], **changes}))


def test_what_changes_its_shape_has_its_managers_still():
    granular = {**THINGS.schema["properties"]["atomicMap"], "x-kubernetes-map-type": "granular"}
    live = take(None, "a {atomicMap: {a: '1'}}", resource=schema_with(atomicMap=granular))
    assert owned(live) == {"a": [".atomicMap.a"]}
    assert owned(take(live, "a {atomicMap: {a: '2'}}")) == {"a": [".atomicMap"]}
    with pytest.raises(Conflict):
        take(live, "b {atomicMap: {a: '2'}}")
    live = take(None, "a {list: [{name: a}]}")
    obj = take(live, "a {list: [{name: b}]}", resource=schema_with(list={"type": "array"}))
    assert owned(obj) == {"a": [".list"]}


# From client-side apply to server-side apply.


def by_kubectl(last, **parts):
    return put(None, thing({"annotations": {kubectl.LAST_APPLIED: last}}, **parts), "kubectl-client-side-apply")


def test_what_client_side_apply_applied_may_be_changed_by_kubectl_and_the_annotation_follows():
    live = by_kubectl('{"apiVersion":"example.org/v1","text":"x","number":1}', text="x", number=1)
    obj = take(live, "kubectl {text: y}")
    assert content(obj) == {"text": "y", "number": 1}
    assert ".text" in owned(obj)["kubectl"]
    last = '{"apiVersion":"example.org/v1","kind":"Thing","metadata":{"name":"x","namespace":"default"},"text":"y"}\n'
    assert obj["metadata"]["annotations"][kubectl.LAST_APPLIED] == last
    with pytest.raises(Conflict):
        take(live, "flux {text: y}")


def test_what_was_changed_since_is_a_conflict():
    live = by_kubectl('{"apiVersion":"example.org/v1","text":"x","number":1}', text="changed", number=1)
    with pytest.raises(Conflict) as caught:
        take(live, "kubectl {text: y, number: 2}")
    assert [cause.field for cause in caught.value.causes] == [".text"]


@cases("last", {
    "none": "", "no JSON": "{", "no object": "[]", "another version": '{"apiVersion":"v2","text":"x"}',
    "unreadable": '{"apiVersion":"example.org/v1","set":[1,1]}',
})  # fmt: skip
def test_an_annotation_that_says_nothing_allows_nothing(last):
    with pytest.raises(Conflict):
        take(by_kubectl(last, text="x"), "kubectl {text: y}")


def test_objects_that_differ_in_times_only_are_the_same():
    a, b = (take(None, "a {text: x}", now) for now in (NOW, LATER))
    assert a != b
    assert apply.same_but_times(a, b)
    assert not apply.same_but_times(a, take(b, "b! {text: y}"))
    assert not apply.same_but_times(a, take(b, "b {text: x}"))
    assert not apply.same_but_times(a, {**a, "text": "y"})
    assert apply.same_but_times(thing(), thing())


def test_arguments_stay_as_they_are():
    live = run("a {text: x, list: [{name: a}]}; u= {text: x, list: [{name: a, value: 1}]}")
    before = repr(live)
    take(live, "b! {list: [{name: a, value: 2}], text: y}")
    take(live, "b= {}")
    assert repr(live) == before
