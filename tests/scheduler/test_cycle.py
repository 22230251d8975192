"""A whole cycle, from objects to what is written."""

from __future__ import annotations

import pytest

from kube.resources import POD_GROUPS, PODS
from scheduler.writes import groups_of
from tests.tables import cases

from .blocks import blocks
from .test_topology import hyper_node, named
from .world import Story, World, configuration, group, node, pod, queue


def condition_of(world, name):
    """The only condition of a pod."""
    (found,) = world.get(PODS, name)["status"]["conditions"]
    return found


@pytest.mark.shows("scheduler 1.3/group-name", "scheduler 1.9/bound", "scheduler 5.1/at once")
@pytest.mark.shows("scheduler 5.2/Scheduled", "scheduler 5.4/group is ready", "groups 3.5/group-name")
@pytest.mark.shows("coscheduling 3/all at once")
def test_a_gang_that_fits_is_bound_and_running_in_one_write():
    kind, one = pod("g-0")
    kept = {"type": "Initialized", "status": "True", "extra": 1}
    one["status"]["conditions"] = [kept]
    world = World("node n1; group g 3x1", (kind, one))
    world.cycle()
    assert world.placed() == "g n1 n1 n1"
    assert (world.status()["phase"], world.condition(kind="Scheduled")["status"]) == ("Running", "True")
    assert world.events == []
    bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00.000000Z"}
    assert world.get(PODS, "g-0")["status"]["conditions"] == [kept, bound]


@blocks("stories")
def test_what_comes_of_situations_step_by_step(block, golden):
    golden(block, Story().tell, by_line=True)


def test_a_gang_whose_nodes_were_refused_does_not_go_on_saying_that_pods_are_missing():
    """As on another cluster, whose answer takes until then (`SchedulerConsumer.committed`)."""
    world = World("node n1; group g 4/2x1")
    world.cycle()
    world.cycle(seconds=11)
    world.snapshot.resting = {"ns/g"}
    world.put("pod g-2..3 group=g")
    world.cycle(seconds=0.1)
    assert world.placed() == ""
    assert (world.condition()["reason"], world.condition()["status"]) == ("NotEnoughTasks", "False")


@pytest.mark.shows("scheduler 3.7/unschedulable", "scheduler 5.2/reasons", "scheduler 5.4/group waits")
@pytest.mark.shows("scheduler 5.4/entry refused", "coscheduling 2/events", "coscheduling 4/cluster autoscaler")
@pytest.mark.shows("scheduler 10.1/8", "scheduler 10.1/19", "scheduler 11/8", "scheduler 11/9")
@pytest.mark.shows("scheduler 5.3/group", "scheduler 5.3/nodes", "scheduler 5.3/causes")
@pytest.mark.shows("scheduler 1.1/resources", "scheduler 2.1/minResources", "scheduler 2.1/room", "scheduler 2.4/entry")
@pytest.mark.shows("scheduler 2.1/priority", "scheduler 5.1/Pending", "scheduler 5.1/Inqueue", "scheduler 10.1/3")
@pytest.mark.shows("groups 3.1/minResources", "scheduler 3.5/entry", "scheduler 3.5/guarantees of others")
@pytest.mark.shows("scheduler 11/4", "scheduler 11/10")
@blocks("waits")
def test_every_group_that_is_not_let_in_or_not_placed_says_why(block, golden):
    """Its pods and an event say the same; after it comes Volcano's text."""

    def said(text):
        world = World(text.replace("\n", ";"))
        world.cycle()
        told = world.told()
        if not told:
            return [world.phase()]
        if "group g 4x2" in text:
            assert world.placed() == ""
            (event,) = [each for each in world.events if each["involvedObject"]["name"] == "g"]
            assert (event["type"], event["reason"]) == ("Warning", "Unschedulable")
            pod_says = condition_of(world, "g-0")
            assert (pod_says["status"], pod_says["reason"], pod_says["message"]) == ("False", "Unschedulable", told)
        return [f"{world.phase()}, {world.reason()}: {told}", world.condition()["message"].removeprefix(f"{told} ")]

    golden(block, said)


@cases("expression, words", {
    "any of some values": ({"operator": "In", "values": ["h100", "a10O"]},
        "gpu=a10O or gpu=h100 (2 nodes looked at). Nodes have gpu=a100: is that what was meant?"),
    "any of many values": ({"operator": "In", "values": [f"a10{n}" for n in range(1, 8)]},
        "gpu=a101 or gpu=a102 or gpu=a103 or 4 other values (2 nodes looked at)."),
    "whatever value": ({"key": "disk", "operator": "Exists"}, "disk (2 nodes looked at)."),
})  # fmt: skip
def test_the_label_that_no_node_has_is_named_where_it_alone_is_to_blame(expression, words):
    terms = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "gpu", **expression}]}]}
    affinity = {"nodeAffinity": {REQUIRED: terms}}
    world = World("node n0 gpu=a100 zone=x; node n1 gpu=t4 zone=y", group(), pod("g-0", affinity=affinity))
    world.cycle()
    assert world.told() == f"No node has the label {words}"


TOLERANT = {"tolerations": [{"key": "ui.volcano.sh/simulated", "operator": "Exists", "effect": "NoSchedule"}]}


def test_simulated_nodes_take_only_pods_that_ask_for_them():
    world = World("node n1 1; node s0 64 !ui.volcano.sh/simulated=true", group(), pod("g-0", cpu="2", **TOLERANT))
    world.cycle()
    assert world.placed() == "g s0"


SPARK = [pod("driver-0", cpu="2", priority=100), *(pod(f"executor-{i}", priority=1) for i in range(5))]
PS = [pod(f"ps-{i}", role="ps", priority=9) for i in range(2)]
TASKS = [*PS, *(pod(f"worker-{i}", role="worker") for i in range(4))]


@pytest.mark.shows("scheduler 1.3/task-spec", "scheduler 1.4/minTaskMember", "scheduler 1.4/minTaskMember too large")
@pytest.mark.shows("scheduler 3.1/of each task", "groups 3.1/minTaskMember", "scheduler 10.1/10")
@pytest.mark.shows("scheduler 1.4/which pods", "scheduler 1.10/pods", "scheduler 2.4/within a job")
@pytest.mark.shows("scheduler 10.2/3", "scheduler 10.2/5")
@cases("situation, minima, pods, placed", {
    "the driver and two executors": ("node n1 4", {}, SPARK, "driver n1, executor n1 n1"),
    "no executor without the driver": ("node n1 1; node n2 2; pod x @n2", {}, SPARK, ""),
    "minima of tasks hold": ("node n1 3", {"ps": 1, "worker": 2}, TASKS, "ps n1, worker n1 n1"),
    "ignored above minMember": ("node n1 3", {"ps": 2, "worker": 4}, TASKS, "ps n1 n1, worker n1"),
    "the rest in task order": ("node n1 3", {"worker": 1}, TASKS, "ps n1 n1, worker n1"),
})  # fmt: skip
def test_which_pods_of_a_gang_start(situation, minima, pods, placed):
    world = World(situation, group(minimum=3, minTaskMember=minima), *pods)
    world.cycle()
    assert world.placed() == placed


@pytest.mark.shows("scheduler 1.10/pods", "scheduler 5.4/pods", "coscheduling 3/too few pods", "scheduler 10.1/19")
@pytest.mark.shows("scheduler 10.2/3")
def test_at_most_ten_pods_of_a_waiting_gang_are_told():
    decisions = World("node n1 10 pods:200; group g 100x1").cycle()
    assert [note.pod.name for note in decisions.groups[0].notes] == [f"g-{i}" for i in range(10)]


def members(phases, **more):
    return [pod(f"g-{i}", phase=phase, node="n1", **more) for i, phase in enumerate(phases.split())]


@pytest.mark.shows("scheduler 1.4/ready", "coscheduling 3/succeeded count", "scheduler 10.1/10")
@cases("phases, starts", {
    "all that were started have failed": ("Failed Failed Failed", True),
    "with it there is the minimum": ("Failed Failed", True),
    "one has succeeded": ("Succeeded Failed Failed", True),
    "one runs still": ("Running Failed", False),
    "others are to be made": ("Failed", False),
    "two run and make the minimum with it": ("Running Running Failed", True),
})  # fmt: skip
@cases("spec", {"": {}, "of a role": {"minTaskMember": {"worker": 3}}})
def test_last_pod_of_a_gang_that_has_failed_does_not_wait_for_those_that_failed(phases, starts, spec):
    gang = group(minimum=3, phase="Running", **spec)
    world = World("node n1 9", gang, *members(phases, role="worker"), pod("g-9", role="worker"))
    world.cycle(seconds=1)
    assert ("g-9" in world.where()) is starts


def test_when_thousands_of_groups_start_what_became_of_their_pods_is_written_later():
    count = 3000
    world = World(f"node n1 {count} pods:{count}; group g1..{count} 1x1 @n1")
    assert world.cycle().wake == world.now + count
    world.cycle(seconds=count / 1000 - 0.1)
    assert world.writes == 0
    world.cycle(seconds=0.1)
    assert world.writes == count


@pytest.mark.shows("groups 3.6/which", "groups 3.6/minMember", "groups 3.6/group-min-member", "groups 3.6/minResources")
@pytest.mark.shows("groups 3.6/annotations", "coscheduling 3/no group", "scheduler 10.1/6")
def test_pods_without_a_group_get_one():
    world = World("node n1; pod solo")
    world.cycle()
    made = world.get(POD_GROUPS, "podgroup-uid-solo")
    assert made["spec"] == {"minMember": 1, "queue": "default"}
    assert made["metadata"]["ownerReferences"][0]["uid"] == "uid-solo"
    world.cycle()
    assert world.where() == {"solo": "n1"}
    assert world.cycle().adoptions == []


@pytest.mark.shows("groups 3.5/queue-name", "groups 3.6/closed queue")
@pytest.mark.parametrize("state", ["Closed", "Closing"])
def test_pods_without_a_group_wait_until_their_queue_is_open(state):
    kind, obj = pod("solo", group="")
    obj["metadata"]["annotations"]["scheduling.volcano.sh/queue-name"] = "shut"
    world = World(f"node n1; queue shut {state}", (kind, obj))
    world.cycle()
    told = condition_of(world, "solo")
    assert (told["status"], told["reason"]) == ("False", "Unschedulable")
    assert told["message"] == "Queue shut is closed; open it or choose another."
    assert world.cycle().adoptions == []
    assert world.writes == 1
    world.put("queue shut")
    world.cycle()
    world.cycle()
    assert world.where() == {"solo": "n1"}


def owned(name):
    """A pod without a group, of a controller."""
    kind, obj = pod(name, group="")
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "uid-j", "controller": True}
    obj["metadata"]["ownerReferences"] = [owner]
    return kind, obj


def test_a_pod_joins_the_group_that_its_controller_has_in_a_closing_queue():
    world = World("node n1; queue default Closing", group("podgroup-uid-j"), owned("late"))
    world.cycle()
    world.cycle()
    assert world.where() == {"late": "n1"}


@pytest.mark.shows("groups 3.6/one for a controller")
def test_pods_of_one_controller_share_a_group():
    world = World("node n1", owned("a"), owned("b"))
    world.cycle()
    owners = owned("a")[1]["metadata"]["ownerReferences"]
    assert world.get(POD_GROUPS, "podgroup-uid-j")["metadata"]["ownerReferences"] == owners
    world.cycle()
    assert world.where() == {"a": "n1", "b": "n1"}


class Kept(World):
    """A world that notes what is kept of each cycle."""

    def __init__(self, *objects):
        super().__init__(*objects)
        self.kept = []

    def cycle(self, seconds=0):
        decisions = super().cycle(seconds)
        self.kept = [each for some in groups_of(decisions, self.now) for each in some.decisions]
        assert all(each.at == self.now for each in self.kept)
        return decisions


class Decisions(Story):
    """A story of which it is told what is kept."""

    def __init__(self):
        super().__init__()
        self.world = Kept()

    def tell(self, line):
        super().tell(line)
        for each in self.world.kept:
            where = " ".join(f"{node}={pods}" for node, pods in each.nodes)
            who = f"{each.kind} {each.name}{' for ' if each.other else ''}{each.other} in {each.queue}"
            yield f"{who}: {each.reason}, {each.pods} pods {where}: {each.message}"


@blocks("decisions")
def test_what_is_kept_step_by_step(block, golden):
    golden(block, Decisions().tell, by_line=True)


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


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
HUGE = {"requests": {"memory": "8Pi"}}
HYPER_NODE = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}
FINE = "node n1 pods:99; queue default"
# They can never start, and take no place in the line of those for whom room is kept.
HOPELESS = {
    "a resource that no node has": ["group x 1x1 example.com/none:1 ago=300"],
    "a pod larger than any node": ["group x 1x99 ago=300"],
    "a gang larger than the cluster": ["group x 99x1 ago=300"],
    "a gang behind scheduling gates": ["group x 2/0x1 ago=300; pod x-0..1 4 group=x gated"],
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
    "a queue with an amount that is none": [queue("bad", capability={"cpu": "much"}), "group x 1x1 queue=bad"],
    "a queue that is its own parent": ["queue x parent=x"],
    "a node with an amount that is none": [node("x", cpu="lots")],
    "a group with a minimum that is none": [group("x", minMember="many")],
    "a pod whose spec is a number": [(PODS, {"metadata": {"name": "x", "namespace": "ns"}, "spec": 7})],
    "a pod whose status is null": [(PODS, {"metadata": {"name": "x", "namespace": "ns"}, "status": None})],
    "a pod with a request that is none": [pod("x", cpu="much")],
    "a pod with a negative request": [pod("x", cpu="-5")],
    "a pod with a huge request": [pod("x", cpu="9223372036854775807")],
    "a pod with terms that are none": [pod("x", affinity={"nodeAffinity": {REQUIRED: {}}})],
    "a pod with tolerations that are none": [pod("x", tolerations=7)],
    "a pod with a selector that is none": [pod("x", nodeSelector=["a"])],
    "pods that ask for more in all than 64 bits hold":
        ["group x 1x1", *(pod(f"x-more-{number}", "x", **HUGE) for number in range(1024))],
    "the same in one of several HyperNodes": [
        "node n0 pods:99", *(hyper_node(f"rack-{name}", 1, *named(name)) for name in ("n0", "n1")),
        group("x", **HYPER_NODE), pod("x-0", "x"),
        *(pod(f"x-more-{number}", "x", role="more", **HUGE) for number in range(1024)),
    ],
    **HOPELESS,
}  # fmt: skip


@pytest.mark.shows("scheduler 11/12")
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


def test_two_schedulers_that_began_at_once_decide_the_same():
    objects = ["node n1 pods:99; queue default", configuration('actions: "enqueue, allocate, backfill"')]
    objects += ["group a 1x2 @n1", "group big 1x3 ago=300", "group small 1x1"]
    first, second = World(*objects), World(*reversed(objects))
    assert [each.status for each in first.cycle().groups] == [each.status for each in second.cycle().groups]
    assert first.where() == second.where()
    assert first.snapshot.reserved == second.snapshot.reserved
