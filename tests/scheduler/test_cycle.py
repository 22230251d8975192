"""A whole cycle, from objects to what is written."""

import copy

import pytest

from kube.resources import POD_GROUPS, PODS
from tests.tables import cases

from .world import World, pod


@pytest.mark.shows("scheduler 1.3/group-name", "scheduler 1.9/bound", "scheduler 5.1/at once")
@pytest.mark.shows("scheduler 5.2/Scheduled", "scheduler 5.4/group is ready", "groups 3.5/group-name")
@pytest.mark.shows("coscheduling 3/all at once")
def test_a_gang_that_fits_is_bound_and_running_in_one_write():
    kind, one = pod("g-0")
    initialized = {"type": "Initialized", "status": "True", "extra": 1}
    one["status"]["conditions"] = [initialized]
    world = World("node n1; group g 3x1", (kind, one))
    world.cycle()
    assert world.placed() == "g n1 n1 n1"
    assert (world.status()["phase"], world.condition(kind="Scheduled")["status"]) == ("Running", "True")
    assert world.events == []
    bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00.000000Z"}
    assert world.get(PODS, "g-0")["status"]["conditions"] == [initialized, bound]


def test_a_gang_whose_nodes_were_refused_does_not_go_on_saying_that_pods_are_missing():
    """As on another cluster, whose answer takes until then (`SchedulerConsumer.committed`)."""
    world = World("node n1; group g 4/2x1")
    world.cycle()
    world.cycle(seconds=11)
    world.snapshot.groups.resting = {"ns/g"}
    world.put("pod g-2..3 group=g")
    world.cycle(seconds=0.1)
    assert world.placed() == ""
    assert (world.condition()["reason"], world.condition()["status"]) == ("NotEnoughTasks", "False")


@pytest.mark.shows("scheduler 1.10/pods", "scheduler 5.4/pods", "coscheduling 3/too few pods", "scheduler 10.1/19")
@pytest.mark.shows("scheduler 10.2/3")
def test_at_most_ten_pods_of_a_waiting_gang_are_told():
    decisions = World("node n1 10 pods:200; group g 100x1").cycle()
    assert [note.pod.name for note in decisions.groups[0].notes] == [f"g-{i}" for i in range(10)]


def test_when_thousands_of_groups_start_what_became_of_their_pods_is_written_later():
    count = 3000
    world = World(f"node n1 {count} pods:{count}; group g1..{count} 1x1 @n1")
    assert world.cycle().wake == world.now + count
    world.cycle(seconds=count / 1000 - 0.1)
    assert world.writes == 0
    world.cycle(seconds=0.1)
    assert world.writes == count


@pytest.mark.shows("groups 3.6/which", "groups 3.6/minMember", "groups 3.6/group-min-member", "groups 3.6/minResources")
@pytest.mark.shows(
    "groups 3.6/annotations", "groups 3.6/priorityClassName", "coscheduling 3/no group", "scheduler 10.1/6"
)
def test_pods_without_a_group_get_one():
    world = World("node n1; pod solo {priorityClassName: high}")
    world.cycle()
    made = world.get(POD_GROUPS, "podgroup-uid-solo")
    assert made["spec"] == {"minMember": 1, "queue": "default", "priorityClassName": "high"}
    assert made["metadata"]["ownerReferences"][0]["uid"] == "uid-solo"
    world.cycle()
    assert world.where() == {"solo": "n1"}
    assert world.cycle().adoptions == []


MANY = "pod x-more-0..1023 memory:8Pi group=x"
MISFORTUNES = {
    "a queue of weight 0": "queue bad weight=0; group x 1x1 queue=bad",
    "all other queues have weight 0": "queue b1..2 weight=0; group x 1x9 queue=b1",
    "a guarantee above the cluster": "queue bad 99 keeps=2; group x 1x50 queue=bad",
    "a queue whose parent does not exist": "queue bad parent=gone; group x 1x9 queue=bad ago=300",
    "queues that are above each other": "queue b1 parent=b2; queue b2 parent=b1; group x 1x9 queue=b1 ago=300",
    "a parent with a ceiling of nothing": "queue top 0; queue bad parent=top; group x 1x1 queue=bad ago=300",
    "a node that shrank below what runs there": "node n0 1 pods:99; group x 1x4 @n0",
    "a node that runs pods and is gone": "group x 1x4 @gone",
    "a node that offers nothing": "node n0 0 pods:0",
    "a queue with an amount that is none": "queue bad cpu:much; group x 1x1 queue=bad",
    "a queue that is its own parent": "queue x parent=x",
    "a node with an amount that is none": "node x cpu:lots",
    "a group with a minimum that is none": "group x 1/0x1 minMember=many",
    "a pod whose spec is a number": (PODS, {"metadata": {"name": "x", "namespace": "ns"}, "spec": 7}),
    "a pod whose status is null": (PODS, {"metadata": {"name": "x", "namespace": "ns"}, "status": None}),
    "a pod with a request that is none": "pod x cpu:much",
    "a pod with a negative request": "pod x cpu:-5",
    "a pod with a huge request": "pod x 9223372036854775807",
    "a pod with terms that are none":
        "pod x {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {}}}}",
    "a pod with tolerations that are none": "pod x {tolerations: 7}",
    "a pod with a selector that is none": "pod x {nodeSelector: [a]}",
    "pods that ask for more in all than 64 bits hold": f"group x 1x1; {MANY}",
    "the same in one of several HyperNodes":
        f"node n0 pods:99; hypernode a 1 @n0; hypernode b 1 @n1; group x 1x1 topology=hard/1; {MANY} ~task-spec=more",
}  # fmt: skip


@pytest.mark.shows("scheduler 11/12")
@cases("misfortune", MISFORTUNES)
def test_the_others_start(misfortune):
    world = World("node n1 pods:99; queue default", misfortune, "group fine 1x1")
    world.cycle()
    assert "fine-0" in world.bound
    world.cycle(seconds=1)
    assert world.condition("fine") is None


def test_a_queue_deserves_what_it_uses_whatever_hopeless_pods_ask_for():
    """Their sum, cut to 64 bits, would be less than nothing, and others could take back what the queue uses."""
    world = World(
        "node n1 pods:99; queue default weight=3; queue b; group x 1x4 @n1; group mine 1x1; group b 1x2 queue=b"
    )
    world.put("pod more-0..1023 1e16 group=mine")
    world.cycle()
    assert world.going() == []


@pytest.mark.shows("coscheduling 2/deletion")
def test_pods_of_a_group_that_is_deleted_stay_as_they_are():
    world = World("node n1; group g 1x1 @n1")
    world.cycle()
    before = copy.deepcopy(world.get(PODS, "g-0"))
    world.put("-group g")
    world.cycle(seconds=60)
    assert world.get(PODS, "g-0") == before


def test_costly_search_in_vain_is_not_made_again_at_once(monkeypatch):
    """Each change of a large cluster would cost it again."""
    monkeypatch.setattr("scheduler.cycle.evictions.COSTLY", 3)
    world = World("node n1 5 pods:99; queue default reclaimable=false; group low 1/4x1 low @n1; group g 1x5 high")
    world.put("pod fixed group=low @n1 {priorityClassName: system-node-critical}")
    decisions = world.cycle()
    assert (decisions.evictions, decisions.wake is None) == ([], False)
    world.put("-pod fixed")
    assert world.cycle(seconds=1).evictions == []
    assert len(world.cycle(seconds=5).evictions) == 4
