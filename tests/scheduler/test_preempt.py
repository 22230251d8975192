"""Preempt: groups of higher priority take the room of others in their queue."""

from __future__ import annotations

import pytest

from kube.resources import PODS
from scheduler.policy.policy import Action, Policy
from tests.tables import cases

from .world import World, group, pod, priority_class

OWN = "queue default reclaimable=false"  # nobody else takes anything from it
ONE = f"node n1 pods:99; {OWN}"
TWO = f"node n1..2 pods:99; {OWN}"
CLASSES = [
    *(priority_class(name, value) for name, value in (("low", -5), ("mid", 5), ("top", 100))),
    priority_class("calm", 100, preemptionPolicy="Never"),
]


def saying(value, name="low-3", where="annotations", of=pod, **more):
    """An object of the group low that says of itself whether it may be preempted."""
    more = more or {"group": "low", "phase": "Running", "node": "n1"}
    kind, obj = of(name, **more)
    obj["metadata"].setdefault(where, {})["volcano.sh/preemptable"] = value
    return kind, obj


def running(name, group="low", **more):
    return pod(name, group, phase="Running", node="n1", **more)


THREE = "group low 1/3x1 low @n1; group g 1x1 high"
FOUR = "group low 1/4x1 low @n1"
ROLES = [running(f"{role}-{number}", role=role) for role in "ab" for number in range(2)]


@pytest.mark.shows(
    "scheduler 1.3/preemptable", "scheduler 1.10/victims", "scheduler 2.4/queue", "scheduler 2.4/priority"
)
@pytest.mark.shows(
    "scheduler 2.4/Never", "scheduler 2.4/preemptable", "scheduler 2.4/no use", "scheduler 2.4/free room"
)
@pytest.mark.shows("scheduler 2.4/gangs", "scheduler 2.4/roles", "scheduler 3.1/victims", "scheduler 3.2/victims")
@pytest.mark.shows("scheduler 3.3/classes", "scheduler 3.4/victims", "coscheduling 4/preemption", "scheduler 10.1/17")
@pytest.mark.shows("scheduler 10.2/7", "scheduler 11/1", "scheduler 11/14", "scheduler 3.11 tdm/preempt")
@pytest.mark.shows("scheduler 2.6/gangpreempt")
@cases("objects, victims", {
    "one goes, the one that was to start last": ([FOUR, "group g 1x1 high"], "low-3"),
    "as many as the minimum needs": ([FOUR, "group g 2x1 high"], "low-2 low-3"),
    "what is free counts": (["group low 1/3x1 low @n1; group g 2x1 high"], "low-2"),
    "a large pod for a small one": (["group low 1/2x2 low @n1; group g 1x1 high"], "low-1"),
    "nobody goes for a gang that would not fit": ([FOUR, "group g 5x1 high"], ""),
    "nobody goes for a pod larger than any node": ([FOUR, "group g 1x9 high"], ""),
    "equal priority": ([FOUR, "group g 1x1 low"], ""),
    "lower": (["group low 1/4x1 high @n1; group g 1x1 low"], ""),
    "another queue": ([FOUR, "queue other; group g 1x1 high queue=other"], ""),
    "a gang goes whole": (["group low 4x1 low @n1; group g 1x1 high"], "low-0 low-1 low-2 low-3"),
    "what is beyond a minimum goes alone": (["group low 3/4x1 low @n1; group g 1x1 high"], "low-3"),
    "loose pods before whole gangs":
        (["group low 2x1 low @n1; group loose 1/2x1 low @n1; group g 1x1 high"], "loose-1"),
    "the lowest priority first":
        (["group mid 1/2x1 priorityClassName=mid @n1; group low 1/2x1 low @n1; group g 3x1 high"], "low-0 low-1 mid-1"),
    "the youngest first":
        (["group a 1/2x1 low @n1 created=2026-01-02; group b 1/2x1 low @n1; group g 1x1 high"], "a-1"),
    "its class preempts never": ([FOUR, "group g 1x1 priorityClassName=calm"], ""),
    "its pod preempts never": ([FOUR, "group g 1/0x1 high", pod("g-0", preemptionPolicy="Never")], ""),
    "a pod says no": ([THREE, saying("false")], "low-2"),
    "a pod's label says no": ([THREE, saying("false", where="labels")], "low-2"),
    "no truth value is a no": ([THREE, saying("perhaps")], "low-2"),
    "a pod says yes where its group says no":
        ([THREE, saying("false", "low", of=group, phase="Running", priorityClassName="low"), saying("true")], "low-3"),
    "critical pods stay": ([THREE, running("low-3", priorityClassName="system-node-critical")], "low-2"),
    "a gang stays of which one pod has to stay": (["group low 4/3x1 low @n1; group g 1x1 high", saying("false")], ""),
    "pods without a group that exists stay": (["group low 1/3x1 low @n1; pod free @n1; group g 4x1 high"], ""),
    "the minimum of a role stays": (
        [group("low", 2, phase="Running", priorityClassName="low", minTaskMember={"a": 2}), *ROLES,
         "group g 2x1 high"], "b-0 b-1",
    ),
})  # fmt: skip
def test_who_goes(objects, victims):
    here = World(ONE, *CLASSES, *objects)
    decisions = here.cycle()
    assert here.going() == victims.split()
    assert sorted(each.pod.name for each in decisions.evictions) == victims.split()
    assert all(each.action is Action.PREEMPT for each in decisions.evictions)


def test_gang_that_gets_more_pods_in_the_same_cycle_stays_until_the_next():
    """It would go without them, and they would stay without it."""
    here = World(f"node n1 5; {OWN}; group low 2x2 low @n1; pod low-2 group=low; group g 2x2 high")
    assert here.cycle().evictions == []
    assert "low-2" in here.where()
    here.cycle()
    assert here.going() == ["low-0", "low-1", "low-2"]


def preempted(groups=f"{FOUR}; group g 2x1 high", nodes=ONE):
    """A world in which victims were asked to end."""
    here = World(nodes, *CLASSES, groups)
    here.cycle()
    return here


def assert_starts(here, *others, count=2):
    assert {*others, *(f"g-{number}" for number in range(count))} <= here.where().keys()


@pytest.mark.shows("scheduler 1.9/evicted", "scheduler 1.9/evicted, group", "scheduler 2.4/nominatedNodeName")
def test_victims_are_told_why_and_the_group_says_whom_it_waits_for():
    here = preempted()
    assert (here.reason(), here.told()) == (
        "WaitingForVictims", "2 pods of low are asked to end, so that this can start.",
    )  # fmt: skip
    (mark,) = here.get(PODS, "low-3")["status"]["conditions"]
    assert (mark["type"], mark["status"], mark["reason"]) == ("DisruptionTarget", "True", "PreemptionByScheduler")
    told = {(e["type"], e["reason"], e["message"]) for e in here.events if e["involvedObject"]["kind"] == "Pod"}
    assert told == {("Warning", "Evict", "Pod is evicted, because of preempt: pod group ns/g gets its room.")}
    here.gone()
    here.cycle()
    assert_starts(here)
    assert (here.condition()["status"], here.condition(kind="Scheduled")["status"]) == ("False", "True")


def test_nobody_else_goes_while_victims_are_going():
    here = preempted()
    for _ in range(3):
        assert here.cycle(seconds=20).evictions == []
    here.gone("low-3")
    assert here.cycle(seconds=20).evictions == []
    assert here.told().startswith("2 pods of low")


@pytest.mark.shows("scheduler 2.2/nominated node", "scheduler 2.4/nominatedNodeName")
@cases("seconds", {"at once": 0, "after a minute": 60})
def test_room_of_victims_is_kept(seconds):
    """Also from what its controller makes again, and from a queue that would be served before."""
    here = preempted(f"{FOUR}; group g 2x1 high; queue other priority=9")
    here.gone("low-3")
    here.put("pod low-3 group=low; group new 1x1 high queue=other")
    here.cycle(seconds)
    assert here.bound == {}
    here.gone("low-2")
    here.cycle(seconds)
    assert_starts(here)


def test_who_decides_next_knows_what_is_kept():
    here = preempted()
    here.snapshot = here.rebuilt()
    here.gone("low-3")
    here.put("pod low-3 group=low")
    assert here.cycle(seconds=60).evictions == []
    here.gone("low-2")
    here.snapshot = here.rebuilt()
    here.cycle()
    assert_starts(here)


def test_higher_priority_in_the_queue_takes_what_is_kept():
    here = preempted()
    here.gone("low-3")
    here.put("group top 1x1 priorityClassName=top")
    here.cycle()
    assert "top-0" in here.where()
    assert here.going() == ["low-1", "low-2"]


def test_room_is_free_for_others_when_the_group_wants_it_no_more():
    here = preempted()
    here.put("gone; pod low-2..3 group=low; -pod g-0; -pod g-1; -group g")
    here.cycle()
    assert here.placed() == "low n1 n1"


def test_others_go_when_victims_never_leave_a_node_that_is_lost():
    here = preempted(f"{FOUR}; group far 1/4x1 low @n2; group g 1x1 high", TWO)
    (victim,) = here.going()
    lost = here.where()[victim]
    here.put(f"node {lost} pods:99 notready")
    decisions = here.cycle(seconds=20)
    assert [each.pod.node for each in decisions.evictions] == ["n1" if lost == "n2" else "n2"]


@pytest.mark.shows("scheduler 1.5/future", "scheduler 1.8/promised", "scheduler 2.4/free room", "scheduler 10.1/11")
def test_pods_that_go_anyway_are_room_to_come():
    here = World(ONE, "group low 1/4x1 low @n1; group g 1x1 high")
    here.end("low-3")
    assert here.cycle().evictions == []
    assert here.reason() == "NotEnoughResources"


def test_two_groups_have_different_victims():
    decisions = World(ONE, FOUR, "group a 1x1 high; group b 2x1 high").cycle()
    victims = sorted((each.beneficiary, each.pod.name) for each in decisions.evictions)
    assert victims == [("ns/a", "low-3"), ("ns/b", "low-1"), ("ns/b", "low-2")]


@pytest.mark.shows("scheduler 2.4/full queue")
@cases("nodes, groups, victims", {
    "in a full queue": ("node n1 99 pods:99; queue default 4", f"{FOUR}; group g 2x1 high", "low-2 low-3"),
    "on several nodes, for pods of several kinds": (
        TWO, "group x 1/4x1 low @n1; group y 1/4x1 low @n2; group g 2/0x1 high; pod g-0 3 group=g; pod g-1 2 group=g",
        "x-2 x-3 y-1 y-2 y-3",
    ),
})  # fmt: skip
def test_room_is_made_where_it_lacks(nodes, groups, victims):
    here = preempted(groups, nodes)
    assert here.going() == victims.split()
    here.gone()
    here.cycle()
    assert_starts(here)


@pytest.mark.shows("scheduler 2.4/not listed")
def test_action_that_is_not_configured_is_not_taken():
    here = World(ONE, FOUR, "group g 1x1 high")
    here.snapshot.policy = Policy(frozenset({Action.ENQUEUE, Action.ALLOCATE}))
    assert here.cycle().evictions == []
    assert here.reason() == "NotEnoughResources"


def test_same_snapshot_gives_the_same_victims():
    texts = ["node n1 pods:99", "node n2 pods:99", "group a 1/4x1 low @n1", "group b 1/4x1 low @n2", "group g 3x1 high"]
    here, there = World(OWN, *texts), World(OWN, *reversed(texts))
    assert [e.pod.name for e in here.cycle().evictions] == [e.pod.name for e in there.cycle().evictions]


def test_costly_search_in_vain_is_not_made_again_at_once(monkeypatch):
    """Each change of a large cluster would cost it again."""
    monkeypatch.setattr("scheduler.cycle.evictions.COSTLY", 3)
    here = World(f"node n1 5 pods:99; {OWN}; {FOUR}; group g 1x5 high")
    here.put(running("fixed", priorityClassName="system-node-critical"))
    decisions = here.cycle()
    assert decisions.evictions == []
    assert decisions.wake is not None
    here.put("-pod fixed")
    assert here.cycle(seconds=1).evictions == []
    assert len(here.cycle(seconds=5).evictions) == 4


@cases("more", {"": "", "a guarantee": "; queue vip keeps=1"})
def test_what_is_idle_while_victims_go_is_others(more):
    """The group's room comes from its victims: it waits for the ceiling of its queue, and nothing is kept for it beside them."""
    here = preempted(f"group low 1/2x1 low @n1 queue=own; group g 2x1 high queue=own; queue own 2{more}")
    assert here.going() == ["low-0", "low-1"]
    here.put("group other 1x1")
    here.cycle()
    assert here.where()["other-0"] == "n1"
    here.gone()
    here.cycle()
    assert_starts(here)


def test_what_victims_do_not_leave_is_kept_while_they_go():
    """The group needs four: two are free."""
    here = preempted("group low 1/2x1 low @n1; group g 4x1 high")
    here.put("group other 1x1")
    here.cycle()
    assert "other-0" not in here.where()
    here.gone()
    here.cycle()
    assert_starts(here, count=4)
