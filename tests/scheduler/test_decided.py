"""What is kept of a cycle's decisions: each once, in words with numbers, and nothing while nothing new is decided."""

from __future__ import annotations

from kube.resources import PODS
from scheduler.writes import groups_of
from tests.tables import cases

from .world import World, configuration, group, pod


class Kept(World):
    """A world that notes what is kept of each cycle."""

    def __init__(self, *objects):
        super().__init__(*objects)
        self.kept = []

    def cycle(self, seconds=0):
        decisions = super().cycle(seconds)
        self.kept += [each for some in groups_of(decisions, self.now) for each in some.decisions]
        return decisions

    def steps(self, name="g"):
        return [f"{each.kind} {each.reason}" for each in self.kept if each.name == name]

    def only(self, kind, name="g"):
        (found,) = [each for each in self.kept if (each.kind, each.name) == (kind, name)]
        return found


def test_the_way_of_a_gang_is_told_in_order_each_step_once():
    world = Kept("node n1; queue default 4; group o 1x3 @n1; group g 4 minMember=2")
    world.cycle()
    for _ in range(5):
        world.cycle(seconds=30)
    assert world.steps() == ["refuse QueueLimit"]
    waits = "Waits for room in queue default: its minimum needs 4 CPU, 1 CPU of 4"
    assert world.only("refuse").message.startswith(waits)
    world.remove(PODS, "o-0")
    world.cycle(seconds=1)
    world.put("pod g-0..1 2 group=g; pod x 1 group=o")
    world.cycle(seconds=1)
    assert world.steps()[1:] == ["enter LetIn", "bind MinimumFits"]
    bound = world.only("bind")
    assert bound.message == "2 pods got nodes: g-0 on n1, g-1 on n1; the minimum is 2."
    assert (bound.pods, bound.nodes, bound.queue, bound.at) == (2, (("n1", 2),), "default", world.now)


def test_pods_beyond_the_minimum_are_told_as_such():
    world = Kept("node n1 2; group g 1x1")
    world.cycle()
    world.put("pod g-1 group=g")
    world.cycle()
    assert world.steps() == ["bind MinimumFits", "bind BeyondMinimum"]
    assert [each.message for each in world.kept] == ["g-0 got node n1.", "g-1 got node n1."]


def test_a_large_gang_is_one_row_that_names_the_nodes_with_most_pods():
    world = Kept("; ".join(f"node n{n} {n + 1} pods:99" for n in range(6)), "group g 21x1")
    world.cycle()
    (bound,) = world.kept
    nodes = "6 on n5, 5 on n4, 4 on n3, 3 on n2 and others on 2 more"
    assert bound.message == f"21 pods got nodes: {nodes}; the minimum is 21."
    assert sum(count for _, count in bound.nodes) == 21


@cases("minimum, names", {
    "pods of a gang that goes on": (1, "low-1 was"),
    "a whole gang": (2, "low-1, low-0 were"),
})  # fmt: skip
def test_victims_and_who_gets_their_room_are_told_to_both(minimum, names):
    world = Kept(f"node n1 2; group low {minimum}/2x1 @n1; group g 1x1 high")
    world.cycle()
    world.cycle(seconds=30)
    assert (world.steps(), world.steps("low")) == (["refuse WaitingForVictims"], ["evict preempt"])
    evicted = world.only("evict", "low")
    assert (evicted.other, evicted.pods, evicted.queue) == ("ns/g", minimum, "default")
    assert evicted.nodes == (("n1", minimum),)
    assert evicted.message == f"{names} asked to end, because of preempt: pod group ns/g gets the room."
    world.gone()
    world.cycle(seconds=1)
    assert world.steps() == ["refuse WaitingForVictims", "bind MinimumFits"]


TDM = "actions: enqueue, allocate\ntiers: [{plugins: [{name: tdm, arguments: {tdm.revocable-zone.z: '10:00-11:00'}}]}]"


def test_pods_on_nodes_whose_time_is_over_are_told_without_somebody_who_gets_the_room():
    kind, one = pod("g-0", phase="Running", node="lent")
    one["metadata"]["annotations"]["volcano.sh/revocable-zone"] = "*"
    lent = "node lent volcano.sh/revocable-zone=z; queue default"
    world = Kept(lent, configuration(TDM), group(phase="Running"), (kind, one))
    world.cycle()
    (gone,) = world.kept
    assert (gone.kind, gone.reason, gone.other, gone.queue) == ("evict", "RevocableZoneClosed", "", "default")
    assert gone.message == "g-0 was asked to end, because of tdm: the revocable zone is closed now."
