from __future__ import annotations

import copy
import time

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube import definitions, patch, resources
from tests.tables import cases

POD = "io.k8s.api.core.v1.Pod"
names = st.sampled_from(["a", "b", "c", "", "a/b", "~", "0", "-"])
scalars = st.booleans() | st.integers(0, 3) | st.sampled_from(["x", "y"])
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3), max_leaves=8
)
objects = st.dictionaries(names, values, max_size=4)
with_nulls = st.recursive(scalars | st.none(), lambda inner: st.dictionaries(names, inner, max_size=3), max_leaves=8)
merge_patches = st.dictionaries(names, with_nulls, max_size=4)


@pytest.mark.parametrize(
    ("target", "change", "expected"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}), ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}), ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}), ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}), ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}), ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}), ({"a": "foo"}, {"a": {"b": 1}}, {"a": {"b": 1}}),
    ],
)  # fmt: skip
def test_merge_does_as_rfc_7386_shows(target, change, expected):
    assert patch.merge(target, change) == expected


@given(objects, merge_patches)
def test_merging_twice_is_merging_once_and_leaves_no_null(target, change):
    def has_null(value):
        return value is None or (isinstance(value, dict) and any(map(has_null, value.values())))

    once = patch.merge(target, change)
    assert patch.merge(once, change) == once
    assert not has_null(once)
    assert patch.merge(target, {}) == target
    assert patch.merge({}, target) == target


@given(objects, objects)
def test_strategic_is_a_plain_merge_where_no_list_has_a_key(target, change):
    assert patch.strategic(target, change, POD) == patch.merge(target, change)


def scramble(value):
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        scramble(item)
    if isinstance(value, dict | list):
        value.clear()


@given(objects, merge_patches)
def test_a_result_shares_nothing_with_the_arguments(target, change):
    for apply in (patch.merge, lambda t, c: patch.strategic(t, c, POD)):
        before = copy.deepcopy((target, change))
        scramble(apply(target, change))
        assert (target, change) == before


@given(objects, objects)
def test_a_computed_json_patch_leads_to_the_goal(source, goal):
    ops = jsonpatch.make_patch(source, goal).patch
    before = copy.deepcopy((source, ops))
    result = patch.json_patch(source, ops)
    # The generator takes true for 1; what it did not see as a difference is none here either.
    assert result == goal
    scramble(result)
    assert (source, ops) == before


@cases("source, goal, ops", {
    "the same": ({"a": 1}, {"a": 1}, []),
    "one is not true": ({"a": 1}, {"a": True}, [("replace", "/a")]),
    "keys that are escaped": ({"a/b": 1}, {"~": 1}, [("remove", "/a~1b"), ("add", "/~0")]),
    "in a list": ({"a": [{"b": 1}, 2]}, {"a": [{"b": 3}, 2]}, [("replace", "/a/0/b")]),
    "a longer list": ({"a": [1]}, {"a": [1, 2]}, [("replace", "/a")]),
})  # fmt: skip
def test_a_difference_names_the_smallest_part_that_differs(source, goal, ops):
    assert [(op["op"], op["path"]) for op in patch.difference(source, goal)] == ops


@given(objects, objects)
def test_a_difference_leads_to_the_goal_here_and_in_the_reference_library(source, goal):
    before = copy.deepcopy((source, goal))
    ops = patch.difference(source, goal)
    assert values_of(patch.json_patch(source, ops)) == values_of(goal)
    assert values_of(jsonpatch.apply_patch(source, ops)) == values_of(goal)
    scramble({"ops": ops})
    assert (source, goal) == before


def values_of(value):
    """Return JSON in which true is not 1."""
    if isinstance(value, dict):
        return {key: values_of(item) for key, item in value.items()}
    return [values_of(item) for item in value] if isinstance(value, list) else (type(value), value)


pointers = st.lists(names, max_size=3).map(
    lambda parts: "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in parts)
)


def ops(names, *fields):
    return st.fixed_dictionaries({"op": st.sampled_from(names), "path": pointers, **dict(fields)})


operations = st.one_of(
    ops(["add", "replace", "test"], ("value", values)),
    ops(["remove"], ("path", pointers.filter(bool))),
    ops(["move", "copy"], ("from", pointers.filter(bool))),
)


@given(objects, st.lists(operations.filter(lambda op: op["op"] != "test"), max_size=3))
def test_json_patch_agrees_with_the_reference_library_where_both_apply(target, ops):
    try:
        result = patch.json_patch(target, ops)
        expected = jsonpatch.apply_patch(target, ops)
    except (patch.PatchError, jsonpatch.JsonPatchException, jsonpatch.JsonPointerException):
        return
    assert not isinstance(expected, dict) or result == expected


LISTED = {"l": [1, 2], "m": {"x": 1}}


@cases("ops, expected", {
    "append": ([{"op": "add", "path": "/l/-", "value": 3}], {"l": [1, 2, 3], "m": {"x": 1}}),
    "insert": ([{"op": "add", "path": "/l/0", "value": 0}], {"l": [0, 1, 2], "m": {"x": 1}}),
    "insert at the end": ([{"op": "add", "path": "/l/2", "value": 3}], {"l": [1, 2, 3], "m": {"x": 1}}),
    "escapes": ([{"op": "add", "path": "/a~1b~0", "value": 1}], {"l": [1, 2], "m": {"x": 1}, "a/b~": 1}),
    "remove": ([{"op": "remove", "path": "/m"}], {"l": [1, 2]}),
    "replace all": ([{"op": "replace", "path": "", "value": {"n": 1}}], {"n": 1}),
    "move": ([{"op": "move", "from": "/m/x", "path": "/y"}], {"l": [1, 2], "m": {}, "y": 1}),
    "copy into itself": ([{"op": "copy", "from": "/m", "path": "/m/y"}], {"l": [1, 2], "m": {"x": 1, "y": {"x": 1}}}),
    "test": ([{"op": "test", "path": "/m", "value": {"x": 1.0}}], {"l": [1, 2], "m": {"x": 1}}),
})  # fmt: skip
def test_json_patch(ops, expected):
    assert patch.json_patch(LISTED, ops) == expected


@cases("path, value, told", {
    "numbers": ("/m/x", 2, "the value at '/m/x' is 1, and the test expects 2."),
    "types": ("/m/x", True, "the value at '/m/x' is 1, and the test expects true."),
    "long": ("/l", "b" * 600, f'is [1, 2], and the test expects "{"b" * 499}….'),
})  # fmt: skip
def test_a_test_that_fails_tells_both_sides_to_who_may_read_them(path, value, told):
    with pytest.raises(patch.PatchError) as error:
        patch.json_patch(LISTED, [{"op": "test", "path": path, "value": value}])
    assert error.value.told.startswith("Operation 0 does not apply: ")
    assert error.value.told.endswith(told)
    assert str(error.value).endswith(f"{path!r} is another one than the test expects.")


def op(name, path, **fields):
    return {"op": name, "path": path, **fields}


@pytest.mark.parametrize(
    "ops",
    [
        {}, "x", [1], [{}], [{"op": "add"}], [op("add", "/a")], [op("jump", "/a")], [op([], "/a")], [op("remove", "/no")],
        [op("remove", "m")], [op("replace", "/no", value=1)], [op("add", "/no/x", value=1)], [op("add", "/l/3", value=1)],
        [op("add", "/l/01", value=1)], [op("add", "/l/x", value=1)], [op("replace", "/l/-", value=1)], [op("remove", "/l/-1")],
        [op("remove", "/l/" + "9" * 5000)], [op("test", "/m/x", value=True)], [op("test", "/m/x", value=2)], [op("move", "/m")],
        [{"op": "move", "from": "/m", "path": "/m/x"}], [{"op": "copy", "from": 1, "path": "/m"}], [op("remove", "")],
        [op("replace", "", value=[])], [op("add", "/m/x/y", value=1)], [op("remove", "/m/x/y")],
        [op("replace", "/m/x/y", value=1)], [{"op": "move", "from": "/m/x/y", "path": "/z"}],
        [op("replace", "/l", value=[{}, {}]), op("move", "/l/0/x", **{"from": "/l/0"})],
    ],
    ids=str,
)  # fmt: skip
def test_what_does_not_apply_is_refused_and_leaves_the_object_alone(ops):
    target = copy.deepcopy(LISTED)
    with pytest.raises(patch.PatchError):
        patch.json_patch(target, ops)
    assert target == LISTED


def deep(depth):
    value = {}
    for _ in range(depth):
        value = {"a": value}
    return value


@cases("hostile", {
    "too many operations": lambda: patch.json_patch({}, [{"op": "test", "path": "", "value": {}}] * 10_001),
    "doubling copies": lambda: patch.json_patch({"a": 1, "b": 2}, [{"op": "copy", "from": "", "path": path} for path in ("/a", "/b") * 30]),
    "deep merge patch": lambda: patch.merge({}, deep(100_000)),
    "deep strategic patch": lambda: patch.strategic({}, deep(100_000), POD),
    "deep value": lambda: patch.json_patch({}, [{"op": "add", "path": "/a", "value": deep(100_000)}]),
})  # fmt: skip
def test_hostile_patches_are_refused_quickly(hostile):
    began = time.thread_time()
    sum(range(5_000_000))  # a tenth of a second or more, by how fast this machine is now
    counted = time.thread_time()
    with pytest.raises(patch.PatchError):
        hostile()
    assert time.thread_time() - counted < 40 * (counted - began)


A, B, C = ({"name": name, "image": name} for name in "abc")


def test_long_keyed_lists_merge_in_linear_time():
    items = [{"name": f"v{number}"} for number in range(50_000)]
    began = time.thread_time()
    result = patch.strategic({"spec": {"volumes": items}}, {"spec": {"volumes": items[::-1]}}, POD)
    assert time.thread_time() - began < 5
    assert result["spec"]["volumes"] == items[::-1]


def pod(*containers, **spec):
    return {"spec": {"containers": list(containers), **spec}}


@cases("target, change, expected", {
    "an item is changed by its key": (pod(A, B), pod({"name": "b", "image": "x"}), pod(A, {"name": "b", "image": "x"})),
    "a new item comes first": (pod(A, B), pod(C), pod(C, A, B)),
    "an item is deleted": (pod(A, B), pod({"name": "a", "$patch": "delete"}), pod(B)),
    "deleting what is not there": (pod(A, B), pod({"name": "z", "$patch": "delete"}), pod(A, B)),
    "a list is replaced": (pod(A, B), pod({"$patch": "replace"}, C), pod(C)),
    "null deletes a field of an item": (pod(A, B), pod({"name": "a", "image": None}), pod({"name": "a"}, B)),
    "an item that replaces is itself left out": (pod(A, B), pod({"name": "a", "$patch": "replace", "x": 1}, C), pod(C)),
    "null deletes a list": (pod(A), {"spec": {"containers": None}}, {"spec": {}}),
    "order with one unnamed": (pod(A, B, C), {"spec": {"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}]}},
        pod(B, C, A)),
    "order places a new item": (pod(A, B),
        {"spec": {"$setElementOrder/containers": [{"name": "a"}, {"name": "b"}, {"name": "c"}], "containers": [C]}},
        pod(A, B, C)),
    "lists inside items merge too": (pod({**A, "env": [{"name": "X", "value": "1"}]}),
        pod({"name": "a", "env": [{"name": "Y", "value": "2"}, {"name": "X", "value": "3"}]}),
        pod({**A, "env": [{"name": "Y", "value": "2"}, {"name": "X", "value": "3"}]})),
    "a list without key is replaced": (pod({**A, "args": ["1", "2"]}), pod({"name": "a", "args": ["3"]}),
        pod({**A, "args": ["3"]})),
    "tolerations are replaced": (pod(A, tolerations=[{"key": "x"}]), {"spec": {"tolerations": [{"key": "y"}]}},
        pod(A, tolerations=[{"key": "y"}])),
    "retain keys": (pod(A, volumes=[{"name": "v", "emptyDir": {}}]),
        {"spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}]}},
        pod(A, volumes=[{"name": "v", "hostPath": {"path": "/x"}}])),
    "a map is replaced": ({"metadata": {"labels": {"a": "1", "b": "2"}}},
        {"metadata": {"labels": {"$patch": "replace", "c": "3"}}}, {"metadata": {"labels": {"c": "3"}}}),
    "a map is emptied": ({"metadata": {"labels": {"a": "1"}}}, {"metadata": {"labels": {"$patch": "delete"}}},
        {"metadata": {"labels": {}}}),
    "finalizers are a set": ({"metadata": {"finalizers": ["a", "b"]}}, {"metadata": {"finalizers": ["c", "a"]}},
        {"metadata": {"finalizers": ["c", "a", "b"]}}),
    "an element is taken out of a set": ({"metadata": {"finalizers": ["a", "b"]}},
        {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}, {"metadata": {"finalizers": ["b"]}}),
    "owners by uid": ({"metadata": {"ownerReferences": [{"uid": "1"}]}},
        {"metadata": {"ownerReferences": [{"uid": "2"}]}},
        {"metadata": {"ownerReferences": [{"uid": "2"}, {"uid": "1"}]}}),
    "conditions by type": ({"status": {"conditions": [{"type": "Ready", "status": "False"}]}},
        {"status": {"conditions": [{"type": "Ready", "status": "True"}]}},
        {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}),
    "into nothing, directives and nulls vanish": ({},
        pod({"name": "a", "image": None, "env": [{"name": "X", "$patch": "delete"}]}), pod({"name": "a", "env": []})),
})  # fmt: skip
def test_strategic(target, change, expected):
    before = copy.deepcopy((target, change))
    assert patch.strategic(target, change, POD) == expected
    assert (target, change) == before


BUDGET, NODE, SERVICE = (
    f"io.k8s.api.{kind}" for kind in ("policy.v1.PodDisruptionBudget", "core.v1.Node", "core.v1.Service")
)
BY_LABEL = {"selector": {"matchLabels": {"a": "b"}}, "maxUnavailable": 1}
DNS = [{"port": 53, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]


@cases("kind, target, change, expected", {
    "items with the same key are all kept": (SERVICE, {"ports": DNS}, {"ports": [{"port": 80}]}, {"ports": [{"port": 80}, *DNS]}),
    "taints of a node are replaced": (NODE, {"taints": [{"key": "a"}], "podCIDRs": ["x"]}, {"taints": [], "podCIDRs": ["y"]}, {"taints": [], "podCIDRs": ["y", "x"]}),
    "a selector is replaced": (BUDGET, BY_LABEL, {"selector": {"matchExpressions": []}}, {"selector": {"matchExpressions": []}, "maxUnavailable": 1}),
    "lists of Volcano's kinds are replaced": (definitions.of(resources.JOBS), {"tasks": [{"name": "a"}]}, {"tasks": [{"name": "b"}]}, {"tasks": [{"name": "b"}]}),
})  # fmt: skip
def test_specs_of_other_kinds(kind, target, change, expected):
    finalizers = {"metadata": {"finalizers": ["x"]}}
    found = patch.strategic({"spec": target, **finalizers}, {"spec": change, "metadata": {"finalizers": ["y"]}}, kind)
    assert found == {"spec": expected, "metadata": {"finalizers": ["y", "x"]}}


@cases("change", {
    "item without its key": pod({"image": "x"}),
    "item that is no object": pod("x"),
    "key that is no plain value": pod({"name": ["a"]}),
    "unknown value of the directive": {"$patch": "explode"},
    "unknown directive": {"$jump": 1},
    "retain keys that are no list": {"$retainKeys": "a"},
    "retain keys that leave out a field of the patch": {"$retainKeys": [], "spec": {}},
    "elements to delete that are no list": {"metadata": {"$deleteFromPrimitiveList/finalizers": "a"}},
    "set of objects": {"metadata": {"finalizers": [{}]}},
    "no object": [],
})  # fmt: skip
def test_what_is_no_strategic_patch_is_refused(change):
    with pytest.raises(patch.PatchError):
        patch.strategic({**pod(A), "metadata": {"finalizers": ["a"]}}, change, POD)


containers = st.dictionaries(st.sampled_from("abcd"), st.sampled_from("xy"), max_size=4).map(
    lambda images: [{"name": name, "image": image} for name, image in images.items()]
)


@given(containers, containers)
def test_after_a_strategic_patch_every_patched_item_is_as_patched_and_no_other_is_lost(old, new):
    once = patch.strategic(pod(*old), pod(*new), POD)
    result = once["spec"]["containers"]
    by_name = {item["name"]: item for item in result}
    assert len(by_name) == len(result)
    assert by_name == {item["name"]: item for item in [*old, *new]}
    assert [item for item in result if item in new] == new
    assert patch.strategic(once, pod(*new), POD) == once
