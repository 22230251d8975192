"""Who is evicted for groups that ask for HyperNodes or sub-groups (docs/design/evictions.md)."""

from __future__ import annotations

import pytest

from kube import resources
from tests.tables import cases

from .test_sub_groups import PARTITION, TASK, policy
from .test_topology import close, hyper_node, named, racks
from .world import World, configuration, group, pod, situation

IN_ONE = close(highestTierAllowed=1)
TREE = [hyper_node(f"rack-{rack}", 1, *named(f"{rack}0", f"{rack}1")) for rack in "abc"]
TREE += [hyper_node("row", 2, *named("rack-a", "rack-b", "rack-c", kind="HyperNode"))]
RACKS = "node a0..1 2 pods:99; node b0..1 2 pods:99; node c0..1 2 pods:99"


def world(*objects):
    """Racks a, b, c of two nodes, in one row."""
    return World(f"queue default reclaimable=false; {RACKS}", *TREE, *objects)


def fill(nodes, urgency="low", prefix=""):
    """Pods of one CPU that may go alone, one for each name of a node."""
    for number, name in enumerate(nodes.split()):
        yield from situation(f"group {prefix}{name}{number:02} 1x1 {urgency} @{name}")


A, B, C = (f"{rack}0 {rack}0 {rack}1 {rack}1" for rack in "abc")
FULL = [*fill(f"{A} {B} {C}")]


def nodes_of(here, names):
    return sorted(here.get(resources.PODS, name)["spec"]["nodeName"] for name in names)


def asking(count, **spec):
    return [group("g", count, priorityClassName="high", **spec), *(pod(f"g-{n}") for n in range(count))]


def in_two(*, of=None, **more):
    """A group of two sub-groups of two pods each."""
    pods = (pod(f"g-work-{n}", labels={TASK: "work", PARTITION: str(n // 2)}) for n in range(4))
    return [group("g", 4, priorityClassName="high", subGroupPolicy=[policy(2, 2, **(of or {}))], **more), *pods]


@pytest.mark.shows("scheduler 2.4/for whom", "scheduler 2.6/for whom")
@cases("objects, victims", {
    "all of them in one rack": ([*FULL, *asking(3, **IN_ONE)], "c0 c1 c1"),
    "where a part is free already": ([*fill(f"{A} b0 b0 {C}"), *asking(3, **IN_ONE)], "b0"),
    "nobody where no rack is large enough": ([*fill(A), *fill(B, "high"), *fill(C), *asking(5, **IN_ONE)], ""),
    "not where somebody may not go":
        ([*fill(A), *fill(B, "high"), *fill("c0 c0", "high"), *asking(3, **IN_ONE)], "a0 a1 a1"),
    "one tier up where one rack is too small":
        ([*FULL, *asking(5, **close(highestTierAllowed=2))], "b1 c0 c0 c1 c1"),
    "a wish has nobody more go than room does":
        ([*fill(f"{A} b0 b0"), *fill(C), *asking(3, **close("soft", highestTierAllowed=1))], "b0"),
    "each sub-group in a rack": ([*FULL, *in_two(of=IN_ONE)], "c0 c0 c1 c1"),
    "each sub-group where less has to go":
        ([*fill("a0 a0 a1"), *fill("b0 b0 b1"), *fill(C), *in_two(of=IN_ONE)], "a1 b1"),
    "sub-groups anywhere": ([*FULL, *in_two()], "c0 c0 c1 c1"),
})  # fmt: skip
def test_who_goes(objects, victims):
    here = world(*objects)
    here.cycle()
    assert nodes_of(here, here.going()) == victims.split()
    if not victims:
        return
    assert here.condition()["reason"] == "WaitingForVictims"
    assert here.cycle(seconds=20).evictions == []
    here.gone()
    here.cycle()
    wanted = {name for kind, _, name in here.objects if kind == "pods" and name.startswith("g-")}
    assert wanted <= here.where().keys()


def test_what_is_kept_for_it_is_given_to_nobody_else():
    here = world(*FULL, *asking(2, **IN_ONE))
    here.cycle()
    first, second = here.going()
    here.gone(first)
    here.put("group late 1x1 low")
    for _ in range(3):
        assert here.cycle(seconds=5).evictions == []
    assert here.placed() == ""
    here.gone(second)
    here.cycle()
    assert len(racks(here)) == 1


@pytest.mark.shows("scheduler 2.5/for whom", "scheduler 2.6/gangreclaim")
@cases("wanted", {"HyperNode": asking(4, queue="mine", **IN_ONE), "sub-groups": in_two(queue="mine")})
def test_a_queue_takes_back_what_it_deserves_for_it(wanted):
    here = world("queue mine", *FULL, "queue default", *wanted)
    here.cycle()
    assert len(here.going()) == 4
    here.gone()
    here.cycle()
    assert len(here.bound) == 4


@pytest.mark.shows("scheduler 2.6/allowWholeBundle")
@cases("allowed, victims", {"gangs go whole": ("true", 4), "gangs stay": ("false", 0)})
def test_gangs_go_whole_unless_it_is_forbidden(allowed, victims):
    section = f"configurations:\n- {{name: gangpreempt, arguments: {{allowWholeBundle: {allowed}}}}}"
    here = World(
        "node n1; queue default reclaimable=false; group low 4x1 low @n1; group g 1x1 high",
        configuration(f"actions: enqueue, allocate, gangpreempt\n{section}"),
    )
    here.cycle()
    assert len(here.going()) == victims
