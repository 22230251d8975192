"""What is kept of a cycle's decisions: each once, in words with numbers, and nothing while nothing new is decided."""

from __future__ import annotations

from scheduler.writes import groups_of
from tests.tables import cases

from .world import World, configuration, group, node, pod, priority_class, queue


class Told(World):
    """A world that notes what is kept of each cycle, as (kind, group, reason)."""

    def __init__(self, *objects):
        super().__init__(*objects)
        self.kept = []

    def cycle(self, seconds=0):
        decisions = super().cycle(seconds)
        self.kept += [each for some in groups_of(decisions, self.now) for each in some.decisions]
        return decisions

    def told(self, name="g"):
        return [(each.kind, each.reason) for each in self.kept if each.name == name]

    def message(self, kind, name="g"):
        (found,) = [each.message for each in self.kept if (each.kind, each.name) == (kind, name)]
        return found


def test_the_way_of_a_gang_is_told_in_order_each_step_once():
    world = Told(
        node("n1", cpu="4"),
        queue(capability={"cpu": "4"}),
        group("o", phase="Running"),
        pod("o-0", "o", "3", phase="Running", node="n1"),
        group(minimum=2, phase="Pending", minResources={"cpu": "4"}),
    )
    world.cycle()
    for _ in range(5):
        world.cycle(seconds=30)
    assert world.told() == [("refuse", "QueueLimit")]
    assert world.message("refuse").startswith("Waits for room in queue default: its minimum needs 4 CPU, 1 CPU of 4")
    world.remove(*of_pod("o-0"))
    world.cycle(seconds=1)
    assert world.told()[1:] == [("enter", "LetIn")]
    world.put(pod("g-0", cpu="2"), pod("g-1", cpu="2"), pod("x", "o", "1"))
    world.cycle(seconds=1)
    assert world.told()[2:] == [("bind", "MinimumFits")]
    assert world.message("bind") == "2 pods got nodes: g-0 on n1, g-1 on n1; the minimum is 2."
    (bound,) = [each for each in world.kept if each.kind == "bind" and each.name == "g"]
    assert (bound.pods, bound.nodes, bound.queue, bound.at) == (2, (("n1", 2),), "default", world.now)


def of_pod(name):
    from kube.resources import PODS

    return PODS, name


def test_pods_beyond_the_minimum_are_told_as_such():
    world = Told(node("n1", cpu="2"), queue(), group(), pod("g-0"))
    world.cycle()
    world.put(pod("g-1"))
    world.cycle()
    assert world.told() == [("bind", "MinimumFits"), ("bind", "BeyondMinimum")]
    assert [each.message for each in world.kept] == ["g-0 got node n1.", "g-1 got node n1."]


def test_a_large_gang_is_one_row_that_names_the_nodes_with_most_pods():
    world = Told(*(node(f"n{n}", cpu=str(n + 1), pods=99) for n in range(6)), queue(), group(minimum=21))
    world.put(*(pod(f"g-{n:02}") for n in range(21)))
    world.cycle()
    (bound,) = world.kept
    assert (
        bound.message
        == "21 pods got nodes: 6 on n5, 5 on n4, 4 on n3, 3 on n2 and others on 2 more; the minimum is 21."
    )
    assert sum(count for _, count in bound.nodes) == 21


@cases("minimum", {
    "pods of a gang that goes on": 1,
    "a whole gang": 2,
})  # fmt: skip
def test_victims_and_who_gets_their_room_are_told_to_both(minimum):
    world = Told(
        node("n1", cpu="2"),
        queue(),
        priority_class("high", 9),
        group("low", minimum, phase="Running"),
        pod("low-0", "low", phase="Running", node="n1"),
        pod("low-1", "low", phase="Running", node="n1"),
        group(priorityClassName="high"),
        pod("g-0"),
    )
    world.cycle()
    world.cycle(seconds=30)
    assert world.told() == [("refuse", "WaitingForVictims")]
    assert world.told("low") == [("evict", "preempt")]
    (evicted,) = [each for each in world.kept if each.kind == "evict"]
    assert (evicted.other, evicted.pods, evicted.nodes, evicted.queue) == (
        "ns/g",
        minimum,
        (("n1", minimum),),
        "default",
    )
    names = "low-1 was" if minimum == 1 else "low-1, low-0 were"
    assert evicted.message == f"{names} asked to end, because of preempt: pod group ns/g gets the room."
    world.gone()
    world.cycle(seconds=1)
    assert world.told() == [("refuse", "WaitingForVictims"), ("bind", "MinimumFits")]


def test_pods_on_nodes_whose_time_is_over_are_told_without_somebody_who_gets_the_room():
    conf = "actions: enqueue, allocate\ntiers: [{plugins: [{name: tdm, arguments: {tdm.revocable-zone.z: '10:00-11:00'}}]}]"
    lent = node("lent", labels={"volcano.sh/revocable-zone": "z"})
    mark = {"volcano.sh/revocable-zone": "*"}
    kind, one = pod("g-0", phase="Running", node="lent")
    one["metadata"]["annotations"] |= mark
    world = Told(lent, queue(), configuration(conf), group(phase="Running"), (kind, one))
    world.cycle()
    (gone,) = world.kept
    assert (gone.kind, gone.reason, gone.other, gone.queue) == ("evict", "RevocableZoneClosed", "", "default")
    assert gone.message == "g-0 was asked to end, because of tdm: the revocable zone is closed now."
