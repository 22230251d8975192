"""Pods that cannot be placed yet: behind scheduling gates, with demands that are unknown, in a queue with children."""

from __future__ import annotations

import pytest

from kube import resources
from scheduler.engine.message import people
from tests.tables import cases

from .world import World, group, node, pod, queue

GATE = [{"name": "hold"}]
GATED = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": "Scheduling is blocked"}
TERM = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"a": "b"}}}


def of(term):
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


REQUIRED = of(TERM)
PREFERRED = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": TERM}]}
SPREAD = {"maxSkew": 1, "topologyKey": "zone"}


def told(world, name="g"):
    return people(world.condition(name)["message"])


def conditions(world, name):
    return world.get(resources.PODS, name)["status"].get("conditions", [])


def gated(name, **more):
    kind, obj = pod(name, schedulingGates=GATE, **more)
    obj["status"]["conditions"] = [GATED]
    return kind, obj


@pytest.mark.shows("scheduler 2.2/gated")
def test_gated_pods_are_left_alone_and_go_on_when_their_gates_go():
    world = World(node("n1"), queue(), group(minimum=2), pod("g-0"), gated("g-1"))
    world.cycle()
    world.cycle(seconds=11)
    assert world.where() == {}
    assert world.condition()["reason"] == "SchedulingGated"
    assert conditions(world, "g-1") == [GATED]
    assert conditions(world, "g-0")[0]["reason"] == "Unschedulable"
    world.put(pod("g-1"))
    world.cycle()
    assert world.where() == {"g-0": "n1", "g-1": "n1"}
    assert world.condition()["status"] == "False"


def test_a_gated_pod_beyond_the_minimum_keeps_nobody_waiting():
    world = World(node("n1"), queue(), group(minimum=1), pod("g-0"), gated("g-1"))
    world.cycle()
    world.cycle(seconds=100)
    assert world.where() == {"g-0": "n1"}
    assert world.status()["phase"] == "Running"
    assert conditions(world, "g-1") == [GATED]


@pytest.mark.shows("scheduler 5.4/gated")
@pytest.mark.parametrize("why", ["QueueNotFound", "PodGroupNotFound", "QueueClosed"])
def test_whatever_else_is_wrong_a_gated_pod_keeps_its_condition(why):
    groups = {
        "QueueNotFound": [group(queue="gone")],
        "PodGroupNotFound": [],
        "QueueClosed": [group(queue="shut", phase="")],
    }
    world = World(node("n1"), queue(), queue("shut", state="Closed"), *groups[why], gated("g-0"))
    world.cycle()
    world.cycle(seconds=100)
    assert conditions(world, "g-0") == [GATED]


def test_a_gated_gang_keeps_no_room_from_others():
    world = World(
        node("n1", cpu="4"),
        queue(),
        group("held", minimum=2, minResources={"cpu": "4"}),
        gated("h-0", group="held", cpu="2"),
        gated("h-1", group="held", cpu="2"),
        group("g", minimum=4, phase="Pending", minResources={"cpu": "4"}),
        *[pod(f"g-{i}") for i in range(4)],
    )
    world.cycle()
    assert len(world.where()) == 4


@pytest.mark.shows("scheduler 1.3/resourceClaims", "scheduler 3.7/DRA")
@cases("spec, words", {
    "affinity that cannot be read": ({"affinity": {"podAffinity": 7}}, "cannot read the required podAffinity"),
    "affinity without topology":
        ({"affinity": {"podAffinity": of({"topologyKey": ""})}}, "each term has a topologyKey"),
    "anti-affinity that cannot be read": (
        {"affinity": {"podAntiAffinity": of({**TERM, "labelSelector": {"matchLabels": 7}})}},
        "required podAntiAffinity",
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
    world = World(node("n1"), queue(), group(minimum=2), pod("g-0"), pod("g-1", **spec))
    world.cycle()
    assert world.where() == {}
    assert world.condition()["reason"] == "UnknownConstraint"
    assert words in told(world)
    for name in ("g-0", "g-1"):
        assert conditions(world, name)[0]["reason"] == "Unschedulable"
        assert conditions(world, name)[0]["message"] == told(world)
    world.put(pod("g-1"))
    world.cycle()
    assert len(world.where()) == 2


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
    world = World(node("n1"), queue(), group(), pod("g-0", **spec))
    world.cycle()
    assert world.where() == {"g-0": "n1"}


def test_a_gang_that_runs_goes_on_though_a_pod_beyond_its_minimum_demands_what_is_unknown():
    world = World(node("n1"), queue(), group(minimum=1, phase="Running"))
    world.put(pod("g-0", phase="Running", node="n1"), pod("g-1", resourceClaims=[{"name": "gpu"}]))
    world.cycle()
    assert world.status()["phase"] == "Running"
    assert "resourceClaims yet" in conditions(world, "g-1")[0]["message"]


@pytest.mark.shows("scheduler 3.6/inner queues", "scheduler 11/12")
@pytest.mark.parametrize("phase", ["Pending", "Inqueue"])
def test_no_pod_starts_in_a_queue_that_has_children(phase):
    world = World(node("n1"), queue("team"), queue("sub", parent="team"), group(queue="team", phase=phase), pod("g-0"))
    world.cycle()
    assert world.where() == {}
    assert world.condition()["reason"] == "QueueHasChildren"
    assert told(world) == "Queue team has queues below it, so it takes no pods itself; choose one of those."
    assert conditions(world, "g-0")[0]["message"] == told(world)
    world.remove(resources.QUEUES, "sub")
    world.cycle()
    world.cycle()
    assert world.where() == {"g-0": "n1"}


def test_a_gang_that_runs_goes_on_when_its_queue_gets_children():
    world = World(node("n1"), queue("team"), group(minimum=1, queue="team", phase="Running"))
    world.put(pod("g-0", phase="Running", node="n1"), pod("g-1"), queue("sub", parent="team"))
    world.cycle()
    assert world.where() == {"g-0": "n1"}
    assert world.status()["phase"] == "Running"
    assert "choose one of those" in conditions(world, "g-1")[0]["message"]


def test_a_queue_that_moves_below_another_no_longer_counts_where_it_was():
    world = World(node("n1"), queue("a"), queue("b"), queue("sub", parent="a"), group(queue="a"), pod("g-0"))
    world.put(queue("sub", parent="b"))
    world.cycle()
    assert world.where() == {"g-0": "n1"}
