"""Objects against their schema: what is dropped, what is filled in, what is refused and in which words."""

from __future__ import annotations

import time
from copy import deepcopy

from hypothesis import given, settings
from hypothesis import strategies as st

from kube.custom import structural
from kube.custom.structural import Structural
from tests.campaign import examples
from tests.kube.custom import samples
from tests.kube.custom.samples import ANYTHING, INTEGER, TEXT, TEXTS, objects
from tests.tables import cases

OBJECT = {"apiVersion": "g.io/v1", "kind": "K", "metadata": {"name": "x"}}


def of(**properties):
    return Structural(objects(**properties))


def causes(schema, old=None, **fields):
    return [str(cause) for cause in structural.check(schema, {**OBJECT, **fields}, old)]


NUMBER, IS_INT = {"type": "number"}, {"x-kubernetes-int-or-string": True}
PORTS = samples.keyed("port", "protocol", items=objects("port", port=INTEGER, protocol=TEXT))
ONE_OF = {**ANYTHING, "oneOf": [{"required": ["b"]}, {"required": ["c"]}]}
EMBEDDED = {**ANYTHING, "x-kubernetes-embedded-resource": True}
ONE_ONLY = 'Invalid value: "": "a" must validate one and only one schema (oneOf). Found '


def of_type(found, wanted, at="a"):
    return f'{at}: Invalid value: "{found}": {at} in body must be of type {wanted}: "{found}"'


# Texts as kube-apiserver 1.34 gives them.
@cases("schema, value, expected", {
    "type": (INTEGER, "x", of_type("string", "integer")),
    "number for text": (TEXT, 5, of_type("integer", "string")),
    "true is no number": (INTEGER, True, of_type("boolean", "integer")),
    "fraction": (INTEGER, 1.5, of_type("number", "integer")),
    "a whole number with a point": (INTEGER, 3.0, None),
    "an integer is a number": (NUMBER, 3, None),
    "null": (TEXT, None, of_type("null", "string")),
    "nullable": ({**TEXT, "nullable": True}, None, None),
    "enum": ({**TEXT, "enum": ["A", "B"]}, "C", 'a: Unsupported value: "C": supported values: "A", "B"'),
    "enum of numbers": ({**INTEGER, "enum": [1, 2]}, 3, 'a: Unsupported value: 3: supported values: "1", "2"'),
    "pattern": ({**TEXT, "pattern": "^a+$"}, "b", "a: Invalid value: \"b\": a in body should match '^a+$'"),
    "too long": ({**TEXT, "maxLength": 2}, "abc", "a: Too long: may not be more than 2 bytes"),
    "too short": ({**TEXT, "minLength": 2}, "a", 'a: Invalid value: "a": a in body should be at least 2 chars long'),
    "format": ({**TEXT, "format": "date-time"}, "today", of_type("today", "date-time")),
    "unknown formats say nothing": ({**TEXT, "format": "mystery"}, "x", None),
    "no URI": ({**TEXT, "format": "uri"}, "http://a b", of_type("http://a b", "uri")),
    "minimum": ({**INTEGER, "minimum": 1}, 0, "a: Invalid value: 0: a in body should be greater than or equal to 1"),
    "maximum": ({**INTEGER, "maximum": 1}, 2, "a: Invalid value: 2: a in body should be less than or equal to 1"),
    "exclusive": ({**NUMBER, "minimum": 0, "exclusiveMinimum": True}, 0,
        "a: Invalid value: 0: a in body should be greater than 0"),
    "Go's numbers": ({**NUMBER, "maximum": 1e6}, 2.5e7,
        "a: Invalid value: 2.5e+07: a in body should be less than or equal to 1e+06"),
    "multiple": ({**INTEGER, "multipleOf": 5}, 7, "a: Invalid value: 7: a in body should be a multiple of 5"),
    "too many": ({**TEXTS, "maxItems": 1}, ["a", "b"], "a: Too many: 2: must have at most 1 item"),
    "too few": ({**TEXTS, "minItems": 1}, [], "a: Invalid value: 0: a in body should have at least 1 items"),
    "item": (TEXTS, ["a", 1], of_type("integer", "string", "a[1]")),
    "set": ({**TEXTS, "x-kubernetes-list-type": "set"}, ["a", "b", "a"], 'a[2]: Duplicate value: "a"'),
    "required": ({**objects(b=TEXT), "required": ["b"]}, {}, "a.b: Required value"),
    "map value": ({"type": "object", "additionalProperties": INTEGER}, {"k": "v"}, of_type("string", "integer", "a.k")),
    "too many fields": ({"type": "object", "maxProperties": 1}, {"k": 1, "l": 2},
        "a: Too many: 2: must have at most 1 item"),
    "int or string: a string": (IS_INT, "50%", None),
    "int or string: an int": (IS_INT, 5, None),
    "int or string: neither": (IS_INT, True, of_type("boolean", "integer,string")),
    "a key twice": (PORTS, [{"port": 1}, {"port": 1, "protocol": "UDP"}, {"port": 1}], 'a[2]: Duplicate value: {"port": 1}'),
    "one of two, and both": (ONE_OF, {"b": 1, "c": 2}, ONE_ONLY + "2 valid alternatives"),
    "one of two, and none": (ONE_OF, {}, [ONE_ONLY + "none valid", "a.b: Required value"]),
    "an embedded resource": (EMBEDDED, {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": "b"}}}, None),
    "an embedded resource of no version": (EMBEDDED, {"kind": "Pod"}, "a.apiVersion: Required value"),
    "an embedded resource in a list": ({"type": "array", "items": EMBEDDED}, [{"kind": "Pod"}],
        "a[0].apiVersion: Required value"),
    "not": ({**TEXT, "not": {"enum": ["x"]}}, "x", 'Invalid value: "": "a" must not validate the schema (not)'),
})  # fmt: skip
def test_value_is_refused_in_kubernetes_words(schema, value, expected):
    assert causes(of(a=schema), a=value) == ([expected] if isinstance(expected, str) else expected or [])


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


@cases("schema, given_fields, kept, dropped", {
    "unknown field": (of(a=TEXT), {"a": "x", "b": 1}, {"a": "x"}, ["b"]),
    "nested": (of(a=objects(b=TEXT)), {"a": {"b": "x", "c": {"d": 1}}}, {"a": {"b": "x"}}, ["a.c"]),
    "in a list": (of(a={"type": "array", "items": objects(b=TEXT)}), {"a": [{"c": 1}]}, {"a": [{}]}, ["a[0].c"]),
    "kept on purpose": (of(a={"type": "object", "x-kubernetes-preserve-unknown-fields": True}), {"a": {"c": {"d": 1}}},
        {"a": {"c": {"d": 1}}}, []),
    "known below kept": (of(a={**objects(b=objects()), "x-kubernetes-preserve-unknown-fields": True}),
        {"a": {"b": {"x": 1}, "c": 1}}, {"a": {"b": {}, "c": 1}}, ["a.b.x"]),
    "map": (of(a={"type": "object", "additionalProperties": objects(b=TEXT)}), {"a": {"k": {"b": "x", "c": 1}}},
        {"a": {"k": {"b": "x"}}}, ["a.k.c"]),
    "default": (of(a={**TEXT, "default": "d"}), {}, {"a": "d"}, []),
    "default for null": (of(a={**TEXT, "default": "d"}), {"a": None}, {"a": "d"}, []),
    "null that may be": (of(a={**TEXT, "default": "d", "nullable": True}), {"a": None}, {"a": None}, []),
    "null that may not be": (of(a=TEXT), {"a": None}, {}, []),
    "default inside a default": (of(a={**objects(b={**INTEGER, "default": 3}), "default": {}}), {}, {"a": {"b": 3}},
        []),
    "no default inside what is absent": (of(a=objects(b={**INTEGER, "default": 3})), {}, {}, []),
    "default in items": (of(a={"type": "array", "items": objects(b={**INTEGER, "default": 3})}), {"a": [{}, {"b": 1}]},
        {"a": [{"b": 3}, {"b": 1}]}, []),
})  # fmt: skip
def test_object_gets_the_shape_of_its_schema(schema, given_fields, kept, dropped):
    assert shaped(schema, **given_fields) == (kept, dropped)


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
