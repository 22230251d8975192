"""Pods that cannot be placed yet: behind scheduling gates, with demands that are unknown, in a queue with children."""

from __future__ import annotations

import pytest

from kube.resources import PODS
from tests.tables import cases

from .world import World, pod, situation

GATED = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": "Scheduling is blocked"}
TERM = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"a": "b"}}}


def of(term):
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


PREFERRED = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": TERM}]}
SPREAD = {"maxSkew": 1, "topologyKey": "zone"}


def conditions(world, name):
    return world.get(PODS, name)["status"].get("conditions", [])


def gated(text):
    """Pods behind a gate with the condition that the API server gives them."""
    for kind, obj in situation(f"{text} gated"):
        obj["status"]["conditions"] = [GATED]
        yield kind, obj


@pytest.mark.shows("scheduler 2.2/gated")
def test_gated_pods_are_left_alone_and_go_on_when_their_gates_go():
    world = World("node n1; group g 2/1x1", *gated("pod g-1 group=g"))
    world.cycle()
    world.cycle(seconds=11)
    assert world.where() == {}
    assert world.reason() == "SchedulingGated"
    assert conditions(world, "g-1") == [GATED]
    assert conditions(world, "g-0")[0]["reason"] == "Unschedulable"
    world.put("pod g-1 group=g")
    world.cycle()
    assert world.placed() == "g n1 n1"
    assert world.condition()["status"] == "False"


@pytest.mark.shows("scheduler 5.4/gated")
@cases("groups, pods", {
    "beyond the minimum": ("group g 1x1", "pod g-1 group=g"),
    "its queue does not exist": ("group g 1/0x1 queue=gone", "pod g-1 group=g"),
    "its group does not exist": ("", "pod g-1 group=g"),
    "its queue is closed": ("queue shut Closed; group g phase= queue=shut", "pod g-1 group=g"),
    "others need the room": ("group h 4 minMember=2 phase=Inqueue; group g 4 minMember=4; pod g-2..5 group=g", "pod h-0..1 2 group=h"),
})  # fmt: skip
def test_whatever_else_is_wrong_a_gated_pod_keeps_its_condition_and_keeps_nobody_waiting(groups, pods):
    world = World("node n1; queue default", groups, *(waiting := [*gated(pods)]))
    world.cycle()
    world.cycle(seconds=100)
    for _, obj in waiting:
        assert conditions(world, obj["metadata"]["name"]) == [GATED]
    others = {key[2] for key in world.objects if key[0] == PODS.id} - {obj["metadata"]["name"] for _, obj in waiting}
    assert world.where().keys() == others


@pytest.mark.shows("scheduler 1.3/resourceClaims", "scheduler 3.7/DRA")
@cases("spec, words", {
    "affinity that cannot be read": ({"affinity": {"podAffinity": 7}}, "cannot read the required podAffinity"),
    "affinity without topology": ({"affinity": {"podAffinity": of({"topologyKey": ""})}}, "each term has a topologyKey"),
    "anti-affinity that cannot be read": (
        {"affinity": {"podAntiAffinity": of({**TERM, "labelSelector": {"matchLabels": 7}})}}, "required podAntiAffinity",
    ),
    "an operator that there is not": (
        {"affinity": {"podAntiAffinity": of({**TERM, "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}})}},
        "a label selector",
    ),
    "spread that cannot be read": ({"topologySpreadConstraints": 7}, "topologySpreadConstraints"),
    "spread without skew": ({"topologySpreadConstraints": [{**SPREAD, "maxSkew": 0}]}, "a maxSkew of at least 1"),
    "spread of a kind that there is not": (
        {"topologySpreadConstraints": [{**SPREAD, "whenUnsatisfiable": "Perhaps"}]}, "DoNotSchedule or ScheduleAnyway",
    ),
    "port that cannot be read":
        ({"containers": [{"name": "c", "ports": [{"containerPort": 2, "hostPort": "x"}]}]}, "hostPort is a number"),
    "devices of a claim": ({"resourceClaims": [{"name": "gpu"}]}, "resourceClaims yet"),
})  # fmt: skip
def test_a_demand_that_the_scheduler_does_not_know_keeps_the_gang_waiting(spec, words):
    world = World("node n1; group g 2/1x1", pod("g-1", **spec))
    world.cycle()
    assert world.where() == {}
    assert world.reason() == "UnknownConstraint"
    assert words in world.told()
    for name in ("g-0", "g-1"):
        (told,) = conditions(world, name)
        assert (told["reason"], told["message"]) == ("Unschedulable", world.told())
    world.put("pod g-1 group=g")
    world.cycle()
    assert world.placed() == "g n1 n1"


@cases("spec", {
    "preferred affinity": {"affinity": {"podAffinity": PREFERRED, "podAntiAffinity": PREFERRED}},
    "no terms": {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}}},
    "spread, if possible": {"topologySpreadConstraints": [{**SPREAD, "whenUnsatisfiable": "ScheduleAnyway"}]},
    "ports of an init container are those of nobody": {"initContainers": [{"name": "i", "ports": 7}]},
    "no spread": {"topologySpreadConstraints": []},
    "port of the container": {"containers": [{"name": "c", "ports": [{"containerPort": 80}]}]},
    "host port 0 is none": {"containers": [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 0}]}]},
})  # fmt: skip
def test_a_mere_wish_keeps_nobody_waiting(spec):
    world = World("node n1; group g 1/0x1", pod("g-0", **spec))
    world.cycle()
    assert world.placed() == "g n1"


@cases("situation, more, words", {
    "a pod beyond its minimum demands what is unknown":
        ("node n1", [pod("g-1", resourceClaims=[{"name": "gpu"}])], "resourceClaims yet"),
    "its queue gets children":
        ("node n1; queue default; queue sub parent=default", ["pod g-1 group=g"], "choose one of those"),
})  # fmt: skip
def test_a_gang_that_runs_goes_on(situation, more, words):
    world = World(situation, "group g 1x1 @n1", *more)
    world.cycle()
    assert world.where() == {"g-0": "n1"}
    assert world.phase() == "Running"
    assert words in conditions(world, "g-1")[0]["message"]


@pytest.mark.shows("scheduler 3.6/inner queues", "scheduler 11/12")
@cases("phase", {"": "Pending", "let in": "Inqueue"})
def test_no_pod_starts_in_a_queue_that_has_children(phase):
    world = World(
        f"node n1; queue team; queue sub parent=team; group g 1/0x1 queue=team phase={phase}; pod g-0 group=g"
    )
    world.cycle()
    assert world.where() == {}
    assert world.reason() == "QueueHasChildren"
    assert world.told() == "Queue team has queues below it, so it takes no pods itself; choose one of those."
    assert world.says("g-0") == world.told()
    world.put("-queue sub")
    world.cycle()
    world.cycle()
    assert world.where() == {"g-0": "n1"}


def test_a_queue_that_moves_below_another_no_longer_counts_where_it_was():
    world = World("node n1; queue a; queue b; queue sub parent=a; group g 1x1 queue=a; queue sub parent=b")
    world.cycle()
    assert world.where() == {"g-0": "n1"}
