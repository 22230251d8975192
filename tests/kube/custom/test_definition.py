"""Definitions: which are right, what is wrong with the others, which names they get."""

from __future__ import annotations

from copy import deepcopy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kube.custom import definition, kinds, naming
from tests.campaign import examples
from tests.kube.custom import samples
from tests.tables import cases

NOW = 1_700_000_000_000


def made(**changes):
    crd = samples.definition()
    for path, value in changes.items():
        target = crd
        *way, last = path.split("__")
        for key in way:
            target = target[int(key)] if isinstance(target, list) else target[key]
        target[int(last) if isinstance(target, list) else last] = value
    definition.default(crd)
    return crd


def with_schema(**properties):
    return made(spec__versions=[samples.version(schema={"type": "object", "properties": properties})])


def texts(crd, old=None):
    return [str(cause) for cause in definition.check(crd, old)]


@pytest.mark.parametrize("name", samples.ALL)
def test_definitions_of_well_known_projects_are_right(name):
    crd = deepcopy(samples.ALL[name])
    definition.default(crd)
    assert texts(crd) == []


LABEL = "a DNS-1035 label must consist of"
AT = "spec.versions[0].schema.openAPIV3Schema"


@cases("crd, expected", {
    "name": (made(metadata__name="x.y"),
        'metadata.name: Invalid value: "x.y": must be spec.names.plural+"."+spec.group'),
    "scope": (made(spec__scope="Galaxy"),
        'spec.scope: Unsupported value: "Galaxy": supported values: "Cluster", "Namespaced"'),
    "kind": (made(spec__names__kind="cron tab", spec__names__listKind="L"),
        'spec.names.kind: Invalid value: "cron tab": may have mixed case, but should otherwise match: ' + LABEL),
    "short name": (made(spec__names__shortNames=["C T"]), 'spec.names.shortNames[0]: Invalid value: "C T": ' + LABEL),
    "version name": (made(spec__versions=[samples.version("V1")]),
        'spec.versions[0].name: Invalid value: "V1": ' + LABEL),
    "no storage version": (made(spec__versions=[samples.version(storage=False)]),
        'spec.versions: Invalid value: ["v1"]: must have exactly one version marked as storage version'),
    "twice one version": (made(spec__versions=[samples.version(), samples.version(storage=False)]),
        'spec.versions: Invalid value: ["v1", "v1"]: must contain unique version names'),
    "no schema": (made(spec__versions__0__schema={}), AT + ": Required value"),
    "webhook": (made(spec__conversion={"strategy": "Webhook"}),
        'spec.conversion.strategy: Invalid value: "Webhook": this cluster does not call conversion webhooks'),
    "preserve": (made(spec__preserveUnknownFields=True),
        "spec.preserveUnknownFields: Invalid value: true: cannot set to true"),
    "scale": (made(spec__versions__0__subresources={"scale": {"specReplicasPath": ".status.x", "statusReplicasPath": ".status.y"}}),
        'spec.versions[0].subresources.scale.specReplicasPath: Invalid value: ".status.x": should be a json path under .spec'),
    "column": (made(spec__versions__0__additionalPrinterColumns=[{"name": "A", "type": "text", "jsonPath": ".a"}]),
        'spec.versions[0].additionalPrinterColumns[0].type: Invalid value: "text": must be one of boolean,date,integer,number,string'),
    "selectable": (made(spec__versions__0__selectableFields=[{"jsonPath": ".spec"}]),
        'spec.versions[0].selectableFields[0].jsonPath: Invalid value: ".spec": must point to a field of type string, boolean or integer.'),
    "deprecation": (made(spec__versions__0__deprecationWarning="old"),
        'spec.versions[0].deprecationWarning: Invalid value: "old": can only be set for deprecated versions'),
    "untyped field": (with_schema(a={}),
        AT + ".properties[a].type: Required value: must not be empty for specified object fields"),
    "type": (with_schema(a={"type": "list"}),
        AT + '.properties[a].type: Unsupported value: "list": supported values: "array", "boolean", "integer", "number", "object", "string"'),
    "array": (with_schema(a={"type": "array"}), AT + ".properties[a].items: Required value: must be specified"),
    "type in anyOf": (with_schema(a={"type": "string", "anyOf": [{"type": "string"}]}),
        AT + ".properties[a].anyOf[0].type: Forbidden: must be empty to be structural"),
    "incomplete": (
        made(spec__versions__0__schema={"openAPIV3Schema": {"type": "object", "oneOf": [{"properties": {"b": {}}}]}}),
        AT + f".properties[b]: Required value: because it is defined in {AT}.oneOf[0].properties[b]"),
    "pattern": (with_schema(a={"type": "string", "pattern": "("}),
        AT + '.properties[a].pattern: Invalid value: "(": must be a valid regular expression, but isn\'t:'),
    "default": (with_schema(a={"type": "integer", "default": "x"}),
        AT + '.properties[a].default: Invalid value: "string":'),
    "default with unknown fields": (with_schema(a={"type": "object", "default": {"b": 1}}),
        AT + '.properties[a].default: Invalid value: {"b": 1}: must not have unknown fields'),
    "keyword of a wrong type": (with_schema(a={"type": "integer", "minimum": "1"}),
        AT + '.properties[a].minimum: Invalid value: "1": must be of type number'),
    "ref": (with_schema(a={"$ref": "#/x", "type": "string"}),
        AT + ".properties[a].$ref: Forbidden: $ref is not supported"),
    "unique": (with_schema(a={"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
        AT + ".properties[a].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic"),
    "metadata": (with_schema(metadata={"type": "object", "properties": {"labels": {"type": "object"}}}),
        AT + ".properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified"),
})  # fmt: skip
def test_what_is_wrong_is_told_in_kubernetes_words(crd, expected):
    found = texts(crd)
    assert any(text.startswith(expected) for text in found), found


@pytest.mark.parametrize("plural", ["jobs", "queues"])
def test_kind_that_is_built_in_cannot_be_defined_again(plural):
    group = {"jobs": "batch.volcano.sh", "queues": "scheduling.volcano.sh"}[plural]
    crd = samples.definition(plural, group, "Job")
    definition.default(crd)
    assert texts(crd) == [
        "metadata.name: Forbidden: this kind is built into the cluster, which serves it already; leave the definition out"
    ]


def test_groups_of_kubernetes_need_an_approval():
    crd = samples.definition(group="things.k8s.io")
    definition.default(crd)
    assert texts(crd)[0].startswith(
        "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups"
    )
    crd["metadata"]["annotations"] = {definition.APPROVED: "unapproved, for a test"}
    assert texts(crd) == []


def established(crd):
    crd = deepcopy(crd)
    crd["status"] = naming.status(crd, naming.taken("", ()), NOW)
    return crd


def test_what_decides_where_objects_lie_cannot_change():
    old = established(made())
    new = deepcopy(old)
    new["spec"]["scope"] = "Cluster"
    new["spec"]["names"]["kind"] = "Other"
    assert texts(new, old) == [
        'spec.scope: Invalid value: "Cluster": field is immutable',
        'spec.names.kind: Invalid value: "Other": field is immutable',
    ]


def test_version_in_which_objects_may_lie_stays():
    old = established(made())
    new = deepcopy(old)
    new["spec"]["versions"] = [samples.version("v2")]
    assert texts(new, old)[0].startswith(
        'status.storedVersions[0]: Invalid value: "v1": missing from spec.versions; v1 was'
    )


def test_names_that_others_have_are_not_given_twice():
    first = established(made(spec__names__shortNames=["ct"]))
    second = samples.definition("others", kind="Other", shortNames=["ct"])
    definition.default(second)
    second["status"] = naming.status(second, naming.taken("stable.example.com", [first]), NOW)
    conditions = {c["type"]: (c["status"], c["reason"]) for c in second["status"]["conditions"]}
    assert conditions == {"NamesAccepted": ("False", "ShortNamesConflict"), "Established": ("False", "NotAccepted")}
    assert second["status"]["conditions"][0]["message"] == '"ct" is already in use'
    assert kinds.resource_of(second) == []
    free = naming.status(second, naming.taken("stable.example.com", []), NOW)
    assert kinds.resource_of({**second, "status": free})[0].short_names == ("ct",)


def test_kind_of_a_built_in_group_is_taken():
    crd = samples.definition("myjobs", "batch.volcano.sh", "Job")
    definition.default(crd)
    found = naming.status(crd, naming.taken("batch.volcano.sh", ()), NOW)
    assert found["conditions"][0]["reason"] == "ListKindConflict"


def test_status_stays_the_same_when_nothing_changes():
    crd = established(made())
    assert naming.status(crd, naming.taken("stable.example.com", ()), NOW + 5000) == crd["status"]


def test_each_version_is_a_resource_and_objects_lie_in_one():
    versions = [
        samples.version("v1beta1", storage=False, deprecated=True),
        samples.version("v1"),
        samples.version("v1alpha1", storage=False, served=False),
    ]
    found = kinds.resource_of(established(made(spec__versions=versions)))
    assert [(one.version, one.storage) for one in found] == [("v1beta1", False), ("v1", True)]
    assert {one.id for one in found} == {"crontabs.stable.example.com"}
    assert found[0].deprecation == "stable.example.com/v1beta1 CronTab is deprecated"


def test_resource_has_what_the_definition_says():
    crd = deepcopy(samples.CRON_TAB)
    definition.default(crd)
    (found,) = kinds.resource_of(established(crd))
    assert [column.name for column in found.columns] == ["Name", "Spec", "Replicas", "Age"]
    assert [part.name for part in found.parts] == ["scale", "status"]
    assert (found.short_names, found.categories, found.fields) == (("ct",), ("all",), ("spec.image",))


def test_nothing_is_created_of_a_kind_that_goes():
    crd = established(made())
    crd["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert "create" not in kinds.resource_of(crd)[0].verbs
    assert "update" in kinds.resource_of(crd)[0].verbs


def test_rules_in_cel_are_warned_of():
    assert "not evaluated" in definition.warnings(samples.WORKLOAD)[0]
    assert definition.warnings(samples.CRON_TAB) == []


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
@given(st.dictionaries(KEYS, ANY, max_size=6))
def test_any_schema_is_judged_without_an_error(schema):
    crd = made(spec__versions__0__schema={"openAPIV3Schema": {"type": "object", **schema}})
    definition.check(crd, None)


@settings(max_examples=60)
@given(st.dictionaries(st.sampled_from(["spec", "metadata", "status"]), ANY, max_size=3))
def test_any_definition_is_judged_without_an_error(crd):
    definition.default(crd)
    definition.check(crd, None)
    naming.status(crd, naming.taken("x", [crd]), NOW)
