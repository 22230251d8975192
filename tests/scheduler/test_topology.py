"""Gangs that are to be close together in the network (docs/design/topology.md)."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kube import resources
from kube.topology import ALLOCATED
from tests.scheduler.world import World, configuration, group, node, pod, priority_class, queue
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


def pods(count, name="g", first=0, **more):
    return [pod(f"{name}-{number}", name, **more) for number in range(first, first + count)]


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


@pytest.mark.shows("scheduler 3.12/hard", "groups 3.5/job-allocated-hypernode")
def test_a_gang_stays_in_one_hyper_node_of_the_lowest_tier_with_room():
    world = World(*cluster(), group(minimum=6, **close(highestTierAllowed=2)), *pods(6))
    world.cycle()
    assert len(placed(world)) == 6
    assert racks(world) == {"a"}
    assert annotation(world) == "rack-a"


@pytest.mark.shows("scheduler 3.12/hard")
def test_a_gang_that_is_larger_than_the_lowest_tier_goes_one_up_and_no_farther():
    world = World(*cluster(), group(minimum=10, **close(highestTierAllowed=2)), *pods(10))
    world.cycle()
    assert len(placed(world)) == 10
    assert racks(world) == {"a", "b"}
    assert annotation(world) == "row"


@pytest.mark.shows("scheduler 2.2/hard topology", "scheduler 3.12/hard", "scheduler 3.12/always")
@pytest.mark.shows("groups 3.1/networkTopology")
@cases("topology, size, words", {
    "larger than any HyperNode": (
        close(highestTierAllowed=1), 10,
        "This can never start: all its pods must be in one HyperNode of tier 1 or lower, and none has room for 10 of them even with empty nodes; allow a higher tier",
    ),
    "others are in the way": (
        close(highestTierAllowed=1), 7,
        "6 of 7 pods fit at best into one HyperNode of tier 1 or lower (rack-b), and all must be in one",
    ),
    "a tier by its name": (
        close(highestTierName="rack"), 7,
        "6 of 7 pods fit at best into one HyperNode of tier rack or lower (rack-b), and all must be in one",
    ),
    "a tier that there is not": (
        close(highestTierName="hall"), 2,
        "No HyperNode has the tier hall, in one of which the pods must be; choose a tier that there is",
    ),
    "no HyperNode so low": (
        close(highestTierAllowed=0), 2,
        "The pods must be in one HyperNode of tier 0, and there is none; allow a higher tier, or have one made",
    ),
})  # fmt: skip
def test_a_gang_waits_rather_than_be_farther_apart_and_says_so(topology, size, words):
    others = [pod(f"o-{n}", "o", node=name, phase="Running") for n, name in enumerate(("a0", "a0", "a1", "b0", "b1"))]
    world = World(*cluster(), group("o", 1, phase="Running"), *others, group(minimum=size, **topology), *pods(size))
    world.cycle()
    assert placed(world) == {}
    assert reason(world) == ("NetworkTopology", words)


@pytest.mark.shows("scheduler 2.2/soft topology", "scheduler 3.12/soft")
def test_a_wish_is_followed_where_it_can_be_and_holds_nobody_up():
    world = World(*cluster(), group(minimum=6, **close("soft", highestTierAllowed=1)), *pods(6))
    world.put(group("h", 11, **close("soft", highestTierAllowed=1)), *pods(11, "h"))
    world.cycle()
    assert racks(world) == {"a"}
    assert len(placed(world, "h")) == 11


@pytest.mark.shows("scheduler 2.2/soft topology", "scheduler 3.12/soft")
@pytest.mark.parametrize("mode", ["hard", "soft"])
def test_where_no_tier_is_named_the_lowest_is_taken_and_all_nodes_will_do(mode):
    world = World(*cluster(), group(minimum=6, **close(mode)), *pods(6), group("h", 11, **close(mode)), *pods(11, "h"))
    world.cycle()
    assert racks(world) == {"a"}
    assert len(placed(world, "h")) == 11


@pytest.mark.shows("scheduler 3.12/hypernode.binpack", "scheduler 3.12/equals")
def test_the_fuller_hyper_node_comes_first_and_of_equals_the_first():
    others = [pod("o-0", "o", node="b0", phase="Running")]
    world = World(
        *cluster(), group("o", 1, phase="Running"), *others, group(minimum=4, **close(highestTierAllowed=1)), *pods(4)
    )
    world.cycle()
    assert racks(world) == {"b"}


def test_pods_that_run_say_where_the_others_go():
    world = World(
        *cluster(),
        group(minimum=3, phase="Running", **close(highestTierAllowed=1)),
        *(pod(f"g-{n}", node="b1", phase="Running") for n in range(2)),
        *pods(2, first=2),
    )
    world.cycle()
    assert racks(world) == {"b"}
    assert len(placed(world)) == 4


def without_the_row():
    return [each for each in cluster() if each[1]["metadata"]["name"] != "row"]


def without_hyper_nodes():
    return [each for each in cluster() if each[0] is not resources.HYPER_NODES]


@pytest.mark.shows("scheduler 3.12/hard", "scheduler 2.2/hard topology")
@cases("objects, highest, size, found", {
    "one tier above the highest": (without_the_row(), 2, 18, {"a", "b", "z"}),
    "far above it": (without_the_row(), 7, 18, {"a", "b", "z"}),
    "one HyperNode will do": (without_the_row(), 2, 8, {"a"}),
    "with a row": (cluster(), 3, 18, {"a", "b", "z"}),
    "no higher than the row": (cluster(), 2, 18, set()),
    "no HyperNode at all": (without_hyper_nodes(), 1, 18, {"a", "b", "z"}),
    "below the whole cluster": (without_hyper_nodes(), 0, 1, set()),
})  # fmt: skip
def test_a_tier_above_all_hyper_nodes_is_the_whole_cluster(objects, highest, size, found):
    world = World(*objects, group(minimum=size, **close(highestTierAllowed=highest)), *pods(size))
    world.cycle()
    assert racks(world) == found


@pytest.mark.parametrize("policy", ["group", "sub-group"])
def test_a_missing_pod_comes_to_the_others_wherever_they_are_where_the_whole_cluster_will_do(policy):
    topology = close(highestTierAllowed=2)
    parts = [{"name": "all", "subGroupSize": 3, "labelSelector": {"matchLabels": {"part": "x"}}, **topology}]
    asked = topology if policy == "group" else {"subGroupPolicy": parts}
    world = World(
        *without_the_row(),
        group(minimum=3, phase="Running", **asked),
        pod("g-0", node="a0", phase="Running", labels={"part": "x"}),
        pod("g-1", node="b0", phase="Running", labels={"part": "x"}),
        *pods(1, first=2, labels={"part": "x"}),
    )
    world.cycle()
    assert len(placed(world)) == 3
    assert world.status()["phase"] == "Running"


def test_others_are_evicted_wherever_they_are_where_the_whole_cluster_will_do():
    low = [pod(f"low-{name}", "low", "4", node=name, phase="Running") for name in ("a0", "a1", "b0", "b1", "z0")]
    world = World(
        *without_the_row(),
        priority_class("high", 9),
        group("low", 1, phase="Running"),
        *low,
        group(minimum=3, priorityClassName="high", **close(highestTierAllowed=2)),
        *pods(3, cpu="4"),
    )
    world.cycle()
    assert len(world.going()) == 3


def test_pods_that_are_too_far_apart_already_keep_the_others_waiting():
    world = World(
        *cluster(),
        group(minimum=3, phase="Running", **close(highestTierAllowed=1)),
        pod("g-0", node="a0", phase="Running"),
        pod("g-1", node="b0", phase="Running"),
        *pods(1, first=2),
    )
    world.cycle()
    assert len(placed(world)) == 2
    assert reason(world)[1].startswith("2 of the pods have nodes that are not together in one HyperNode of tier 1")


@pytest.mark.shows("scheduler 3.12/beyond")
def test_pods_beyond_the_minimum_go_up_a_tier_when_theirs_is_full_and_stay_within_the_highest():
    world = World(*cluster(), group(minimum=8, **close(highestTierAllowed=2)), *pods(20))
    world.cycle()
    assert len(placed(world)) == 16
    assert "z0" not in placed(world).values()
    waiting = [name for name in (f"g-{n}" for n in range(20)) if name not in placed(world)]
    statuses = (world.get(resources.PODS, name)["status"] for name in waiting)
    (told,) = {each["message"] for status in statuses for each in status.get("conditions", ())}
    assert told == (
        "16 of 20 pods have a node; the others must be with them in one HyperNode of tier 2 or lower, "
        "and there is no room for another."
    )


def test_hyper_nodes_that_come_let_in_who_waits_for_them():
    """Also one without nodes says that there are racks, so that the whole cluster is none."""
    bare = [each for each in cluster() if each[0] is not resources.HYPER_NODES]
    world = World(*bare, hyper_node("rack-c", 1, rack("c")), group(minimum=2, **close(highestTierAllowed=1)), *pods(2))
    world.cycle()
    assert placed(world) == {}
    world.put(hyper_node("rack-b", 1, rack("b")))
    world.cycle(10)
    assert racks(world) == {"b"}


def test_labels_of_nodes_that_change_move_them_between_hyper_nodes():
    world = World(*cluster(), group(minimum=8, **close(highestTierAllowed=1)))
    world.put(node("z0", "4", labels={"rack": "b"}), group("h", 12, **close(highestTierAllowed=1)), *pods(12, "h"))
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
@pytest.mark.parametrize("spec", [{}, close(highestTierAllowed=1)], ids=["ordinary", "asks for a HyperNode"])
def test_whole_hyper_nodes_are_left_for_those_who_ask_for_one(spec):
    """By the fullest node alone an ordinary pod would go to b0."""
    busy = [("a0", 2), ("a1", 2), ("b0", 3)]
    others = [
        pod(f"o-{name}-{number}", "o", node=name, phase="Running") for name, count in busy for number in range(count)
    ]
    nodes = [node("b0", "4", labels={"rack": "b"}), node("z0", "4", unschedulable=True)]
    world = World(*cluster(), *nodes, packing(), group("o", 1, phase="Running"), *others, group(**spec), *pods(1))
    world.cycle()
    assert racks(world) == {"a"}


@pytest.mark.shows("scheduler 3.12/hypernode.binpack.normal-pod")
def test_a_gang_without_a_topology_is_placed_as_ever_beside_one_that_has_one():
    with_one = World(
        *cluster(), group(minimum=2, **close(highestTierAllowed=1)), *pods(2), group("h", 3), *pods(3, "h")
    )
    with_one.cycle()
    assert len(placed(with_one, "h")) == 3
    assert annotation(with_one, "h") is None
