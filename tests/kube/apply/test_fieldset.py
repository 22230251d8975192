from __future__ import annotations

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kube import resources
from kube.apply import fieldset, shape
from kube.apply.fieldset import FieldsError
from tests.tables import cases, parts

from .things import THINGS

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


@parts("kube/apply", "paths of fields")
def test_paths_are_written_as_people_know_them(part):
    part.check(lambda text: fieldset.text(text.split()))


@parts("kube/apply", "sets of fields")
def test_sets_are_read_in_whatever_way_they_are_written_or_refused(part):
    def read(text):
        try:
            return fieldset.parse(yaml.safe_load(text))
        except FieldsError:
            return "refused"

    part.check(read)


def deep(levels):
    tree = {}
    for _ in range(levels):
        tree = {"f:a": tree}
    return tree


@pytest.mark.parametrize("sent", [{"v:" + "[" * 100_000: {}}, deep(200), deep(50_000)], ids=["value", "deep", "deeper"])
def test_what_is_too_deep_is_refused(sent):
    with pytest.raises(FieldsError):
        fieldset.parse(sent)


def at(resource, *keys):
    found = shape.of(resource)
    for key in keys:
        found = found.item if key == "[]" else found.of(key)
    return found


@parts("kube/apply", "how kinds are divided")
def test_kinds_of_kubernetes_are_divided_as_in_kubernetes(part):
    def divided(text):
        kind, path = text.split()
        found = at(getattr(resources, kind), *path.split("."))
        return " ".join([found.type or "whole", *found.keys])

    part.check(divided)


def test_the_schema_of_a_custom_resource_says_how_it_is_divided():
    assert (at(THINGS, "ports").keys, at(THINGS, "ports").defaults) == (("port", "protocol"), {"protocol": "TCP"})
    assert at(THINGS, "metadata", "ownerReferences").keys == ("uid",)
    paths = ("set", "atomicMap", "template.metadata.finalizers", "mapOfSets.x")
    assert [at(THINGS, *path.split(".")).type for path in paths] == ["set", "atomic", "set", "set"]
    assert not shape.of(THINGS).names("strange")
    schema = at(resources.CUSTOM_RESOURCE_DEFINITIONS, "spec", "versions", "schema", "openAPIV3Schema")
    assert schema.of("not").of("x-kubernetes-validations").keys == ("rule",), "a definition that refers to itself"


@cases("schema", {
    "empty": {},
    "no object": {"properties": {"a": True}},
    "no keys": {"properties": {"a": {"x-kubernetes-list-type": "map"}}},
    "no items": {"properties": {"a": {"x-kubernetes-list-type": "set", "items": None}}},
    "anything": {"additionalProperties": True},
})  # fmt: skip
def test_a_poor_schema_is_no_error(schema):
    assert shape._from_schema(schema, 0).of("a")
