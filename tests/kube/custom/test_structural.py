"""Objects against their schema: what is dropped, what is filled in, what is refused and in which words."""

from __future__ import annotations

import time
from copy import deepcopy

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kube.custom import structural
from kube.custom.structural import Structural
from tests.campaign import examples
from tests.kube.custom import samples
from tests.kube.custom.samples import INTEGER, TEXT, TEXTS, objects
from tests.tables import parts

OBJECT = {"apiVersion": "g.io/v1", "kind": "K", "metadata": {"name": "x"}}


def of(**properties):
    return Structural(objects(**properties))


def causes(schema, old=None, **fields):
    return [str(cause) for cause in structural.check(schema, {**OBJECT, **fields}, old)]


# Texts as kube-apiserver 1.34 gives them.
@parts("kube/structural", "values")
def test_value_is_refused_in_kubernetes_words(part):
    def refused(text):
        schema, value = map(yaml.safe_load, text.split(" + "))
        return causes(of(a=schema), a=value)

    part.check(refused)


def test_what_was_wrong_before_may_stay():
    schema = of(spec=objects(a={**INTEGER, "maximum": 3}, b=TEXT))
    old = {**OBJECT, "spec": {"a": 5, "b": "x"}}
    assert causes(schema, old, spec={"a": 5, "b": "y"}) == []
    assert len(causes(schema, old, spec={"a": 6, "b": "y"})) == 1
    assert len(causes(schema, old, spec={"a": 5, "b": 1})) == 1


def shaped(schema, **fields):
    obj = {**deepcopy(OBJECT), **deepcopy(fields)}
    told = structural.unknown_fields(schema, obj)
    dropped = structural.shape(schema, obj)
    assert told == dropped
    return {key: value for key, value in obj.items() if key not in OBJECT}, dropped


@parts("kube/structural", "shapes")
def test_object_gets_the_shape_of_its_schema(part):
    """Behind the arrow stand what is kept and the paths of what is dropped."""

    def shapes(text):
        properties, obj = map(yaml.safe_load, text.split(" + "))
        return list(shaped(of(**properties), **obj))

    part.check(shapes)


def test_defaults_are_not_shared_between_objects():
    schema = of(a={**TEXTS, "default": ["x"]})
    shaped(schema)[0]["a"].append("y")
    assert shaped(schema)[0] == {"a": ["x"]}


def test_unknown_fields_of_the_metadata_are_told_too():
    obj = {**OBJECT, "metadata": {"name": "x", "lables": {}}, "spce": {}}
    assert structural.unknown_fields(of(spec=objects()), obj) == ["spce", "metadata.lables"]


FIELDS = st.sampled_from(["spec", "status", "cronSpec", "replicas", "podSets", "x", "type"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(FIELDS, inner, max_size=4),
    max_leaves=20,
)
SCHEMAS = st.sampled_from(
    [Structural(sample["spec"]["versions"][0]["schema"]["openAPIV3Schema"]) for sample in samples.ALL.values()]
)


@examples(100)
@given(SCHEMAS, st.dictionaries(st.sampled_from(["spec", "status", "x"]), JSON, max_size=3))
def test_any_object_is_checked_without_an_error_and_shaped_once(schema, fields):
    obj = {**deepcopy(OBJECT), **fields}
    structural.check(schema, obj)
    structural.shape(schema, obj)
    once = deepcopy(obj)
    assert structural.shape(schema, obj) == []
    assert obj == once
    structural.check(schema, obj, once)
    structural.check_status(schema, obj, once)


@settings(max_examples=60)
@given(JSON, st.dictionaries(st.sampled_from(["spec", "x"]), JSON, max_size=2))
def test_any_schema_is_translated(schema, fields):
    found, obj = of(spec=schema, x={"allOf": [schema]}), {**deepcopy(OBJECT), **fields}
    structural.check(found, obj)
    structural.shape(found, obj)


def test_pattern_that_would_run_for_ever_elsewhere_is_quick():
    schema = of(a={**TEXT, "pattern": "^(a+)+$"})
    begun = time.thread_time()
    assert len(causes(schema, a="a" * 100_000 + "!")) == 1
    assert time.thread_time() - begun < 2


def test_schema_and_object_that_multiply_are_given_up():
    alternatives = [{"properties": {"x": {"enum": [n]}}} for n in range(2000)]
    schema = of(a={"type": "array", "items": {**objects(x=INTEGER), "anyOf": alternatives}})
    begun = time.thread_time()
    found = causes(schema, a=[{"x": -1}] * 20_000)
    assert time.thread_time() - begun < 5
    assert any("too large or too deep" in text for text in found)
