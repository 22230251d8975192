"""Who is evicted for groups that ask for HyperNodes or sub-groups (docs/design/evictions.md)."""

from __future__ import annotations

import pytest

from kube import resources
from tests.scheduler.test_preempt import CLASSES, HIGH, OWN, low
from tests.scheduler.test_sub_groups import PARTITION, TASK, policy
from tests.scheduler.test_topology import close, hyper_node, named, pods, racks
from tests.scheduler.world import World, configuration, group, node, pod, queue

SUB_GROUPS = {"subGroupPolicy": [policy(2, 2)]}


def world(*objects, cpu="2"):
    """Racks a, b, c of two nodes, in one row."""
    names = [f"{rack}{number}" for rack in "abc" for number in range(2)]
    network = [hyper_node(f"rack-{rack}", 1, *named(f"{rack}0", f"{rack}1")) for rack in "abc"]
    row = hyper_node("row", 2, *named("rack-a", "rack-b", "rack-c", kind="HyperNode"))
    return World(*(node(name, cpu, pods=99) for name in names), *network, row, OWN, *CLASSES, *objects)


def fill(*nodes, prefix="o", **more):
    """Pods of one CPU that may go alone, one for each name of a node."""
    return [
        each for number, name in enumerate(nodes) for each in low(1, name=f"{prefix}{number:02}", node=name, **more)
    ]


FULL = ("a0", "a0", "a1", "a1", "b0", "b0", "b1", "b1", "c0", "c0", "c1", "c1")
"""A pod for each CPU of all racks."""


def nodes_of(here, names):
    return sorted(here.get(resources.PODS, name)["spec"]["nodeName"] for name in names)


def asking(count, **spec):
    return [group("g", count, **HIGH, **spec), *pods(count)]


def in_two(**more):
    """A group of two sub-groups of two pods each."""
    labels = [{TASK: "work", PARTITION: str(number // 2)} for number in range(4)]
    return [
        group("g", 4, **HIGH, **more),
        *(pod(f"g-work-{number}", labels=each) for number, each in enumerate(labels)),
    ]


@pytest.mark.shows("scheduler 2.4/for whom", "scheduler 2.6/for whom")
@cases("objects, victims", {
    "all of them in one rack": ([*fill(*FULL), *asking(3, **close(highestTierAllowed=1))], ["c0", "c1", "c1"]),
    "where a part is free already":
        ([*fill(*(each for each in FULL if each != "b1")), *asking(3, **close(highestTierAllowed=1))], ["b0"]),
    "nobody where no rack is large enough": ([*fill(*FULL[:4]), *fill(*FULL[4:8], prefix="p", priorityClassName="high"), *fill(*FULL[8:], prefix="q"), *asking(5, **close(highestTierAllowed=1))],
        []),
    "not where somebody may not go": ([*fill(*FULL[:4]), *fill(*FULL[4:8], prefix="p", priorityClassName="high"), *fill(*FULL[8:10], prefix="q", priorityClassName="high"), *asking(3, **close(highestTierAllowed=1))],
        ["a0", "a1", "a1"]),
    "one tier up where one rack is too small":
        ([*fill(*FULL), *asking(5, **close(highestTierAllowed=2))], ["b1", "c0", "c0", "c1", "c1"]),
    "a wish has nobody more go than room does":
        ([*fill(*FULL[:6]), *fill(*FULL[8:], prefix="p"), *asking(3, **close("soft", highestTierAllowed=1))], ["b0"]),
    "each sub-group in a rack": ([*fill(*FULL), *in_two(subGroupPolicy=[policy(2, 2, **close(highestTierAllowed=1))])],
        ["c0", "c0", "c1", "c1"]),
    "each sub-group where less has to go": ([*fill(*FULL[:3]), *fill(*FULL[4:7], prefix="p"), *fill(*FULL[8:], prefix="q"), *in_two(subGroupPolicy=[policy(2, 2, **close(highestTierAllowed=1))])],
        ["a1", "b1"]),
    "sub-groups anywhere": ([*fill(*FULL), *in_two(**SUB_GROUPS)], ["c0", "c0", "c1", "c1"]),
})  # fmt: skip
def test_who_goes(objects, victims):
    here = world(*objects)
    here.cycle()
    assert nodes_of(here, here.going()) == victims
    if not victims:
        return
    assert here.condition()["reason"] == "WaitingForVictims"
    assert here.cycle(seconds=20).evictions == []
    here.gone()
    here.cycle()
    wanted = {name for kind, _, name in here.objects if kind == "pods" and name.startswith("g-")}
    assert wanted <= here.where().keys()


def test_what_is_kept_for_it_is_given_to_nobody_else():
    here = world(*fill(*FULL), *asking(2, **close(highestTierAllowed=1)))
    here.cycle()
    first, second = here.going()
    here.gone(first)
    here.put(*low(1, name="late", node=""))
    for _ in range(3):
        assert here.cycle(seconds=5).evictions == []
    assert "g-0" not in here.where()
    here.gone(second)
    here.cycle()
    assert len(racks(here)) == 1


@pytest.mark.shows("scheduler 2.5/for whom", "scheduler 2.6/gangreclaim")
@cases("spec", {
    "HyperNode": close(highestTierAllowed=1),
    "sub-groups": SUB_GROUPS,
})  # fmt: skip
def test_a_queue_takes_back_what_it_deserves_for_it(spec):
    here = world(queue("mine"), *fill(*FULL))
    spec = {**spec, "queue": "mine"}
    wanted = asking(4, **spec) if "networkTopology" in spec else in_two(**spec)
    here.put(queue("default"), *wanted)
    here.cycle()
    assert len(here.going()) == 4
    here.gone()
    here.cycle()
    assert sum(name.startswith("g-") for name in here.where()) == 4


@pytest.mark.shows("scheduler 2.6/allowWholeBundle")
@cases("allowed, victims", {
    "gangs go whole": ("true", 4),
    "gangs stay": ("false", 0),
})  # fmt: skip
def test_gangs_go_whole_unless_it_is_forbidden(allowed, victims):
    text = f"""actions: enqueue, allocate, gangpreempt
configurations:
- name: gangpreempt
  arguments: {{allowWholeBundle: {allowed}}}
"""
    here = World(node("n1", "4"), OWN, *CLASSES, configuration(text), *low(4, minimum=4), *asking(1))
    here.cycle()
    assert len(here.going()) == victims
