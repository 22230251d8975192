"""Kinds that people define: definitions that are right or wrong, objects against their schema, and Volcano's own definitions."""

import io
import time
from copy import deepcopy

import msgspec
import pytest
import yaml
from django.core.management import call_command
from hypothesis import given, settings
from hypothesis import strategies as st

from kube import definitions, patterns
from kube.custom import definition, kinds, manifests, naming, nodes, schemas, structural
from kube.custom.structural import Structural
from kube.errors import MAX_CAUSES, Invalid, required
from kube.patch import merge
from kube.resources import JOBS
from proof.systems.system import PROJECT
from tests.campaign import examples
from tests.kube import samples
from tests.kube.samples import INTEGER, TEXT, TEXTS, json_values, objects
from tests.kubernetes.manifests import jobs
from tests.tables import cases, parts
from volcano_ui.management.commands.crds import KINDS

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
    found = naming.status(crd, naming.names_in_use("batch.volcano.sh", ()), NOW)
    assert found["conditions"][0]["reason"] == "ListKindConflict"


def established(crd):
    return {**crd, "status": naming.status(crd, naming.names_in_use("", ()), NOW)}


def test_what_decides_where_objects_lie_cannot_change():
    old = established(made())
    new = defaulted(old, spec__scope="Cluster", spec__names__kind="Other")
    assert texts(new, old) == [
        'spec.scope: Invalid value: "Cluster": field is immutable',
        'spec.names.kind: Invalid value: "Other": field is immutable',
    ]
    new = defaulted(old, spec__versions=[samples.version("v2")])
    message = 'status.storedVersions[0]: Invalid value: "v1": missing from spec.versions; v1 was'
    assert texts(new, old)[0].startswith(message)
    again = naming.status(old, naming.names_in_use("stable.example.com", ()), NOW + 5000)
    assert again == old["status"], "the times are those of changes"


def test_names_that_others_have_are_not_given_twice():
    first = established(made(spec__names__shortNames=["ct"]))
    second = defaulted(samples.definition("others", kind="Other", shortNames=["ct"]))
    second["status"] = naming.status(second, naming.names_in_use("stable.example.com", [first]), NOW)
    conditions = {c["type"]: (c["status"], c["reason"]) for c in second["status"]["conditions"]}
    assert conditions == {"NamesAccepted": ("False", "ShortNamesConflict"), "Established": ("False", "NotAccepted")}
    assert second["status"]["conditions"][0]["message"] == '"ct" is already in use'
    assert kinds.resource_of(second) == []
    free = naming.status(second, naming.names_in_use("stable.example.com", []), NOW)
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
    (goes,) = kinds.resource_of(defaulted(established(made()), metadata__deletionTimestamp="2026-01-01T00:00:00Z"))
    assert {"create", "update"} & set(goes.verbs) == {"update"}, "nothing is created of a kind that goes"


KEYS = st.sampled_from(
    ["type", "properties", "items", "anyOf", "not", "default", "enum", "required", "nullable", "pattern", "a", "metadata",
     "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-validations", "x-kubernetes-embedded-resource",
     "additionalProperties", "minimum", "allOf", "x-kubernetes-preserve-unknown-fields"]
)  # fmt: skip
WORDS = st.sampled_from(["object", "array", "string", "integer", "map", "set", "a", "(", ""])
ANY = json_values(KEYS, st.none() | st.booleans() | st.integers() | WORDS, 25)


@examples(100)
@given(st.dictionaries(KEYS, ANY, max_size=6), st.dictionaries(st.sampled_from(["spec", "metadata", "status"]), ANY))
def test_any_schema_and_any_definition_is_judged_without_an_error(schema, parts):
    definition.check(made(spec__versions__0__schema={"openAPIV3Schema": {"type": "object", **schema}}), None)
    definition.default(parts)
    definition.check(parts, None)
    naming.status(parts, naming.names_in_use("x", [parts]), NOW)


# Definitions that are much work: refused, or done in a bounded number of steps.


def refusals(schema, versions=1):
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
    assert refusals(objects(spec=schema)) == []
    assert len(made) < 40


def test_defaults_have_the_steps_of_one_check_together_and_patterns_are_weighed_together():
    choice = {"type": "array", "items": {**TEXT, "anyOf": [{"pattern": f"^{n}$"} for n in range(20)]}}
    many = {f"p{n}": {**choice, "default": ["19"] * 100} for n in range(100)}
    assert refusals(objects(p=many["p1"])) == []
    assert "too large or too deep" in refusals(objects(**many))[0]
    patterns.compiled.cache_clear()
    large = {f"p{n}": {**TEXT, "pattern": f"(a{n}|b){{1,500}}"} for n in range(4000)}
    assert "patterns" in refusals(objects(**large))[0]
    assert patterns.compiled.cache_info().misses < 400


KEYED = samples.keyed(*(f"k{n}" for n in range(10_000)), items=objects(k=TEXT))


@cases("schema, versions, message", {
    "schemas": (objects(**{f"p{n}": TEXT for n in range(schemas.MAX_SCHEMAS)}), 1, "more than 10,000 schemas"),
    "versions": (objects(a=TEXT), definition.MAX_VERSIONS + 1, "spec.versions: Too many: 101"),
    "map keys": (objects(a=KEYED), 1, "x-kubernetes-list-map-keys: Too many: 10000"),
})  # fmt: skip
def test_too_much_of_something_is_refused_in_a_word(schema, versions, message):
    (cause,) = refusals(schema, versions)
    assert message in cause
    error = Invalid.of("A", "a", [required(f"f{n}") for n in range(1000)])
    assert len(error.causes) == MAX_CAUSES
    assert error.message.endswith("f255: Required value, and 744 more]"), "the first of many causes"


OBJECT = {"apiVersion": "g.io/v1", "kind": "K", "metadata": {"name": "x"}}


def structured(**properties):
    return Structural(objects(**properties))


def causes(schema, old=None, **fields):
    return [str(cause) for cause in structural.check(schema, {**OBJECT, **fields}, old)]


# Texts as kube-apiserver 1.34 gives them.
@parts("kube/structural", "values")
def test_value_is_refused_in_kubernetes_words(part):
    def refused(text):
        schema, value = map(yaml.safe_load, text.split(" + "))
        return causes(structured(a=schema), a=value)

    part.check(refused)


def test_what_was_wrong_before_may_stay():
    schema = structured(spec=objects(a={**INTEGER, "maximum": 3}, b=TEXT))
    old = {**OBJECT, "spec": {"a": 5, "b": "x"}}
    assert causes(schema, old, spec={"a": 5, "b": "y"}) == []
    assert len(causes(schema, old, spec={"a": 6, "b": "y"})) == 1
    assert len(causes(schema, old, spec={"a": 5, "b": 1})) == 1


def shaped(schema, **fields):
    obj = {**deepcopy(OBJECT), **deepcopy(fields)}
    unknown = structural.unknown_fields(schema, obj)
    dropped = structural.shape(schema, obj)
    assert unknown == dropped
    return {key: value for key, value in obj.items() if key not in OBJECT}, dropped


@parts("kube/structural", "shapes")
def test_object_gets_the_shape_of_its_schema(part):
    """Behind the arrow stand what is kept and the paths of what is dropped."""

    def shapes(text):
        properties, obj = map(yaml.safe_load, text.split(" + "))
        return list(shaped(structured(**properties), **obj))

    part.check(shapes)
    schema = structured(a={**TEXTS, "default": ["x"]})
    shaped(schema)[0]["a"].append("y")
    assert shaped(schema)[0] == {"a": ["x"]}, "defaults are not shared"
    obj = {**OBJECT, "metadata": {"name": "x", "lables": {}}, "spce": {}}
    assert structural.unknown_fields(structured(spec=objects()), obj) == ["spce", "metadata.lables"]


FIELDS = st.sampled_from(["spec", "status", "cronSpec", "replicas", "podSets", "x", "type"])
NUMBERS = st.integers(-(2**63), 2**63) | st.floats(allow_nan=False)
JSON = json_values(FIELDS, st.none() | st.booleans() | NUMBERS | st.text(max_size=5), 20)
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
    found, obj = structured(spec=schema, x={"allOf": [schema]}), {**deepcopy(OBJECT), **fields}
    structural.check(found, obj)
    structural.shape(found, obj)


def test_pattern_that_would_run_for_ever_elsewhere_is_quick_and_what_multiplies_is_given_up():
    schema = structured(a={**TEXT, "pattern": "^(a+)+$"})
    begun = time.thread_time()
    assert len(causes(schema, a="a" * 100_000 + "!")) == 1
    assert time.thread_time() - begun < 2
    alternatives = [{"properties": {"x": {"enum": [n]}}} for n in range(2000)]
    schema = structured(a={"type": "array", "items": {**objects(x=INTEGER), "anyOf": alternatives}})
    begun = time.thread_time()
    found = causes(schema, a=[{"x": -1}] * 20_000)
    assert time.thread_time() - begun < 5
    assert any("too large or too deep" in text for text in found)


FOLDER = PROJECT / "deploy" / "kubernetes" / "crds"
BUILT_IN = "metadata.name"  # our own server has these kinds, and says so there


def copied(obj):
    return msgspec.json.decode(msgspec.json.encode(obj))


def schema_of(kind):
    (version,) = manifests.manifest(kind)["spec"]["versions"]
    return Structural(version["schema"]["openAPIV3Schema"])


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_definition_is_one_that_an_api_server_accepts_and_has_every_field_of_its_kind(kind):
    def check(name, node, path):
        for field, schema in definitions.properties(name).items():
            inner = node.child(field)
            assert inner is not None, f"{path}.{field}"
            part = definitions.part(name, field)
            if part and part.startswith("sh.volcano.") and not inner.preserve:
                check(part, inner.items if schema.get("type") == "array" else inner, f"{path}.{field}")

    causes = definition.check(copied(manifests.manifest(kind)), None)
    assert [str(cause) for cause in causes if cause.field != BUILT_IN] == []
    check(definitions.of(kind), schema_of(kind).node, kind.kind)


def test_nothing_that_people_write_is_dropped_and_what_nobody_knows_is():
    schema = schema_of(JOBS)
    found = jobs()
    assert len(found) > 20
    for name, job in found.items():
        shaped = copied(job)
        assert structural.shape(schema, shaped) == [], name
        assert [str(cause) for cause in structural.check(schema, shaped)] == [], name
    job = {"spec": {"tasks": [{"replica": 1, "replicas": 2}]}}
    assert structural.shape(schema, job) == ["spec.tasks[0].replica"]
    assert job == {"spec": {"tasks": [{"replicas": 2}]}}


def test_list_whose_items_may_lack_their_key_is_one_value():
    found = schema_of(JOBS)
    for field in ("spec", "tasks", "template", "spec", "containers"):
        found = found.get("items", found)["properties"][field]
    assert (found["x-kubernetes-list-type"], found["x-kubernetes-list-map-keys"]) == ("map", ["name"])
    ports = found["items"]["properties"]["ports"]  # by port and protocol, of which the second has a default
    assert ports["x-kubernetes-list-type"] == "atomic"
    assert "x-kubernetes-list-map-keys" not in ports


def test_command_prints_what_the_files_hold():
    printed = io.StringIO()
    call_command("crds", stdout=printed)
    files = {file.name: file.read_text() for file in FOLDER.glob("*.yaml")}
    found = dict(zip((f"{kind.id}.yaml" for kind in KINDS), printed.getvalue().split("---\n"), strict=True))
    assert found == files, "run manage.py crds --directory deploy/kubernetes/crds"
