"""What goes wrong in one place stops nobody in another: a world with one misfortune, and a job beside it."""

from __future__ import annotations

from kube.resources import NODES
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
