"""What becomes of objects and their managers: the cases of Kubernetes' documentation and of its merge library."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from kube import apply, resources
from kube.errors import BadRequest, Conflict, Invalid
from tests.builders import pod
from tests.tables import cases, parts

from .things import LATER, NOW, THINGS, Step, content, owned, run, step, take, thing

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
        told = caught.value.message
        assert [cause.field for cause in caught.value.causes] == re.findall(r"(?:- |: )(\.\S+)$", told, re.MULTILINE)
        assert {cause.reason for cause in caught.value.causes} == {"FieldManagerConflict"}
        last.how = "force"
        forced = take(live, last)
        assert owned(forced)["a"]
        assert owned(take(forced, last)) == owned(forced)
        return told.replace("\n", " ")

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
    deep = {}
    for _ in range(100_000):
        deep = {"a": deep}
    with pytest.raises(BadRequest, match="nested too deeply"):
        take(None, Step("a", {"free": deep}))
    names = [str(number) for number in range(20_000)]
    assert take(run([Step("u", {"set": names}, "update")]), Step("a", {"set": names[::-1]}))["set"] == names[::-1]


def test_what_nobody_is_known_to_manage_was_there_before_the_first_apply():
    live = thing(text="x", number=1, status={"phase": "A"})
    obj = take(live, "a {text: x}")
    assert owned(obj) == {"a": [".text"], "before-first-apply": [".number", ".text"]}
    with pytest.raises(Conflict, match="before-first-apply"):
        take(live, "a {text: y}")


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
