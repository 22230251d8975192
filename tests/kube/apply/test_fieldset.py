from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kube.apply import fieldset
from kube.apply.fieldset import FieldsError
from tests.tables import cases

steps = st.sampled_from(
    ["f:a", "f:b", "f:.", "f:", 'k:{"name":"x"}', 'k:{"name":"x","port":1}', 'v:"x"', "v:1", "v:true", "i:0", "i:10"]
)  # fmt: skip
some_paths = st.sets(st.lists(steps, min_size=1, max_size=4).map(tuple), max_size=8)


def of(paths):
    return fieldset.of_paths(*paths)


@settings(deadline=None)
@given(some_paths)
def test_a_set_is_written_and_read_as_the_same(paths):
    fields = of(paths)
    assert set(fieldset.paths(fields)) == paths
    assert fieldset.parse(fields) == fields


@settings(deadline=None)
@given(some_paths, some_paths)
def test_sets_are_sets(one, two):
    a, b = of(one), of(two)
    assert fieldset.union(a, b) == fieldset.union(b, a) == of(one | two)
    assert fieldset.intersection(a, b) == fieldset.intersection(b, a) == of(one & two)
    assert fieldset.difference(a, b) == of(one - two)
    assert all(fieldset.holds(a, path) == (path in one) for path in one | two)
    assert not fieldset.holds(a, ())


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("f:spec", "f:containers", 'k:{"name":"x"}', "f:image"), '.spec.containers[name="x"].image'),
        (("f:ports", 'k:{"containerPort":80,"protocol":"TCP"}'), '.ports[containerPort=80,protocol="TCP"]'),
        (("f:metadata", "f:finalizers", 'v:"a/b"'), '.metadata.finalizers[="a/b"]'), (("f:a", "i:3"), ".a[3]"),
        (("f:annotations", "f:a.b/c"), ".annotations.a.b/c"),
    ],
)  # fmt: skip
def test_paths_are_written_as_people_know_them(path, text):
    assert fieldset.text(path) == text


@cases("sent, read", {
    "nothing": ({}, {}),
    "the root is in no set": ({".": {}, "f:a": {}}, {"f:a": {}}),
    "a dot alone": ({"f:a": {".": {}}}, {"f:a": {}}),
    "keys in order": ({'k:{"b":1, "a":2}': {}}, {'k:{"a":2,"b":1}': {}}),
    "one number is one step": ({"v:1.0": {}, "v:1": {}}, {"v:1": {}}),
    "escapes": ({'v:"\\u003c"': {}}, {'v:"<"': {}}),
})  # fmt: skip
def test_steps_are_read_in_whatever_way_they_are_written(sent, read):
    assert fieldset.parse(sent) == read


def deep(levels):
    tree = {}
    for _ in range(levels):
        tree = {"f:a": tree}
    return tree


@pytest.mark.parametrize(
    "sent",
    [
        None, [], {"a": {}}, {"f": {}}, {"x:a": {}}, {"f:a": None}, {"f:a": {"b": {}}}, {"k:": {}}, {"k:{}": {}},
        {"k:[1]": {}}, {"k:{": {}}, {"v:": {}}, {"v:null": {}}, {"v:{}": {}}, {"v:1 2": {}}, {"i:-1": {}}, {"i:x": {}},
        {"i:1.5": {}}, {"v:" + "[" * 100_000: {}}, {1: {}}, deep(200), deep(50_000),
    ],
    ids=lambda sent: repr(sent)[:30] if not isinstance(sent, dict) or "f:a" not in sent else "deep or wrong",
)  # fmt: skip
def test_what_is_no_set_is_refused(sent):
    with pytest.raises(FieldsError):
        fieldset.parse(sent)
