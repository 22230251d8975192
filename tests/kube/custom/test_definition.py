"""Definitions: which are right, what is wrong with the others, which names they get."""

from __future__ import annotations

from copy import deepcopy

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kube.custom import definition, kinds, naming, nodes, patterns, schemas
from kube.errors import MOST_CAUSES, Invalid, required
from kube.patch import merge
from tests.campaign import examples
from tests.kube.custom import samples
from tests.kube.custom.samples import TEXT, objects
from tests.tables import cases, parts

NOW = 1_700_000_000_000


def defaulted(crd, **changes):
    """A definition with its defaults, after changes by the path of a field: `spec__versions__0__schema`."""
    crd = deepcopy(crd)
    for path, value in changes.items():
        target = crd
        *way, last = (int(key) if key.isdigit() else key for key in path.split("__"))
        for key in way:
            target = target[key]
        target[last] = value
    definition.default(crd)
    return crd


def made(**changes):
    return defaulted(samples.definition(), **changes)


def texts(crd, old=None):
    return [str(cause) for cause in definition.check(crd, old)]


AT = "spec.versions[0].schema.openAPIV3Schema"


@parts("kube/definitions")
def test_what_is_wrong_is_told_in_kubernetes_words(part):
    """Of a definition with other metadata, another spec, another version, or properties of its schema."""

    def wrong(text):
        where, change = text.split(" ", 1)
        crd, change = samples.definition(), yaml.safe_load(change)
        version = crd["spec"]["versions"][0]
        places = {"metadata": crd["metadata"], "spec": crd["spec"], "version": version}
        if where == "schema":
            version["schema"]["openAPIV3Schema"]["properties"] = change
        else:
            places[where].update(merge(places[where], change))
        found = [each.replace(AT, "schema").replace("spec.versions[0]", "version") for each in texts(defaulted(crd))]
        return found[0] if len(found) == 1 else found

    part.check(wrong)


@pytest.mark.parametrize("name", samples.ALL)
def test_definitions_of_well_known_projects_are_right_and_warn_of_rules_in_cel(name):
    crd = defaulted(samples.ALL[name])
    assert texts(crd) == []
    assert ["not evaluated" in each for each in definition.warnings(crd)] == [True] * (name == "Workload")


def test_a_group_of_kubernetes_needs_an_approval_and_one_that_is_built_in_is_taken():
    crd = defaulted(samples.definition(group="things.k8s.io"))
    approval = "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups"
    assert texts(crd)[0].startswith(approval)
    assert texts(defaulted(crd, metadata__annotations={definition.APPROVED: "unapproved, for a test"})) == []
    built_in = "this kind is built into the cluster, which serves it already; leave the definition out"
    for plural, group in (("jobs", "batch.volcano.sh"), ("queues", "scheduling.volcano.sh")):
        crd = defaulted(samples.definition(plural, group, "Job"))
        assert texts(crd) == [f"metadata.name: Forbidden: {built_in}"]
    crd = defaulted(samples.definition("myjobs", "batch.volcano.sh", "Job"))
    found = naming.status(crd, naming.taken("batch.volcano.sh", ()), NOW)
    assert found["conditions"][0]["reason"] == "ListKindConflict"


def established(crd):
    return {**crd, "status": naming.status(crd, naming.taken("", ()), NOW)}


def test_what_decides_where_objects_lie_cannot_change():
    old = established(made())
    new = defaulted(old, spec__scope="Cluster", spec__names__kind="Other")
    assert texts(new, old) == [
        'spec.scope: Invalid value: "Cluster": field is immutable',
        'spec.names.kind: Invalid value: "Other": field is immutable',
    ]
    new = defaulted(old, spec__versions=[samples.version("v2")])
    told = 'status.storedVersions[0]: Invalid value: "v1": missing from spec.versions; v1 was'
    assert texts(new, old)[0].startswith(told)
    again = naming.status(old, naming.taken("stable.example.com", ()), NOW + 5000)
    assert again == old["status"], "the times are those of changes"


def test_names_that_others_have_are_not_given_twice():
    first = established(made(spec__names__shortNames=["ct"]))
    second = defaulted(samples.definition("others", kind="Other", shortNames=["ct"]))
    second["status"] = naming.status(second, naming.taken("stable.example.com", [first]), NOW)
    conditions = {c["type"]: (c["status"], c["reason"]) for c in second["status"]["conditions"]}
    assert conditions == {"NamesAccepted": ("False", "ShortNamesConflict"), "Established": ("False", "NotAccepted")}
    assert second["status"]["conditions"][0]["message"] == '"ct" is already in use'
    assert kinds.resource_of(second) == []
    free = naming.status(second, naming.taken("stable.example.com", []), NOW)
    assert kinds.resource_of({**second, "status": free})[0].short_names == ("ct",)


def test_each_version_is_a_resource_with_what_it_says_and_objects_lie_in_one():
    old, new = samples.version("v1beta1", storage=False, deprecated=True), samples.version("v1")
    versions = [old, new, samples.version("v1alpha1", storage=False, served=False)]
    found = kinds.resource_of(established(made(spec__versions=versions)))
    assert [(one.version, one.storage) for one in found] == [("v1beta1", False), ("v1", True)]
    assert {one.id for one in found} == {"crontabs.stable.example.com"}
    assert found[0].deprecation == "stable.example.com/v1beta1 CronTab is deprecated"
    (found,) = kinds.resource_of(established(defaulted(samples.CRON_TAB)))
    assert [column.name for column in found.columns] == ["Name", "Spec", "Replicas", "Age"]
    assert [part.name for part in found.parts] == ["scale", "status"]
    assert (found.short_names, found.categories, found.fields) == (("ct",), ("all",), ("spec.image",))


def test_nothing_is_created_of_a_kind_that_goes():
    crd = defaulted(established(made()), metadata__deletionTimestamp="2026-01-01T00:00:00Z")
    (found,) = kinds.resource_of(crd)
    assert {"create", "update"} & set(found.verbs) == {"update"}


KEYS = st.sampled_from(
    ["type", "properties", "items", "anyOf", "not", "default", "enum", "required", "nullable", "pattern", "a", "metadata",
     "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-validations", "x-kubernetes-embedded-resource",
     "additionalProperties", "minimum", "allOf", "x-kubernetes-preserve-unknown-fields"]
)  # fmt: skip
WORDS = st.sampled_from(["object", "array", "string", "integer", "map", "set", "a", "(", ""])
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=25,
)


@examples(100)
@given(st.dictionaries(KEYS, ANY, max_size=6), st.dictionaries(st.sampled_from(["spec", "metadata", "status"]), ANY))
def test_any_schema_and_any_definition_is_judged_without_an_error(schema, parts):
    definition.check(made(spec__versions__0__schema={"openAPIV3Schema": {"type": "object", **schema}}), None)
    definition.default(parts)
    definition.check(parts, None)
    naming.status(parts, naming.taken("x", [parts]), NOW)


# Definitions that are much work: refused, or done in a bounded number of steps.


def causes(schema, versions=1):
    given = [{**samples.version(schema=schema), "name": f"v{n + 1}", "storage": n == 0} for n in range(versions)]
    return texts(made(spec__versions=given))


def test_defaults_inside_each_other_are_checked_with_one_tree(monkeypatch):
    schema = objects(a=TEXT)
    for _ in range(30):
        schema = {**objects(a=schema), "default": {}}
    made = []
    compiled = nodes.compiled
    monkeypatch.setattr(nodes, "compiled", lambda one: (made.append(one), compiled(one))[1])
    monkeypatch.setattr(schemas, "compiled", nodes.compiled)
    assert causes(objects(spec=schema)) == []
    assert len(made) < 40


def test_defaults_have_the_steps_of_one_check_together():
    choice = {"type": "array", "items": {**TEXT, "anyOf": [{"pattern": f"^{n}$"} for n in range(20)]}}
    many = {f"p{n}": {**choice, "default": ["19"] * 100} for n in range(100)}
    assert causes(objects(p=many["p1"])) == []
    assert "too large or too deep" in causes(objects(**many))[0]


def test_patterns_are_weighed_together():
    patterns.compiled.cache_clear()
    large = {f"p{n}": {**TEXT, "pattern": f"(a{n}|b){{1,500}}"} for n in range(4000)}
    assert "patterns" in causes(objects(**large))[0]
    assert patterns.compiled.cache_info().misses < 400


KEYED = samples.keyed(*(f"k{n}" for n in range(10_000)), items=objects(k=TEXT))


@cases("schema, versions, told", {
    "schemas": (objects(**{f"p{n}": TEXT for n in range(schemas.MOST_SCHEMAS)}), 1, "more than 10,000 schemas"),
    "versions": (objects(a=TEXT), definition.MOST_VERSIONS + 1, "spec.versions: Too many: 101"),
    "map keys": (objects(a=KEYED), 1, "x-kubernetes-list-map-keys: Too many: 10000"),
})  # fmt: skip
def test_too_much_of_something_is_refused_in_a_word(schema, versions, told):
    (cause,) = causes(schema, versions)
    assert told in cause
    error = Invalid.of("A", "a", [required(f"f{n}") for n in range(1000)])
    assert len(error.causes) == MOST_CAUSES
    assert error.message.endswith("f255: Required value, and 744 more]"), "the first of many causes"
