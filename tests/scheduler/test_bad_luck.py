"""What goes wrong in one place stops nobody in another: each world has one misfortune, and a job beside it that starts."""

from __future__ import annotations

import pytest

from kube.meta import timestamp
from kube.resources import NODES, PODS

from .test_topology import hyper_node, named
from .world import START, World, configuration, group, keeping, node, pod, queue

WAIT = 300
GATED = {"schedulingGates": [{"name": "g"}]}


def waiting(name, cpu="1", pods=1, *, ago=0, where="default", **spec):
    """A group that was let in, with pods that wait since so many seconds."""
    created = timestamp(START - ago * 1000)
    found = [group(name, pods, queue=where, created=created)]
    for number in range(pods):
        kind, one = pod(f"{name}-{number}", name, cpu, **spec)
        one["metadata"]["creationTimestamp"] = created
        found.append((kind, one))
    return found


def running(name, node, cpu="1", where="default"):
    return [group(name, 1, phase="Running", queue=where), pod(f"{name}-0", name, cpu, phase="Running", node=node)]


MISFORTUNES = {
    "a queue of weight 0": [queue("bad", weight=0), *waiting("x", "1", where="bad")],
    "all other queues have weight 0": [queue("b1", weight=0), queue("b2", weight=0), *waiting("x", "9", where="b1")],
    "a guarantee above the cluster": [queue("bad", capability={"cpu": "99"}, **keeping(2)), *waiting("x", "50", where="bad")],
    "a resource that no node has": waiting("x", requests={"example.com/none": "1"}, ago=WAIT),
    "a pod larger than any node": waiting("x", "99", ago=WAIT),
    "a gang larger than the cluster": waiting("x", "1", 99, ago=WAIT),
    "a gang behind scheduling gates": waiting("x", "4", 2, ago=WAIT, **GATED),
    "a queue that does not exist": waiting("x", where="gone", ago=WAIT),
    "a queue whose parent does not exist": [queue("bad", parent="gone"), *waiting("x", "9", where="bad", ago=WAIT)],
    "queues that are above each other": [queue("b1", parent="b2"), queue("b2", parent="b1"), *waiting("x", "9", where="b1", ago=WAIT)],
    "a queue with a ceiling of nothing": [queue("bad", capability={"cpu": "0"}), *waiting("x", where="bad", ago=WAIT)],
    "a parent with a ceiling of nothing": [
        queue("top", capability={"cpu": "0"}), queue("bad", parent="top"), *waiting("x", where="bad", ago=WAIT),
    ],
    "a node that shrank below what runs there": [node("n0", cpu="1", pods=99), *running("x", "n0", "4")],
    "a node that runs pods and is gone": running("x", "gone", "4"),
    "a node that offers nothing": [node("n0", cpu="0", pods=0)],
    "an amount that is none": [queue("bad", capability={"cpu": "much"}), *waiting("x", where="bad")],
}  # fmt: skip


HUGE = {"requests": {"memory": "8Pi"}}
MISFORTUNES["pods that ask for more in all than 64 bits hold"] = [
    *waiting("x", pods=1), *(pod(f"x-more-{number}", "x", **HUGE) for number in range(1024)),
]  # fmt: skip
MISFORTUNES["the same in one of several HyperNodes"] = [
    node("n0", pods=99),
    *(hyper_node(f"rack-{name}", 1, *named(name)) for name in ("n0", "n1")),
    group("x", networkTopology={"mode": "hard", "highestTierAllowed": 1}),
    pod("x-0", "x"),
    *(pod(f"x-more-{number}", "x", role="more", **HUGE) for number in range(1024)),
]


@pytest.mark.parametrize("misfortune", MISFORTUNES.values(), ids=MISFORTUNES.keys())
def test_the_others_start(misfortune):
    world = World(node("n1", pods=99), queue(), *misfortune, *waiting("fine", "1"))
    world.cycle()
    assert "fine-0" in world.where()
    world.cycle(seconds=1)
    assert world.condition("fine") is None


@pytest.mark.parametrize(
    "hopeless",
    [
        name
        for name in MISFORTUNES
        if name.startswith(("a resource", "a pod", "a gang", "a queue that", "a queue with"))
    ],
)
def test_a_gang_that_cannot_start_takes_no_place_in_line(hopeless):
    """The one that waits longest for nothing keeps the next one of its queue from no reservation."""
    world = World(
        node("n1", pods=99), queue(reclaimable=False), *MISFORTUNES[hopeless], *running("r", "n1", "2"), *waiting("big", "3", ago=WAIT)
    )  # fmt: skip
    world.cycle()
    assert sorted(world.snapshot.reserved) == ["ns/big"]


def test_a_queue_deserves_what_it_uses_whatever_hopeless_pods_ask_for():
    """Their sum, cut to 64 bits, would be less than nothing, and others could take back what the queue uses."""
    world = World(
        node("n1", pods=99), queue(weight=3), queue("b"), *running("x", "n1", "4"),
        *waiting("mine"), *(pod(f"more-{number}", "mine", cpu="1e16") for number in range(1024)),
        *waiting("b", "2", where="b"),
    )  # fmt: skip
    world.cycle()
    assert world.going() == []


def test_gated_pods_promise_nothing():
    """Neither at the entry nor on nodes is anything kept for pods that may not start."""
    gated = [
        group("gated", 4, minResources={"cpu": "4"}),
        *(pod(f"gated-{n}", "gated", "1", **GATED) for n in range(4)),
    ]
    world = World(node("n1", pods=99), queue(), *gated, group("asks", 1, phase="", minResources={"cpu": "4"}))
    world.cycle(seconds=2 * WAIT)
    assert world.status("asks")["phase"] == "Inqueue"
    assert not world.snapshot.reserved


def test_guarantees_of_all_queues_together_above_the_cluster_leave_somebody_his():
    """Each is owed more than there is left for him; what is there is used."""
    queues = [queue(name, **keeping(3)) for name in "ab"]
    jobs = [each for name in "ab" for number in range(3) for each in waiting(f"{name}{number}", where=name)]
    world = World(node("n1", pods=99), *queues, *jobs)
    world.cycle()
    assert len(world.where()) == 4


def test_guarantees_of_others_above_the_cluster_keep_nobody_from_his_own():
    """It was told that it can never start, as all but 3.2 CPU were kept for others."""
    needs = {"minResources": {"cpu": "4"}}
    world = World(
        node("n1", pods=99), queue("vip", **keeping(4)), queue("other", **keeping(9)), group("g", 4, queue="vip", phase="Pending", **needs)
    )  # fmt: skip
    world.cycle()
    assert world.status()["phase"] == "Inqueue"


@pytest.mark.parametrize("where", ["own", "above"])
def test_under_a_ceiling_a_large_gang_comes_to_its_turn(where):
    """The nodes have room; it is the ceiling of the queue, or of the one above it, that small jobs use up."""
    top = queue("top", capability={"cpu": "4"} if where == "above" else {})
    leaf = queue("leaf", parent="top", capability={"cpu": "4"} if where == "own" else {})
    small = [each for number in range(4) for each in running(f"s{number}", "n1", where="leaf")]
    world = World(node("n1", cpu="9", pods=99), top, leaf, *small, *waiting("big", "3", where="leaf", ago=WAIT))
    world.cycle()
    assert sorted(world.snapshot.reserved) == ["ns/big"]
    for number in range(3):
        world.remove(PODS, f"s{number}-0")
        world.put(*waiting(f"t{number}", where="leaf"))
        world.cycle(seconds=1)
        assert f"t{number}-0" not in world.where()
    assert "big-0" in world.where()


def test_a_node_that_shrinks_under_a_reservation_is_left():
    world = World(
        *(node(f"n{number}", pods=99) for number in range(2)), queue(reclaimable=False),
        *running("a", "n0", "3"), *running("b", "n1", "4"), *waiting("big", "4", ago=WAIT),
    )  # fmt: skip
    world.cycle()
    world.put(node("n0", cpu="2", pods=99))
    world.cycle(seconds=1)
    assert world.snapshot.reserved["ns/big"].places == ((("n1", 1),),)
    world.remove(NODES, "n1")
    world.cycle(seconds=1)
    assert not world.snapshot.reserved


def test_two_schedulers_that_began_at_once_decide_the_same():
    objects = [
        node("n1", pods=99), queue(), configuration('actions: "enqueue, allocate, backfill"'),
        *running("a", "n1", "2"), *waiting("big", "3", ago=WAIT), *waiting("small"),
    ]  # fmt: skip
    first, second = World(*objects), World(*reversed(objects))
    assert [each.status for each in first.cycle().groups] == [each.status for each in second.cycle().groups]
    assert first.where() == second.where()
    assert first.snapshot.reserved == second.snapshot.reserved
