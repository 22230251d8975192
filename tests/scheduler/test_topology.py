"""Gangs that are to be close together in the network (docs/design/topology.md)."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kube import resources
from kube.topology import ALLOCATED
from tests.scheduler.world import World, configuration, group, node, pod, queue
from tests.tables import cases


def hyper_node(name, tier, *members, tier_name=""):
    spec = {"tier": tier, "members": list(members), **({"tierName": tier_name} if tier_name else {})}
    return resources.HYPER_NODES, {"metadata": {"name": name}, "spec": spec}


def named(*names, kind="Node"):
    return [{"type": kind, "selector": {"exactMatch": {"name": name}}} for name in names]


def rack(name):
    return {"type": "Node", "selector": {"labelMatch": {"matchLabels": {"rack": name}}}}


def cluster(racks=("a", "b"), nodes=2, cpu="4"):
    """Racks of nodes `a0`, `a1`, … in one row: tier 1 and tier 2; and a node `z0` that is in neither."""
    yield queue()
    for name in racks:
        yield from (node(f"{name}{number}", cpu, labels={"rack": name}) for number in range(nodes))
        yield hyper_node(f"rack-{name}", 1, rack(name), tier_name="rack")
    yield node("z0", cpu)
    yield hyper_node("row", 2, *named(*(f"rack-{name}" for name in racks), kind="HyperNode"))


def close(mode="hard", **highest):
    return {"networkTopology": {"mode": mode, **highest}}


def placed(world, name="g"):
    """Return the nodes of a group's pods, by pod."""
    return {pod: node for pod, node in world.where().items() if pod.startswith(f"{name}-") and node}


def reason(world, name="g"):
    conditions = world.get(resources.POD_GROUPS, name)["status"].get("conditions", ())
    told = next(each for each in conditions if each["type"] == "Unschedulable" and each["status"] == "True")
    return told["reason"], told["message"].partition(". ")[0]


def annotation(world, name="g"):
    return world.get(resources.POD_GROUPS, name)["metadata"].get("annotations", {}).get(ALLOCATED)


def racks(world, name="g"):
    return {found[0] for found in placed(world, name).values()}


WITHOUT_ROW = [each for each in cluster() if each[1]["metadata"]["name"] != "row"]
BARE = [each for each in cluster() if each[0] is not resources.HYPER_NODES]


def after_a_cycle(*objects):
    world = World(*objects)
    world.cycle()
    return world


@pytest.mark.shows("scheduler 3.12/hard", "groups 3.5/job-allocated-hypernode")
@pytest.mark.shows("scheduler 3.12/hypernode.binpack", "scheduler 3.12/equals")
@cases("group, found, hyper_node", {
    "one of the lowest tier with room, of equals the first": ("group g 6x1 topology=hard/2", {"a"}, "rack-a"),
    "one up where it is larger than the lowest tier": ("group g 10x1 topology=hard/2", {"a", "b"}, "row"),
    "the fuller one first": ("pod o @b0; group g 4x1 topology=hard/1", {"b"}, "rack-b"),
    "where pods of it run": ("group g 3/2x1 topology=hard/1 @b1; pod g-2..3 group=g", {"b"}, "rack-b"),
})  # fmt: skip
def test_a_gang_stays_in_one_hyper_node(group, found, hyper_node):
    world = after_a_cycle(*cluster(), group)
    assert racks(world) == found
    assert placed(world).keys() == {key[2] for key in world.objects if key[0] == "pods" and key[2] != "o"}
    assert annotation(world) == hyper_node


@pytest.mark.shows("scheduler 2.2/hard topology", "scheduler 3.12/hard", "scheduler 3.12/always")
@pytest.mark.shows("groups 3.1/networkTopology")
@cases("group, words", {
    "larger than any HyperNode": (
        "10x1 topology=hard/1", "This can never start: all its pods must be in one HyperNode of tier 1 or lower, and none has "
        "room for 10 of them even with empty nodes; allow a higher tier",
    ),
    "others are in the way": (
        "7x1 topology=hard/1", "6 of 7 pods fit at best into one HyperNode of tier 1 or lower (rack-b), and all must be in one",
    ),
    "a tier by its name": (
        "7x1 topology=hard/rack",
        "6 of 7 pods fit at best into one HyperNode of tier rack or lower (rack-b), and all must be in one",
    ),
    "a tier that there is not": (
        "2x1 topology=hard/hall",
        "No HyperNode has the tier hall, in one of which the pods must be; choose a tier that there is",
    ),
    "no HyperNode so low": (
        "2x1 topology=hard/0",
        "The pods must be in one HyperNode of tier 0, and there is none; allow a higher tier, or have one made",
    ),
})  # fmt: skip
def test_a_gang_waits_rather_than_be_farther_apart_and_says_so(group, words):
    world = after_a_cycle(*cluster(), "group o 1/5x1 @a0,a0,a1,b0,b1", f"group g {group}")
    assert placed(world) == {}
    assert reason(world) == ("NetworkTopology", words)


@pytest.mark.shows("scheduler 2.2/soft topology", "scheduler 3.12/soft")
@cases("topology", {
    "a wish is followed where it can be, and holds nobody up": "soft/1",
    "a wish without a tier": "soft",
    "without a tier the lowest is taken, and all nodes will do": "hard",
})  # fmt: skip
def test_one_hyper_node_where_it_can_be_else_all_nodes(topology):
    world = after_a_cycle(*cluster(), f"group g 6x1 topology={topology}; group h 11x1 topology={topology}")
    assert racks(world) == {"a"}
    assert len(placed(world, "h")) == 11


@pytest.mark.shows("scheduler 3.12/hard", "scheduler 2.2/hard topology")
@cases("objects, highest, size, found", {
    "one tier above the highest": (WITHOUT_ROW, 2, 18, {"a", "b", "z"}),
    "far above it": (WITHOUT_ROW, 7, 18, {"a", "b", "z"}),
    "one HyperNode will do": (WITHOUT_ROW, 2, 8, {"a"}),
    "with a row": ([*cluster()], 3, 18, {"a", "b", "z"}),
    "no higher than the row": ([*cluster()], 2, 18, set()),
    "no HyperNode at all": (BARE, 1, 18, {"a", "b", "z"}),
    "below the whole cluster": (BARE, 0, 1, set()),
})  # fmt: skip
def test_a_tier_above_all_hyper_nodes_is_the_whole_cluster(objects, highest, size, found):
    assert racks(after_a_cycle(*objects, f"group g {size}x1 topology=hard/{highest}")) == found


PART = {
    "name": "all",
    "subGroupSize": 3,
    "labelSelector": {"matchLabels": {"part": "x"}},
    **close(highestTierAllowed=2),
}


@cases("spec", {"of the group": close(highestTierAllowed=2), "of a sub-group": {"subGroupPolicy": [PART]}})
def test_a_missing_pod_comes_to_the_others_wherever_they_are_where_the_whole_cluster_will_do(spec):
    world = World(*WITHOUT_ROW, group(minimum=3, phase="Running", **spec))
    world.put("pod g-0 group=g part=x @a0; pod g-1 group=g part=x @b0; pod g-2 group=g part=x")
    world.cycle()
    assert len(placed(world)) == 3
    assert world.phase() == "Running"


def test_others_are_evicted_wherever_they_are_where_the_whole_cluster_will_do():
    world = after_a_cycle(*WITHOUT_ROW, "group low 1/5x4 low @a0,a1,b0,b1,z0; group g 3x4 high topology=hard/2")
    assert len(world.going()) == 3


def test_pods_that_are_too_far_apart_already_keep_the_others_waiting():
    world = after_a_cycle(*cluster(), "group g 3/2x1 topology=hard/1 @a0,b0; pod g-2 group=g")
    assert len(placed(world)) == 2
    assert reason(world)[1].startswith("2 of the pods have nodes that are not together in one HyperNode of tier 1")


@pytest.mark.shows("scheduler 3.12/beyond")
def test_pods_beyond_the_minimum_go_up_a_tier_when_theirs_is_full_and_stay_within_the_highest():
    world = after_a_cycle(*cluster(), "group g 8/20x1 topology=hard/2")
    assert len(placed(world)) == 16
    assert racks(world) == {"a", "b"}
    waiting = {f"g-{number}" for number in range(20)} - placed(world).keys()
    statuses = [world.get(resources.PODS, name)["status"] for name in waiting]
    (told,) = {each["message"] for status in statuses for each in status.get("conditions", ())}
    assert told == (
        "16 of 20 pods have a node; the others must be with them in one HyperNode of tier 2 or lower, "
        "and there is no room for another."
    )


def test_hyper_nodes_that_come_let_in_who_waits_for_them():
    """Also one without nodes says that there are racks, so that the whole cluster is none."""
    world = after_a_cycle(*BARE, hyper_node("rack-c", 1, rack("c")), "group g 2x1 topology=hard/1")
    assert placed(world) == {}
    world.put(hyper_node("rack-b", 1, rack("b")))
    world.cycle(10)
    assert racks(world) == {"b"}


def test_labels_of_nodes_that_change_move_them_between_hyper_nodes():
    world = World(*cluster(), "group g 8/0x1 topology=hard/1")
    world.put("node z0 rack=b; group h 12x1 topology=hard/1")
    world.cycle()
    assert len(placed(world, "h")) == 12
    assert set(placed(world, "h").values()) == {"b0", "b1", "z0"}


def packing(**arguments):
    stated = "".join(f", {name}: {value}" for name, value in arguments.items())
    return configuration(
        "actions: enqueue, allocate\ntiers:\n- plugins:\n  - name: network-topology-aware\n"
        f"    arguments: {{hypernode.binpack.memory: 0{stated}}}\n"
    )


def fullness(world, name, fading):
    """Return what a node is worth by the definition: how full the CPUs of its rack and its row are, 1 where it is in none."""

    def full(members):
        whole = sum(int(world.get(resources.NODES, each)["status"]["allocatable"]["cpu"]) for each in members)
        return sum(at in members for at in world.where().values()) / whole if whole else 0

    nodes = [key[2] for key in world.objects if key[0] == "nodes"]
    rack = [each for each in nodes if each[0] == name[0] and each[0] != "z"]
    row = [each for each in nodes if each[0] != "z"] if rack else []
    return (full(rack) if rack else 1) + fading * (full(row) if row else 1)


@pytest.mark.shows("scheduler 3.12/hypernode.binpack.normal-pod", "scheduler 3.12/weight")
@given(
    st.lists(st.sampled_from(["a0", "a1", "b0", "b1", "c0", "c1"]), max_size=8),
    st.sampled_from([0, 0.5, 1]),
    st.integers(1, 3),
)
@settings(max_examples=40, deadline=None)
def test_ordinary_pods_fill_one_hyper_node_after_the_other(there, fading, weight):
    """One pod of each cycle goes to a node that is worth most, of those with room; of equals by the usual order."""
    others = [pod(f"o-{number}", "o", node=name, phase="Running") for number, name in enumerate(there)]
    more = packing(weight=weight, **{"hypernode.binpack.normal-pod.fading": fading})
    world = World(*cluster("abc"), more, group("o", 1, phase="Running"), *others)
    for number in range(4):
        used = Counter(world.where().values())
        open_nodes = [key[2] for key in world.objects if key[0] == "nodes" and used[key[2]] < 4]
        best = max(fullness(world, name, fading) for name in open_nodes)
        worth = {name: fullness(world, name, fading) for name in open_nodes}
        world.put(group(f"n{number}", 1), pod(f"n{number}-0", f"n{number}"))
        world.cycle(seconds=1)
        assert worth[world.where()[f"n{number}-0"]] == pytest.approx(best)


@pytest.mark.shows("scheduler 3.12/hypernode.binpack.normal-pod")
@cases("topology", {"ordinary": "", "asks for a HyperNode": "topology=hard/1"})
def test_whole_hyper_nodes_are_left_for_those_who_ask_for_one(topology):
    """By the fullest node alone an ordinary pod would go to b0."""
    busy = "group o 1/7x1 @a0,a0,a1,a1,b0,b0,b0"
    world = after_a_cycle(*cluster(), "node b0 rack=b; node z0 cordoned", packing(), busy, f"group g 1x1 {topology}")
    assert racks(world) == {"a"}


@pytest.mark.shows("scheduler 3.12/hypernode.binpack.normal-pod")
def test_a_gang_without_a_topology_is_placed_as_ever_beside_one_that_has_one():
    world = after_a_cycle(*cluster(), "group g 2x1 topology=hard/1; group h 3x1")
    assert len(placed(world, "h")) == 3
    assert annotation(world, "h") is None
