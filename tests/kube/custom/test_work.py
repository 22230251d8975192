"""Definitions that are much work: refused, or done in a bounded number of steps."""

from __future__ import annotations

from kube.custom import definition, nodes, patterns, schemas
from kube.errors import MOST_CAUSES, Invalid, required
from tests.kube.custom import samples
from tests.tables import cases

TEXT = {"type": "string"}


def causes(schema, versions=1):
    crd = samples.definition()
    crd["spec"]["versions"] = [
        {**samples.version(schema=schema), "name": f"v{n + 1}", "storage": n == 0} for n in range(versions)
    ]
    definition.default(crd)
    return [str(cause) for cause in definition.check(crd, None)]


def fields(**properties):
    return {"type": "object", "properties": properties}


def test_defaults_inside_each_other_are_checked_with_one_tree(monkeypatch):
    schema = fields(a=TEXT)
    for _ in range(30):
        schema = {**fields(a=schema), "default": {}}
    made = []
    compiled = nodes.compiled
    monkeypatch.setattr(nodes, "compiled", lambda one: (made.append(one), compiled(one))[1])
    monkeypatch.setattr(schemas, "compiled", nodes.compiled)
    assert causes(fields(spec=schema)) == []
    assert len(made) < 40


def test_defaults_have_the_steps_of_one_check_together():
    choice = {"type": "array", "items": {**TEXT, "anyOf": [{"pattern": f"^{n}$"} for n in range(20)]}}
    many = {f"p{n}": {**choice, "default": ["19"] * 100} for n in range(100)}
    assert causes(fields(p=many["p1"])) == []
    assert "too large or too deep" in causes(fields(**many))[0]


def test_patterns_are_weighed_together():
    patterns.compiled.cache_clear()
    large = {f"p{n}": {**TEXT, "pattern": f"(a{n}|b){{1,500}}"} for n in range(4000)}
    assert "patterns" in causes(fields(**large))[0]
    assert patterns.compiled.cache_info().misses < 400


@cases("schema, versions, told", {
    "schemas": (fields(**{f"p{n}": TEXT for n in range(schemas.MOST_SCHEMAS)}), 1, "more than 10,000 schemas"),
    "versions": (fields(a=TEXT), definition.MOST_VERSIONS + 1, "spec.versions: Too many: 101"),
    "map keys": (fields(a={"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [f"k{n}" for n in range(10_000)], "items": fields(k=TEXT)}),
        1, "x-kubernetes-list-map-keys: Too many: 10000"),
})  # fmt: skip
def test_too_much_of_something_is_refused_in_a_word(schema, versions, told):
    found = causes(schema, versions)
    assert told in found[0]
    assert len(found) == 1


def test_an_answer_tells_the_first_of_many_causes():
    error = Invalid.of("A", "a", [required(f"f{n}") for n in range(1000)])
    assert len(error.causes) == MOST_CAUSES
    assert error.message.endswith("f255: Required value, and 744 more]")
