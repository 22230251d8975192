import copy
import time

import jsonpatch
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kube import patch
from tests.kube.samples import deep, json_values
from tests.tables import cases, parts

POD = "io.k8s.api.core.v1.Pod"
names = st.sampled_from(["a", "b", "c", "", "a/b", "~", "0", "-"])
scalars = st.booleans() | st.integers(0, 3) | st.sampled_from(["x", "y"])
values = json_values(names, scalars, 8)
objects = st.dictionaries(names, values, max_size=4)
with_nulls = st.recursive(scalars | st.none(), lambda inner: st.dictionaries(names, inner, max_size=3), max_leaves=8)
merge_patches = st.dictionaries(names, with_nulls, max_size=4)


LISTED = {"l": [1, 2], "m": {"x": 1}}
TWO = {**LISTED, "metadata": {"finalizers": ["a"]}, "spec": {"containers": [{"name": "a", "image": "a"}]}}


def merged(apply):
    """Of a line `target + change`."""
    return lambda text: apply(*map(yaml.safe_load, text.split(" + ")))


def refused(apply, target):
    """Of a change that does not apply, and leaves the object alone."""

    def answer(text):
        before = copy.deepcopy(target)
        with pytest.raises(patch.PatchError):
            apply(before, yaml.safe_load(text))
        return "refused" if before == target else f"refused, and changed to {before}"

    return answer


def strategic(target, change, kind=POD):
    before = copy.deepcopy((target, change))
    found = patch.strategic(target, change, kind)
    assert (target, change) == before
    return found


def of_another_spec(text):
    kind, text = text.split(" ", 1)
    target, change = ({"spec": yaml.safe_load(each)} for each in text.split(" + "))
    return patch.strategic(target, change, kind)["spec"]


@parts("kube/patch")
def test_a_patch_leads_to_what_stands_there(part):
    def differing(source, goal):
        return [[op["op"], op["path"]] for op in patch.difference(source, goal)]

    functions = {
        "merge, as RFC 7386 shows": merged(patch.merge), "differences": merged(differing), "strategic": merged(strategic),
        "JSON patches": lambda text: patch.json_patch(LISTED, yaml.safe_load(text)),
        "no JSON patches": refused(patch.json_patch, LISTED), "strategic, of other specs": of_another_spec,
        "no strategic patches": refused(lambda target, change: patch.strategic(target, change, POD), TWO),
    }  # fmt: skip
    part.check(functions[part.title])


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


@cases("path, value, detail", {
    "numbers": ("/m/x", 2, "the value at '/m/x' is 1, and the test expects 2."),
    "types": ("/m/x", True, "the value at '/m/x' is 1, and the test expects true."),
    "long": ("/l", "b" * 600, f'is [1, 2], and the test expects "{"b" * 499}….'),
})  # fmt: skip
def test_a_test_that_fails_tells_both_sides_to_who_may_read_them(path, value, detail):
    with pytest.raises(patch.PatchError) as error:
        patch.json_patch(LISTED, [{"op": "test", "path": path, "value": value}])
    assert error.value.detail.startswith("Operation 0 does not apply: ")
    assert error.value.detail.endswith(detail)
    assert str(error.value).endswith(f"{path!r} is another one than the test expects.")


@cases("hostile", {
    "an index of thousands of digits": lambda: patch.json_patch({"l": [1]}, [{"op": "remove", "path": "/l/" + "9" * 5000}]),
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


def test_long_keyed_lists_merge_in_linear_time():
    items = [{"name": f"v{number}"} for number in range(50_000)]
    began = time.thread_time()
    result = patch.strategic({"spec": {"volumes": items}}, {"spec": {"volumes": items[::-1]}}, POD)
    assert time.thread_time() - began < 5
    assert result["spec"]["volumes"] == items[::-1]


def pod(*containers, **spec):
    return {"spec": {"containers": list(containers), **spec}}


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
