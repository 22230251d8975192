"""What goes wrong in one place stops nobody in another: a world with one misfortune, and a job beside it."""

from __future__ import annotations

from kube.resources import NODES, PODS
from tests.tables import cases

from .test_topology import hyper_node, named
from .world import World, configuration, group, node, pod, queue

GATED = {"schedulingGates": [{"name": "g"}]}
HUGE = {"requests": {"memory": "8Pi"}}
HYPER_NODE = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}
FINE = "node n1 pods:99; queue default"
# They can never start, and take no place in the line of those for whom room is kept.
HOPELESS = {
    "a resource that no node has": ["group x 1x1 example.com/none:1 ago=300"],
    "a pod larger than any node": ["group x 1x99 ago=300"],
    "a gang larger than the cluster": ["group x 99x1 ago=300"],
    "a gang behind scheduling gates": ["group x 2/0x1 ago=300", *(pod(f"x-{n}", "x", "4", **GATED) for n in range(2))],
    "a queue that does not exist": ["group x 1x1 queue=gone ago=300"],
    "a queue with a ceiling of nothing": ["queue bad 0; group x 1x1 queue=bad ago=300"],
}
MISFORTUNES = {
    "a queue of weight 0": ["queue bad weight=0; group x 1x1 queue=bad"],
    "all other queues have weight 0": ["queue b1..2 weight=0; group x 1x9 queue=b1"],
    "a guarantee above the cluster": ["queue bad 99 keeps=2; group x 1x50 queue=bad"],
    "a queue whose parent does not exist": ["queue bad parent=gone; group x 1x9 queue=bad ago=300"],
    "queues that are above each other": ["queue b1 parent=b2; queue b2 parent=b1; group x 1x9 queue=b1 ago=300"],
    "a parent with a ceiling of nothing": ["queue top 0; queue bad parent=top; group x 1x1 queue=bad ago=300"],
    "a node that shrank below what runs there": ["node n0 1 pods:99; group x 1x4 @n0"],
    "a node that runs pods and is gone": ["group x 1x4 @gone"],
    "a node that offers nothing": [node("n0", cpu="0", pods=0)],
    "an amount that is none": [queue("bad", capability={"cpu": "much"}), "group x 1x1 queue=bad"],
    "pods that ask for more in all than 64 bits hold":
        ["group x 1x1", *(pod(f"x-more-{number}", "x", **HUGE) for number in range(1024))],
    "the same in one of several HyperNodes": [
        "node n0 pods:99", *(hyper_node(f"rack-{name}", 1, *named(name)) for name in ("n0", "n1")),
        group("x", **HYPER_NODE), pod("x-0", "x"),
        *(pod(f"x-more-{number}", "x", role="more", **HUGE) for number in range(1024)),
    ],
    **HOPELESS,
}  # fmt: skip


@cases("misfortune", MISFORTUNES)
def test_the_others_start(misfortune):
    world = World(FINE, *misfortune, "group fine 1x1")
    world.cycle()
    assert "fine-0" in world.bound
    world.cycle(seconds=1)
    assert world.condition("fine") is None


@cases("hopeless", HOPELESS)
def test_a_gang_that_cannot_start_takes_no_place_in_line(hopeless):
    """The one that waits longest for nothing keeps the next one of its queue from no reservation."""
    world = World(
        "node n1 pods:99; queue default reclaimable=false", *hopeless, "group r 1x2 @n1; group big 1x3 ago=300"
    )
    world.cycle()
    assert sorted(world.snapshot.reserved) == ["ns/big"]


def test_a_queue_deserves_what_it_uses_whatever_hopeless_pods_ask_for():
    """Their sum, cut to 64 bits, would be less than nothing, and others could take back what the queue uses."""
    situation = "node n1 pods:99; queue default weight=3; queue b; group x 1x4 @n1; group mine 1x1; group b 1x2 queue=b"
    world = World(situation, *(pod(f"more-{number}", "mine", cpu="1e16") for number in range(1024)))
    world.cycle()
    assert world.going() == []


def test_gated_pods_promise_nothing():
    """Neither at the entry nor on nodes is anything kept for pods that may not start."""
    gated = (pod(f"gated-{n}", "gated", "1", **GATED) for n in range(4))
    world = World("node n1 pods:99; group gated 4 minMember=4 phase=Inqueue; group asks 4 phase=", *gated)
    world.cycle(seconds=600)
    assert world.status("asks")["phase"] == "Inqueue"
    assert not world.snapshot.reserved


def test_guarantees_of_all_queues_together_above_the_cluster_leave_somebody_his():
    """Each is owed more than there is left for him; what is there is used."""
    queues = "queue a keeps=3; queue b keeps=3; group a0..2 1x1 queue=a; group b0..2 1x1 queue=b"
    world = World(f"node n1 pods:99; {queues}")
    world.cycle()
    assert len(world.where()) == 4


def test_guarantees_of_others_above_the_cluster_keep_nobody_from_his_own():
    """It was told that it can never start, as all but 3.2 CPU were kept for others."""
    world = World("node n1 pods:99; queue vip keeps=4; queue other keeps=9; group g 4 minMember=4 queue=vip")
    world.cycle()
    assert world.inside() == {"g"}


@cases("tree", {
    "own": "queue top; queue leaf 4 parent=top",
    "of the queue above": "queue top 4; queue leaf parent=top",
})  # fmt: skip
def test_under_a_ceiling_a_large_gang_comes_to_its_turn(tree):
    """The nodes have room; it is the ceiling of the queue, or of the one above it, that small jobs use up."""
    world = World(f"node n1 9 pods:99; {tree}; group s0..3 1x1 queue=leaf @n1; group big 1x3 queue=leaf ago=300")
    world.cycle()
    assert sorted(world.snapshot.reserved) == ["ns/big"]
    for number in range(3):
        world.remove(PODS, f"s{number}-0")
        world.put(f"group t{number} 1x1 queue=leaf")
        world.cycle(seconds=1)
    assert world.placed() == "big n1"


def test_a_node_that_shrinks_under_a_reservation_is_left():
    running = "group a 1x3 @n0; group b 1x4 @n1; group big 1x4 ago=300"
    world = World(f"node n0..1 pods:99; queue default reclaimable=false; {running}")
    world.cycle()
    world.put("node n0 2 pods:99")
    world.cycle(seconds=1)
    assert world.snapshot.reserved["ns/big"].places == ((("n1", 1),),)
    world.remove(NODES, "n1")
    world.cycle(seconds=1)
    assert not world.snapshot.reserved


def test_two_schedulers_that_began_at_once_decide_the_same():
    objects = ["node n1 pods:99; queue default", configuration('actions: "enqueue, allocate, backfill"')]
    objects += ["group a 1x2 @n1", "group big 1x3 ago=300", "group small 1x1"]
    first, second = World(*objects), World(*reversed(objects))
    assert [each.status for each in first.cycle().groups] == [each.status for each in second.cycle().groups]
    assert first.where() == second.where()
    assert first.snapshot.reserved == second.snapshot.reserved
