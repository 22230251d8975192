"""What becomes of objects and their managers: the cases of Kubernetes' documentation and of its merge library."""

from __future__ import annotations

from dataclasses import replace

import pytest
import yaml

from kube import apply, resources
from kube.errors import BadRequest, Conflict, Invalid
from tests.builders import pod
from tests.tables import cases

from .things import LATER, NOW, THINGS, Step, applies, content, owned, reports, run, take, thing, updates

A = {"name": "a"}
B = {"name": "b"}


def item(name, *fields):
    here = f'.list[name="{name}"]'
    return [here, f"{here}.name", *(f"{here}{field}" for field in fields)]


# What managers do, what the object is then, and which fields each has: an apply, by force with `!`, or an update with `=`.
SHARED = r"""
an applier changes its own field | a {number: 1, text: x}; a {number: 2, text: x} | {number: 2, text: x} | a .number
    .text
others' fields stay | a {text: x}; u= {text: x, number: 1}; a {text: y} | {number: 1, text: y} | a .text; u .number
what an applier omits goes | a {text: x, number: 1}; a {text: x} | {text: x} | a .text
what an applier never applied stays | u= {text: x}; a {number: 1} | {number: 1, text: x} | u .text; a .number
what another applies too stays | a {text: x}; b {text: x}; a {} | {text: x} | b .text
what an update took over stays | a {text: x}; u= {text: y}; a {} | {text: y} | u .text
the same value has two managers | a {text: x}; b {text: x} | {text: x} | a .text; b .text
an update takes a field from all | a {text: x}; b {text: x}; u= {text: z} | {text: z} | u .text
force takes a field | a {text: x, number: 1}; b! {text: y} | {text: y, number: 1} | a .number; b .text
what was taken by force goes with who took it | a {text: x}; b! {text: y}; b {} | {} |
an empty wish has no entry | a {}; a {} | {} |
an update that empties the object leaves no entry | u= {text: x}; u= {} | {} |
a struct goes as a whole | a {struct: {name: a, value: 1}}; a {} | {} |
a struct stays for the field of another | a {struct: {name: a}}; u= {struct: {name: a, value: 1}}; a {} |
    {struct: {value: 1}} | u .struct.value
an empty struct takes nothing from it but what the applier had | a {struct: {name: a}};
    u= {struct: {name: a, value: 1}}; a {struct: {}} | {struct: {value: 1}} | a .struct; u .struct.value
null says nothing about a struct that others took over | a {struct: {name: a}}; u= {struct: {name: b, value: 1}};
    a {struct: null} | {struct: {name: b, value: 1}} | a .struct; u .struct.name .struct.value
what is emptied and wanted stays empty | a {struct: {name: a}}; a {struct: null} | {struct: {}} | a .struct
a set grows | a {set: [a, c]}; a {set: [a, b, c, d]} | {set: [a, b, c, d]} | a .set[="a"] .set[="b"] .set[="c"]
    .set[="d"]
a set has the items of all in a steady order | a {set: [a, c]}; u= {set: [a, b, c, d]}; a {set: [a, x, c, y]} |
    {set: [a, b, x, c, d, y]} | a .set[="a"] .set[="c"] .set[="x"] .set[="y"]; u .set[="b"] .set[="d"]
an applier orders its items | a {set: [a, b, c, d]}; a {set: [a, d, c, b]} | {set: [a, d, c, b]} | a .set[="a"]
    .set[="b"] .set[="c"] .set[="d"]
an applier orders its items among others | a {set: [a, b]}; u= {set: [a, b, c, d]}; a {set: [b, a]} |
    {set: [b, c, d, a]} | a .set[="a"] .set[="b"]; u .set[="c"] .set[="d"]
an item that another applies stays | a {set: [a, b]}; b {set: [b, c]}; a {set: [a]} | {set: [a, b, c]} | a .set[="a"]; b
    .set[="b"] .set[="c"]
items go | a {set: [a, b, c]}; a {set: [b]} | {set: [b]} | a .set[="b"]
items with a key come, change and go | a {list: [{name: a, value: 1}, {name: b}]};
    a {list: [{name: a, value: 2}, {name: c}]} | {list: [{name: a, value: 2}, {name: c}]} | a .list[name="a"]
    .list[name="c"] .list[name="a"].name .list[name="a"].value .list[name="c"].name
of a shared item only the own part goes | a {list: [{name: a}, {name: b, more: [c]}]}; b {list: [{name: b, more: [d]}]};
    a {list: [{name: a}]} | {list: [{name: a}, {name: b, more: [d]}]} | a .list[name="a"] .list[name="a"].name; b
    .list[name="b"] .list[name="b"].name .list[name="b"].more[="d"]
and the part of who updated it stays | a {list: [{name: a}, {name: b, more: [c]}]}; b {list: [{name: b, more: [d]}]};
    u= {list: [{name: a}, {name: b, more: [c, d, e]}]}; a {list: [{name: a}]} |
    {list: [{name: a}, {name: b, more: [d, e]}]} | a .list[name="a"] .list[name="a"].name; b .list[name="b"]
    .list[name="b"].name .list[name="b"].more[="d"]; u .list[name="b"].more[="e"]
an item that nobody else has goes with what others put into it | a {list: [{name: a}, {name: b, more: [c]}]};
    u= {list: [{name: a}, {name: b, more: [c, d]}]}; a {list: [{name: a}]} | {list: [{name: a}]} | a .list[name="a"]
    .list[name="a"].name
keys of a map have managers of their own | u= {map: {a: '1', b: '2'}}; a {map: {b: '2', c: '3'}}; a {map: {c: '3'}} |
    {map: {a: '1', b: '2', c: '3'}} | u .map .map.a .map.b; a .map.c
a key of a map of maps goes with what is in it | a {mapOfMaps: {x: {y: '1'}}}; a {mapOfMaps: {z: {y: '2'}}} |
    {mapOfMaps: {z: {y: '2'}}} | a .mapOfMaps.z .mapOfMaps.z.y
a key of a map of maps stays for another | a {mapOfMaps: {x: {y: '1'}}}; b {mapOfMaps: {x: {z: '1'}}}; a {} |
    {mapOfMaps: {x: {z: '1'}}} | b .mapOfMaps.x .mapOfMaps.x.z
sets in a map | a {mapOfSets: {x: [a, b]}}; a {mapOfSets: {x: [b], y: [c]}} | {mapOfSets: {x: [b], y: [c]}} | a
    .mapOfSets.x .mapOfSets.y .mapOfSets.x[="b"] .mapOfSets.y[="c"]
a list without keys is one field | a {plainList: [a, b]}; a {plainList: [c]} | {plainList: [c]} | a .plainList
an atomic map is one field | a {atomicMap: {a: '1'}}; u= {atomicMap: {a: '1', b: '2'}} | {atomicMap: {a: '1', b: '2'}} |
    u .atomicMap
unknown fields: maps are divided, lists are not | a {free: {a: {b: 1, l: [{name: x}]}}}; b {free: {a: {c: 2}}} |
    {free: {a: {b: 1, c: 2, l: [{name: x}]}}} | a .free.a .free.a.b .free.a.l; b .free.a .free.a.c
two keys, one with a default | a {ports: [{port: 80, name: x}]}; b {ports: [{port: 80, protocol: UDP}]} |
    {ports: [{port: 80, name: x}, {port: 80, protocol: UDP}]} | a .ports[port=80,protocol="TCP"]
    .ports[port=80,protocol="TCP"].name .ports[port=80,protocol="TCP"].port; b .ports[port=80,protocol="UDP"]
    .ports[port=80,protocol="UDP"].port .ports[port=80,protocol="UDP"].protocol
items that are there twice have one manager together |
    u= {list: [{name: a, value: 1}, {name: a, value: 2}, {name: b, value: 3}]}; a! {list: [{name: b, value: 4}]} |
    {list: [{name: a, value: 1}, {name: a, value: 2}, {name: b, value: 4}]} | u .list .list[name="a"] .list[name="b"]
    .list[name="b"].name; a .list[name="b"] .list[name="b"].name .list[name="b"].value
and are replaced by one that is applied | u= {list: [{name: a, value: 1}, {name: a, value: 2}, {name: b, value: 3}]};
    a! {list: [{name: a, value: 3}]} | {list: [{name: a, value: 3}, {name: b, value: 3}]} | u .list .list[name="b"]
    .list[name="b"].name .list[name="b"].value; a .list[name="a"] .list[name="a"].name .list[name="a"].value
who made an item twice has it | a {list: [{name: a, value: 1}, {name: b, value: 3}]};
    u= {list: [{name: a, value: 1}, {name: a, value: 2}, {name: b, value: 3}]}; a {list: [{name: b, value: 3}]} |
    {list: [{name: a, value: 1}, {name: a, value: 2}, {name: b, value: 3}]} | a .list[name="b"] .list[name="b"].name
    .list[name="b"].value; u .list[name="a"]
a value that is there twice stays twice | u= {set: ['1', '1', '3']}; a {set: ['5']} | {set: ['1', '1', '3', '5']} | u
    .set .set[="1"] .set[="3"]; a .set[="5"]
the status has managers of its own | a {text: x};
    c/status= {status: {phase: Ready, conditions: [{type: A, status: 'True'}]}} |
    {text: x, status: {phase: Ready, conditions: [{type: A, status: 'True'}]}} | a .text; c/status .status
    .status.conditions .status.phase .status.conditions[type="A"] .status.conditions[type="A"].status
    .status.conditions[type="A"].type
the main resource does not manage the status | a {text: x, status: {phase: 'no'}}; u= {text: x, status: {phase: 'no'}} |
    {text: x, status: {phase: 'no'}} | a .text
labels have managers, names have none | a {metadata: {labels: {a: '1'}}}; u= {metadata: {labels: {a: '1', b: '2'}}};
    a {} | {} | u .metadata.labels.b
"""
HOW = {"!": "force", "=": "update"}


def shared():
    """Return the rows of the table, in which an indented line goes on with the one before it."""
    for row in SHARED.strip().replace("\n    ", " ").split("\n"):
        name, steps, obj, managers = (column.strip() for column in row.split("|"))
        taken = []
        for who, parts in (step.strip().split(" ", 1) for step in steps.split(";")):
            manager, _, part = who.rstrip("!=").partition("/")
            taken.append(Step(manager, yaml.safe_load(parts), HOW.get(who[-1], "apply"), part))
        fields = dict(each.strip().split(" ", 1) for each in managers.split(";") if each.strip())
        yield pytest.param(taken, yaml.safe_load(obj), {who: paths.split() for who, paths in fields.items()}, id=name)


@pytest.mark.parametrize(("steps", "expected", "managers"), list(shared()))
def test_managers_share_an_object(steps, expected, managers):
    obj = run(*steps)
    assert content(obj) == expected
    assert owned(obj) == managers
    assert obj["metadata"]["name"] == "x"


@cases("steps, message, causes", {
    "with an update": ([updates("kubectl-edit", text="x"), applies(text="y")],
        'Apply failed with 1 conflict: conflict with "kubectl-edit" using example.org/v1: .text',
        [('conflict with "kubectl-edit" using example.org/v1', ".text")]),
    "with another applier": ([applies("b", text="x"), applies(text="y")],
        'Apply failed with 1 conflict: conflict with "b": .text', [('conflict with "b"', ".text")]),
    "with several managers over several fields": ([applies("b", text="x", list=[{**A, "value": 1}], map={"k": "1"}), updates("u", text="x", list=[{**A, "value": 1}], map={"k": "1"}, number=1), applies(text="y", number=2, list=[{**A, "value": 2}], map={"k": "2"})],
        'Apply failed with 4 conflicts: conflicts with "b":\n- .text\n- .list[name="a"].value\n- .map.k\n' 'conflicts with "u" using example.org/v1:\n- .number',
        [('conflict with "b"', ".text"), ('conflict with "b"', '.list[name="a"].value'), ('conflict with "b"', ".map.k"), ('conflict with "u" using example.org/v1', ".number")]),
    "over an atomic field that differs at all": (
        [applies("b", atomicMap={"a": "1"}, plainList=["a"]), applies(atomicMap={"b": "1"}, plainList=["a"])],
        'Apply failed with 1 conflict: conflict with "b": .atomicMap', [('conflict with "b"', ".atomicMap")]),
    "over null": ([updates(struct={"value": 1}), applies(struct={"value": None})],
        'Apply failed with 1 conflict: conflict with "u" using example.org/v1: .struct.value',
        [('conflict with "u" using example.org/v1', ".struct.value")]),
    "over a value that is there twice": ([updates(set=["1", "1"]), applies(set=["1"])],
        'Apply failed with 1 conflict: conflict with "u" using example.org/v1: .set[="1"]',
        [('conflict with "u" using example.org/v1', '.set[="1"]')]),
})  # fmt: skip
def test_what_others_manage_is_not_changed_unasked(steps, message, causes):
    *before, last = steps
    live = run(*before)
    with pytest.raises(Conflict) as caught:
        take(live, last)
    assert caught.value.message == message
    assert [(cause.message, cause.field) for cause in caught.value.causes] == causes
    assert {cause.reason for cause in caught.value.causes} == {"FieldManagerConflict"}
    last.how = "force"
    forced = take(live, last)
    assert owned(forced)["a"]
    assert owned(take(forced, last)) == owned(forced)


def test_a_conflict_over_the_status_names_the_subresource():
    live = run(applies(text="x"), reports("kubelet", phase="A"))
    wish = Step("a", {"status": {"phase": "B"}}, "apply", "status")
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
    for live in (None, run(updates(text="x"))):
        with pytest.raises(error) as caught:
            apply.apply(live, config, THINGS, manager="a", now=NOW)
        assert words in caught.value.message


def test_applying_takes_a_manager_and_no_depth_or_length_is_too_much():
    with pytest.raises(Invalid, match="fieldManager: Required value"):
        take(None, applies(""))
    deep = {}
    for _ in range(100_000):
        deep = {"a": deep}
    with pytest.raises(BadRequest, match="nested too deeply"):
        take(None, applies(free=deep))
    names = [str(number) for number in range(20_000)]
    assert take(run(updates(set=names)), applies(set=names[::-1]))["set"] == names[::-1]


def test_what_nobody_is_known_to_manage_was_there_before_the_first_apply():
    live = thing(text="x", number=1, status={"phase": "A"})
    obj = take(live, applies(text="x"))
    assert owned(obj) == {"a": [".text"], "before-first-apply": [".number", ".text"]}
    with pytest.raises(Conflict, match="before-first-apply"):
        take(live, applies(text="y"))


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

    first = take(None, applies(text="x"), NOW)
    assert take(first, applies(text="x"), LATER) == first
    assert apply.track(first, first, THINGS, manager="somebody", now=LATER) == first
    joined = take(first, applies("b", text="x"), LATER)
    assert times(joined) == {"a": "2025-10-09T08:53:20Z", "b": "2025-10-09T08:54:20Z"}
    changed = take(joined, applies("b", text="x", number=1), LATER + 60_000)
    assert times(changed) == {"a": "2025-10-09T08:53:20Z", "b": "2025-10-09T08:55:20Z"}


def test_applying_a_pod_of_kubernetes_own():
    port = {"containerPort": 80, "protocol": "TCP"}
    live = pod("p", {"name": "x", "image": "i", "ports": [port]})
    live = apply.track(None, live, resources.PODS, manager="kubectl-create", now=NOW)
    wish = pod("p", {"name": "x", "ports": [{"containerPort": 80}]}, {"name": "side"}, nodeSelector={"a": "b"})
    obj = apply.apply(live, wish, resources.PODS, manager="a", now=NOW)
    assert [container["name"] for container in obj["spec"]["containers"]] == ["x", "side"]
    assert obj["spec"]["containers"][0]["ports"] == [port]
    x, side = ('.spec.containers[name="x"]', '.spec.containers[name="side"]')
    at = f'{x}.ports[containerPort=80,protocol="TCP"]'
    assert owned(obj)["a"] == [".spec.nodeSelector", side, x, f"{side}.name", f"{x}.name", at, f"{at}.containerPort"]
    with pytest.raises(Conflict) as caught:
        apply.apply(obj, pod("p", {"name": "x", "image": "j"}), resources.PODS, manager="a", now=NOW)
    assert caught.value.causes[0].field == f"{x}.image"
