from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kube import apply
from kube.apply import fieldset, merge, shape
from kube.errors import BadRequest, Conflict
from tests.campaign import examples

from .things import LATER, NOW, THINGS, Step, content, run, take, thing

SHAPE = shape.of(THINGS)
texts = st.sampled_from(["x", "y", "z"])
numbers = st.integers(0, 3)
sets = st.lists(texts, unique=True, max_size=3)
items = st.fixed_dictionaries(
    {"name": texts}, optional={"value": numbers, "more": sets, "labels": st.dictionaries(texts, texts, max_size=2)}
)  # fmt: skip
ports = st.fixed_dictionaries({"port": numbers}, optional={"protocol": st.sampled_from(["TCP", "UDP"]), "name": texts})
values = st.recursive(texts | numbers | st.booleans() | st.none(), lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2), max_leaves=6)  # fmt: skip
bodies = st.fixed_dictionaries(
    {},
    optional={
        "text": texts,
        "number": numbers | st.none(),
        "struct": st.fixed_dictionaries({}, optional={"name": texts, "value": numbers}) | st.none(),
        "map": st.dictionaries(texts, texts, max_size=3),
        "mapOfMaps": st.dictionaries(texts, st.dictionaries(texts, texts, max_size=2), max_size=2),
        "mapOfSets": st.dictionaries(texts, sets, max_size=2),
        "set": sets,
        "list": st.lists(items, unique_by=lambda item: item["name"], max_size=3),
        "ports": st.lists(ports, unique_by=lambda port: (port["port"], port.get("protocol", "TCP")), max_size=3),
        "plainList": st.lists(texts, max_size=2),
        "atomicMap": st.dictionaries(texts, texts, max_size=2),
        "free": values,
    },
)  # fmt: skip
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
    assert take(once, Step(manager, body, "apply"), LATER) == once


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
    obj = take(live, Step(manager, body, "update"))
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
    forced, told = take(live, Step(manager, body, "force")), set()
    try:
        assert take(live, Step(manager, body)) == forced
    except Conflict as caught:
        told = {cause.field for cause in caught.causes}
    others = {whose: fields for whose, fields in sets_of(live).items() if whose != (manager, "Apply")}
    lost = [fieldset.difference(fields, sets_of(forced).get(whose, {})) for whose, fields in others.items()]
    assert told <= {fieldset.text(path) for fields in lost for path in fieldset.paths(fields)}


KEYS = st.sampled_from(["name", "port", "protocol", "x"])
anything = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 2) | st.sampled_from(["", "x", "y"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
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
