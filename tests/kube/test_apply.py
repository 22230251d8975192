"""What becomes of objects and their managers: the cases of Kubernetes' documentation and of its merge library, and laws."""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass, replace
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kube import apply, resources
from kube.apply import fieldset, kubectl, merge, shape
from kube.apply.fieldset import FieldsError
from kube.errors import BadRequest, Conflict, Invalid
from tests.campaign import examples
from tests.kube.samples import deep, json_values, objects
from tests.tables import GOLDEN, cases, parts

NOW = 1_760_000_000_000
LATER = NOW + 60_000
NAMES = {"group": "example.org", "kind": "Thing", "plural": "things", "singular": "thing", "short_names": ()}
SCHEMA = yaml.safe_load((GOLDEN / "kube/things.yaml").read_text())
THINGS = replace(resources.CONFIGMAPS, **NAMES, status_subresource=True, schema=SCHEMA)
HOW = {"!": "force", "=": "update"}


def thing(metadata: dict[str, Any] | None = None, **parts):
    metadata = {"name": "x", "namespace": "default", **(metadata or {})}
    return {"apiVersion": "example.org/v1", "kind": "Thing", "metadata": metadata, **parts}


@dataclass
class Step:
    """What a manager does: in text `a {text: x}` is an apply, `a!` one by force, `a=` a PUT, `a/status=` one of the status."""

    manager: str
    parts: dict[str, Any]
    how: str = "apply"
    subresource: str = ""


def step(text):
    who, fields = text.strip().split(" ", 1)
    manager, _, subresource = who.rstrip("!=").partition("/")
    return Step(manager, yaml.safe_load(fields), HOW.get(who[-1], "apply"), subresource)


def take(live, done, now=NOW, resource=THINGS):
    done = step(done) if isinstance(done, str) else done
    options = {"manager": done.manager, "subresource": done.subresource, "now": now}
    if done.how == "update":
        obj = {**live, **done.parts} if done.subresource else thing(**done.parts)
        return apply.track(live, obj, resource, **options)
    return apply.apply(live, thing(**done.parts), resource, force=done.how == "force", **options)


def run(steps):
    """Return the object after several, as `a {text: x}; u= {text: y}`."""
    live = None
    for each in steps.split("; ") if isinstance(steps, str) else steps:
        live = take(live, each)
    return live


def content(obj):
    return {key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "metadata")}


def owned(obj):
    """Return {manager: [paths]}; the manager's name says the subresource too."""
    found = {}
    for entry in obj["metadata"].get("managedFields", ()):
        who = entry["manager"] + (f"/{entry['subresource']}" if "subresource" in entry else "")
        name = who if who not in found else f"{who} {entry['operation']}"
        found[name] = [fieldset.text(path) for path in fieldset.paths(entry["fieldsV1"])]
    return found


A = {"name": "a"}


@parts("kube/apply", "managers share an object")
def test_managers_share_an_object(part):
    """Behind the arrow stand what the object is then, and which fields each manager has."""

    def shared(text):
        obj = run(text)
        assert obj["metadata"]["name"] == "x"
        return [content(obj), {who: " ".join(paths) for who, paths in owned(obj).items()}]

    part.check(shared)


@parts("kube/apply", "conflicts")
def test_what_others_manage_is_not_changed_unasked(part):
    def refused(text):
        before, _, text = text.rpartition("; ")
        live, last = run(before), step(text)
        with pytest.raises(Conflict) as caught:
            take(live, last)
        message = caught.value.message
        assert [cause.field for cause in caught.value.causes] == re.findall(r"(?:- |: )(\.\S+)$", message, re.MULTILINE)
        assert {cause.reason for cause in caught.value.causes} == {"FieldManagerConflict"}
        last.how = "force"
        forced = take(live, last)
        assert owned(forced)["a"]
        assert owned(take(forced, last)) == owned(forced)
        return message.replace("\n", " ")

    part.check(refused)


def test_a_conflict_over_the_status_names_the_subresource():
    live, wish = run("a {text: x}; kubelet/status= {status: {phase: A}}"), step("a/status {status: {phase: B}}")
    with pytest.raises(Conflict, match=r'"kubelet" with subresource "status" using example\.org/v1: \.status\.phase'):
        take(live, wish)
    forced = take(live, replace(wish, how="force"))
    assert (owned(forced)["a/status"], owned(forced)["a"]) == ([".status.phase"], [".text"])


@cases("config, error, words", {
    "managedFields": (thing({"managedFields": []}), BadRequest, "managedFields must be nil"),
    "version": ({**thing(), "apiVersion": "v1"}, BadRequest, "Incorrect version"),
    "metadata": ({**thing(), "metadata": 1}, BadRequest, "metadata must be an object"),
    "an item twice": (thing(list=[A, A]), BadRequest,
        'failed to create typed patch object (default/x; example.org/v1, Kind=Thing): .list: duplicate' ' entries for key [name="a"]'),
    "an item without key": (thing(list=[{"value": 1}]), BadRequest, ".list: element 0: associative list"),
    "null among items": (thing(list=[A, None]), BadRequest, ".list: element 1:"),
    "no value": (thing(set=[{}]), BadRequest, ".set: element 0: a set holds plain values"),
})  # fmt: skip
def test_what_cannot_be_applied(config, error, words):
    for live in (None, run("u= {text: x}")):
        with pytest.raises(error) as caught:
            apply.apply(live, config, THINGS, manager="a", now=NOW)
        assert words in caught.value.message


def test_applying_takes_a_manager_and_no_depth_or_length_is_too_much():
    with pytest.raises(Invalid, match="fieldManager: Required value"):
        take(None, Step("", {}))
    with pytest.raises(BadRequest, match="nested too deeply"):
        take(None, Step("a", {"free": deep(100_000)}))
    names = [str(number) for number in range(20_000)]
    assert take(run([Step("u", {"set": names}, "update")]), Step("a", {"set": names[::-1]}))["set"] == names[::-1]


def test_what_nobody_is_known_to_manage_was_there_before_the_first_apply_also_that_of_a_version_that_is_gone():
    live = thing(text="x", number=1, status={"phase": "A"})
    obj = take(live, "a {text: x}")
    assert owned(obj) == {"a": [".text"], "before-first-apply": [".number", ".text"]}
    with pytest.raises(Conflict, match="before-first-apply"):
        take(live, "a {text: y}")
    live = run("a {text: x, number: 1}")
    entry = {**live["metadata"]["managedFields"][0], "apiVersion": "example.org/v1alpha1"}
    obj = take(managed(live, entry), "b! {text: y}")
    assert owned(obj) == {"b": [".text"], "before-first-apply": [".number"]}
    assert content(obj) == {"text": "y", "number": 1}


def test_an_apply_keeps_what_only_the_server_writes():
    notes = {"ui.volcano.sh/created-by": "eve", "a": "1"}
    live = thing({"uid": "u", "resourceVersion": "7", "annotations": notes, "generation": 3}, status={"phase": "A"})
    wish = thing({"annotations": {"ui.volcano.sh/created-by": "mallory"}}, text="x", status={"phase": "B"})
    obj = apply.apply(live, wish, THINGS, manager="a", now=NOW)
    assert obj["status"] == {"phase": "A"}
    assert {key: obj["metadata"][key] for key in live["metadata"]} == live["metadata"]
    assert owned(obj)["a"] == [".text"]
    obj = apply.apply(live, thing({"resourceVersion": "6"}), THINGS, manager="a", now=NOW)
    assert obj["metadata"]["resourceVersion"] == "6", "what a configuration asks for is passed on"


def test_time_passes_only_when_something_changes():
    def times(obj):
        return {entry["manager"]: entry["time"] for entry in obj["metadata"]["managedFields"]}

    first = take(None, "a {text: x}", NOW)
    assert take(first, "a {text: x}", LATER) == first
    assert apply.track(first, first, THINGS, manager="somebody", now=LATER) == first
    joined = take(first, "b {text: x}", LATER)
    assert times(joined) == {"a": "2025-10-09T08:53:20Z", "b": "2025-10-09T08:54:20Z"}
    changed = take(joined, "b {text: x, number: 1}", LATER + 60_000)
    assert times(changed) == {"a": "2025-10-09T08:53:20Z", "b": "2025-10-09T08:55:20Z"}


def put(live, obj, manager="u", now=NOW):
    return apply.track(live, obj, THINGS, manager=manager, now=now)


def managed(live, *entries):
    """Return an object as a client sends it with these managedFields."""
    return {**live, "metadata": {**live["metadata"], "managedFields": list(entries)}}


def test_a_new_object_is_tracked_from_the_start_and_an_old_one_without_managers_is_not():
    obj = put(None, thing({"labels": {"a": "1"}, "generateName": "x-"}, text="x", status={"phase": "no"}))
    fields = {"f:metadata": {"f:labels": {".": {}, "f:a": {}}, "f:generateName": {}}, "f:text": {}}
    entry = {"manager": "u", "operation": "Update", "apiVersion": "example.org/v1", "time": "2025-10-09T08:53:20Z"}
    assert obj["metadata"]["managedFields"] == [{**entry, "fieldsType": "FieldsV1", "fieldsV1": fields}]
    assert put(thing(text="x"), thing(text="y")) == thing(text="y")
    group = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": "x"}}
    obj = apply.track(None, {**group, "status": {"phase": "A"}}, resources.POD_GROUPS, manager="m", now=NOW)
    assert owned(obj) == {"m": [".status.phase"]}, "a kind without a path for its status"


APPLIED = {"manager": "x", "operation": "Apply", "apiVersion": "example.org/v1"}
WHOLE = {**APPLIED, "fieldsType": "FieldsV1", "fieldsV1": {"f:text": {}}}


@cases("sent", {
    "left out": None,
    "without operation": {"manager": "x"},
    "without type": APPLIED,
    "with a wrong step": {**WHOLE, "fieldsV1": {"text": {}}},
    "with a number for a name": {"manager": 1},
    "with a long name": {**WHOLE, "manager": "x" * 129},
    "with a wrong time": {**WHOLE, "time": "yesterday"},
})  # fmt: skip
def test_managed_fields_that_cannot_be_read_leave_the_old_ones(sent):
    live = run("a {text: x}")
    obj = managed(live, sent) if sent is not None else thing(text="x")
    assert owned(put(live, obj)) == {"a": [".text"]}


def test_managed_fields_can_be_changed_or_forgotten_and_are_written_in_one_way():
    live = run("a {text: x}; u= {text: y}")
    for reset in ([], [{}]):
        obj = put(live, managed(live, *reset))
        assert ("managedFields" in obj["metadata"], content(obj)) == (False, {"text": "y"})
    live = run("kubectl-client-side-apply= {text: x, number: 1}")
    entry = {**live["metadata"]["managedFields"][0], "manager": "kubectl", "operation": "Apply"}
    obj = put(live, managed(live, entry), now=LATER)
    assert obj["metadata"]["managedFields"] == [entry]
    assert content(take(obj, "kubectl {text: x}")) == {"text": "x"}
    step = 'k: { "protocol" : "\\u0054CP", "port": 80 }'
    obj = put(live, managed(live, {**entry, "fieldsV1": {"f:ports": {step: {".": {}, "f:name": {}}}}}))
    written = {"f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:name": {}}}}
    assert obj["metadata"]["managedFields"][0]["fieldsV1"] == written


def test_the_oldest_of_many_updates_are_thrown_together_but_not_appliers():
    live, fields = None, {}
    for number in range(14):
        fields[f"k{number:02}"] = "x"
        live = put(live, thing(map=dict(fields)), f"m{number:02}", NOW + number * 1000)
    entries = live["metadata"]["managedFields"]
    assert [entry["manager"] for entry in entries] == ["ancient-changes", *(f"m{n:02}" for n in range(5, 14))]
    assert entries[0]["time"] == "2025-10-09T08:53:24Z"
    assert owned(live)["ancient-changes"] == [".map", *(f".map.k{n:02}" for n in range(5))]
    live = run(f"m{number:02} {{map: {{k{number}: x}}}}" for number in range(14))
    assert len(live["metadata"]["managedFields"]) == 14


def schema_with(**changes):
    return replace(THINGS, schema=objects(**{**THINGS.schema["properties"], **changes}))


def test_what_changes_its_shape_has_its_managers_still():
    granular = {**THINGS.schema["properties"]["atomicMap"], "x-kubernetes-map-type": "granular"}
    live = take(None, "a {atomicMap: {a: '1'}}", resource=schema_with(atomicMap=granular))
    assert owned(live) == {"a": [".atomicMap.a"]}
    assert owned(take(live, "a {atomicMap: {a: '2'}}")) == {"a": [".atomicMap"]}
    with pytest.raises(Conflict):
        take(live, "b {atomicMap: {a: '2'}}")
    live = take(None, "a {list: [{name: a}]}")
    obj = take(live, "a {list: [{name: b}]}", resource=schema_with(list={"type": "array"}))
    assert owned(obj) == {"a": [".list"]}


# From client-side apply to server-side apply.


def by_kubectl(last, **parts):
    return put(None, thing({"annotations": {kubectl.LAST_APPLIED: last}}, **parts), "kubectl-client-side-apply")


def test_what_client_side_apply_applied_may_be_changed_by_kubectl_and_the_annotation_follows():
    live = by_kubectl('{"apiVersion":"example.org/v1","text":"x","number":1}', text="x", number=1)
    obj = take(live, "kubectl {text: y}")
    assert content(obj) == {"text": "y", "number": 1}
    assert ".text" in owned(obj)["kubectl"]
    last = '{"apiVersion":"example.org/v1","kind":"Thing","metadata":{"name":"x","namespace":"default"},"text":"y"}\n'
    assert obj["metadata"]["annotations"][kubectl.LAST_APPLIED] == last
    with pytest.raises(Conflict):
        take(live, "flux {text: y}")
    live = by_kubectl('{"apiVersion":"example.org/v1","text":"x","number":1}', text="changed", number=1)
    with pytest.raises(Conflict) as caught:
        take(live, "kubectl {text: y, number: 2}")
    assert [cause.field for cause in caught.value.causes] == [".text"], "which was changed since"
    for odd in ("", "{", "[]", '{"apiVersion":"v2","text":"x"}', '{"apiVersion":"example.org/v1","set":[1,1]}'):
        with pytest.raises(Conflict):  # an annotation that says nothing allows nothing
            take(by_kubectl(odd, text="x"), "kubectl {text: y}")


def test_objects_that_differ_in_times_only_are_the_same():
    a, b = (take(None, "a {text: x}", now) for now in (NOW, LATER))
    assert a != b
    assert apply.same_but_times(a, b)
    assert not apply.same_but_times(a, take(b, "b! {text: y}"))
    assert not apply.same_but_times(a, take(b, "b {text: x}"))
    assert not apply.same_but_times(a, {**a, "text": "y"})
    assert apply.same_but_times(thing(), thing())


path_steps = st.sampled_from(
    ["f:a", "f:b", "f:.", "f:", 'k:{"name":"x"}', 'k:{"name":"x","port":1}', 'v:"x"', "v:1", "v:true", "i:0", "i:10"]
)  # fmt: skip
some_paths = st.sets(st.lists(path_steps, min_size=1, max_size=4).map(tuple), max_size=8)


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


@pytest.mark.parametrize(
    "sent", [{"v:" + "[" * 100_000: {}}, deep(200, key="f:a"), deep(50_000, key="f:a")], ids=["value", "deep", "deeper"]
)
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
    lists = [{"x-kubernetes-list-type": "map"}, {"x-kubernetes-list-type": "set", "items": None}]
    for poor in ({}, {"additionalProperties": True}, *({"properties": {"a": each}} for each in (True, *lists))):
        assert shape._from_schema(poor, 0).of("a"), "a poor schema is no error"


SHAPE = shape.of(THINGS)
texts = st.sampled_from(["x", "y", "z"])
numbers = st.integers(0, 3)
sets = st.lists(texts, unique=True, max_size=3)
items = st.fixed_dictionaries(
    {"name": texts}, optional={"value": numbers, "more": sets, "labels": st.dictionaries(texts, texts, max_size=2)}
)  # fmt: skip
ports = st.fixed_dictionaries({"port": numbers}, optional={"protocol": st.sampled_from(["TCP", "UDP"]), "name": texts})
values = json_values(texts, texts | numbers | st.booleans() | st.none(), 6)
struct = st.fixed_dictionaries({}, optional={"name": texts, "value": numbers})
bodies = st.fixed_dictionaries({}, optional={
    "text": texts, "number": numbers | st.none(), "struct": struct | st.none(),
    "map": st.dictionaries(texts, texts, max_size=3), "atomicMap": st.dictionaries(texts, texts, max_size=2),
    "mapOfMaps": st.dictionaries(texts, st.dictionaries(texts, texts, max_size=2), max_size=2),
    "mapOfSets": st.dictionaries(texts, sets, max_size=2),
    "set": sets, "list": st.lists(items, unique_by=lambda item: item["name"], max_size=3),
    "ports": st.lists(ports, unique_by=lambda port: (port["port"], port.get("protocol", "TCP")), max_size=3),
    "plainList": st.lists(texts, max_size=2), "free": values,
})  # fmt: skip
managers = st.sampled_from(["a", "b", "c"])
steps = st.lists(st.builds(Step, manager=managers, parts=bodies, how=st.sampled_from(["force", "update"])), max_size=5)


def history(taken):
    return run(taken) if taken else None


def sets_of(obj):
    entries = obj["metadata"].get("managedFields", ()) if obj else ()
    return {(entry["manager"], entry["operation"]): entry["fieldsV1"] for entry in entries}


def inside(fields, path):
    """Return what is managed in a field; None where it is not managed itself."""
    for step in path:
        fields = fields.get(step) if fields is not None else None
    return fields


@given(steps, managers, bodies)
@examples(100)
def test_applying_twice_is_applying_once(taken, manager, body):
    once = take(history(taken), Step(manager, body, "force"))
    twice = take(once, Step(manager, body, "apply"), LATER)
    # Where nobody owns anything, such as a map that an update emptied, all that is there was before the first apply, as in Kubernetes.
    assert twice == once if sets_of(once) else content(twice) == content(once)


@given(steps, managers, bodies)
@examples(100)
def test_after_an_apply_the_object_has_what_was_applied(taken, manager, body):
    obj = take(history(taken), Step(manager, body, "force"))
    wish = {"metadata": {}, **{key: value for key, value in body.items() if value is not None}}
    changed, _ = merge.changes({"metadata": {}, **content(obj)}, wish, SHAPE)
    claimed = merge.fields(wish, SHAPE)
    assert not fieldset.intersection(claimed, changed)


@given(bodies, bodies, managers)
@examples(100)
def test_every_field_of_a_tracked_object_has_a_manager(first, second, manager):
    live = take(None, Step("a", first, "update"))
    obj = take(live, Step(manager, second, "update"))
    everything, _ = merge.changes({"metadata": {}}, {"metadata": {}, **content(obj)}, SHAPE)
    owned = {}
    for fields in sets_of(obj).values():
        owned = fieldset.union(owned, fields)
    if "managedFields" in live["metadata"]:  # who starts from nothing is not tracked
        assert not fieldset.difference(everything, owned)


@given(steps, bodies, managers)
@examples(100)
def test_an_update_takes_from_others_what_it_changes_and_nothing_else(taken, body, manager):
    live = history(taken)
    if live is None:
        return
    before = copy.deepcopy(live)
    obj = take(live, Step(manager, body, "update"))
    take(live, Step(manager, body, "force"))
    assert live == before, "arguments stay as they are"
    changed, removed = merge.changes(content(live), content(obj), SHAPE)
    for whose, fields in sets_of(live).items():
        left = fieldset.difference(fieldset.difference(fields, changed), removed)
        now = sets_of(obj).get(whose, {})
        assert not fieldset.difference(left, now)
        if whose != (manager, "Update"):
            assert now == left


@given(bodies, bodies)
@examples(100)
def test_managers_of_different_fields_never_conflict(one, two):
    one = {key: value for key, value in one.items() if key not in two}
    live = take(take(None, Step("a", one)), Step("b", two))
    assert {**one, **two}.keys() <= content(live).keys()


@given(bodies, bodies)
@examples(100)
def test_who_takes_fields_by_force_and_omits_them_removes_them(one, two):
    live = take(take(None, Step("a", one)), Step("b", two, "force"))
    obj = take(live, Step("b", {}))
    mine, theirs = (sets_of(live).get((who, "Apply"), {}) for who in "ba")
    left, _ = merge.changes({"metadata": {}}, {"metadata": {}, **content(obj)}, SHAPE)
    gone = fieldset.difference(mine, theirs)
    leaves = [path for path in fieldset.paths(gone) if not inside(gone, path)]
    assert not [path for path in leaves if fieldset.holds(left, path) and inside(theirs, path) is None]


@given(steps, bodies, managers)
@examples(100)
def test_a_conflict_names_what_force_takes(taken, body, manager):
    live = history(taken)
    if not sets_of(live):
        return  # what nobody is known to manage belongs to no one who could lose it
    forced, conflicts = take(live, Step(manager, body, "force")), set()
    try:
        assert take(live, Step(manager, body)) == forced
    except Conflict as caught:
        conflicts = {cause.field for cause in caught.causes}
    others = {whose: fields for whose, fields in sets_of(live).items() if whose != (manager, "Apply")}
    lost = [fieldset.difference(fields, sets_of(forced).get(whose, {})) for whose, fields in others.items()]
    assert conflicts <= {fieldset.text(path) for fields in lost for path in fieldset.paths(fields)}


KEYS = st.sampled_from(["name", "port", "protocol", "x"])
anything = json_values(KEYS, st.none() | st.booleans() | st.integers(-1, 2) | st.sampled_from(["", "x", "y"]), 8)
wild = st.dictionaries(st.sampled_from([*THINGS.schema["properties"], "x"]), anything, max_size=4)


@given(wild, wild, wild)
@examples(150)
def test_no_stored_object_is_too_strange(one, two, config):
    live = apply.track(None, thing(**one), THINGS, manager="a", now=NOW)
    live = apply.track(live, thing(**two), THINGS, manager="b", now=NOW)
    try:
        obj = apply.apply(live, thing(**config), THINGS, manager="c", force=True, now=NOW)
    except BadRequest:
        return
    assert apply.apply(obj, thing(**config), THINGS, manager="c", now=LATER) == obj
