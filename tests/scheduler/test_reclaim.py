"""Reclaim: queues that have less than they deserve take from those that have more."""

from __future__ import annotations

import pytest

from scheduler.policy.policy import Action, Policy
from tests.tables import cases

from .world import World, pod, priority_class, queue

NODE = "node n1 8 pods:99"
HALVES = "queue a; queue b"
CALM = priority_class("calm", 0, preemptionPolicy="Never")


def queues_of(names):
    """Return of which queue each pod is, whose group has a name that begins with it."""
    return {name[0] for name in names}


@pytest.mark.shows("scheduler 2.5/for whom", "scheduler 2.5/from whom", "scheduler 2.5/reclaimable")
@pytest.mark.shows("scheduler 2.5/priority", "scheduler 2.5/Never", "scheduler 2.5/guarantee", "scheduler 3.6/reclaim")
@pytest.mark.shows("queues 1.2/reclaimable", "scheduler 11/14", "scheduler 2.6/gangreclaim")
@cases("queues, groups, victims", {
    "up to what it deserves": (HALVES, "group a 1/8x1 queue=a @n1; group b 4x1 queue=b", 4),
    "nothing beyond what it deserves": (HALVES, "group a 1/8x1 queue=a @n1; group b 5x1 queue=b", 0),
    "what is free counts": (HALVES, "group a 1/6x1 queue=a @n1; group b 4x1 queue=b", 2),
    "it has its part": (HALVES, "group a 1/4x1 queue=a @n1; group b 1/4x1 queue=b @n1; group b2 1x1 queue=b", 0),
    "not reclaimable": ("queue a reclaimable=false; queue b", "group a 1/8x1 queue=a @n1; group b 4x1 queue=b", 0),
    "a gang that is all it has": (HALVES, "group a 8x1 queue=a @n1; group b 4x1 queue=b", 8),
    "its last one": (HALVES, "group a 1/2x3 queue=a @n1; group b 4x1 queue=b", 1),
    "its last one, though it is shorter than the other one then":
        (HALVES, "group a 1/2x3 queue=a @n1; group b 1/2x1 queue=b @n1; group b2 1x1 queue=b", 1),
    "a pod that is all it has": (HALVES, "group a 1x8 queue=a @n1; group b 4x1 queue=b", 1),
    "nothing of what it deserves":
        (HALVES, "group a 1x4 queue=a @n1; group b 1x1 queue=b @n1; group b2 4x1 queue=b", 0),
    "what goes for one is enough for two":
        (HALVES, "group a 1/3x2 queue=a @n1; group a2 1x2 queue=a @n1 created=2026-01-02; group b1..2 1x1 queue=b", 1),
    "a gang goes whole where enough is left":
        (HALVES, "group a 4x1 queue=a @n1; group a2 4x1 queue=a @n1 created=2026-01-02; group b 4x1 queue=b", 4),
    "parts by weight": ("queue a weight=3; queue b", "group a 1/8x1 queue=a @n1; group b 2x1 queue=b", 2),
    "a guarantee stays": ("queue a keeps=6; queue b deserved=4", "group a 1/8x1 queue=a @n1; group b 4x1 queue=b", 0),
    "parts as stated": ("queue a deserved=2; queue b deserved=6", "group a 1/8x1 queue=a @n1; group b 6x1 queue=b", 6),
    "whatever the priority": (HALVES, "group a 1/8x1 queue=a @n1 high; group b 1x1 queue=b", 1),
    "its class has nobody evicted":
        (HALVES, "group a 1/8x1 queue=a @n1; group b 1x1 queue=b priorityClassName=calm", 0),
})  # fmt: skip
def test_how_much_is_taken_back(queues, groups, victims):
    here = World(NODE, CALM, queues, groups)
    decisions = here.cycle()
    assert len(here.going()) == victims
    assert all(each.action is Action.RECLAIM for each in decisions.evictions)


TREE = "queue left; queue right; queue a parent=left; queue b parent=left; queue c parent=right"


@pytest.mark.shows("scheduler 2.5/tree", "scheduler 3.6/ancestorReclaimLevel", "scheduler 3.6/victims' order")
@cases("cpu, groups, queues", {
    "from a queue beside it": (8, "group a 1/4x1 queue=a @n1; group c 1/4x1 queue=c @n1; group b 2x1 queue=b", {"a"}),
    "from a queue under another one": (8, "group c 1/8x1 queue=c @n1; group a 4x1 queue=a", {"c"}),
    "only from those above their part":
        (8, "group a 1/6x1 queue=a @n1; group c 1/2x1 queue=c @n1; group c2 2x1 queue=c", {"a"}),
    "not beyond its part of its parent's":
        (8, "group a 1/4x1 queue=a @n1; group c 1/4x1 queue=c @n1; group b 3x1 queue=b", set()),
    "a parent that has too much gives inside":
        (8, "group a 1/5x1 queue=a @n1; group c 1/3x1 queue=c @n1; group b 2x1 queue=b", {"a"}),
    "the nearer one first, though the farther one has more of what it deserves: 11 of 8, not 5 of 4":
        (16, "group a 1/5x1 queue=a @n1; group c 1/11x1 queue=c @n1; group b 1x1 queue=b; group b2 9x1 queue=b", {"a"}),
})  # fmt: skip
def test_from_whom_in_a_tree(cpu, groups, queues):
    here = World(f"node n1 {cpu} pods:99", TREE, groups)
    here.cycle()
    assert queues_of(here.going()) == queues


FIXED = "queue a reclaimable=false; queue b"
ONE = " Queue a has more than it deserves, and gives nothing back (reclaimable: false)."
TWO = " Queues a and b have more than they deserve, and give nothing back (reclaimable: false)."
NO_RECLAIM = "conf actions: 'enqueue, allocate', tiers: [{plugins: [{name: proportion}]}]"


@cases("queues, groups, said", {
    "one queue": (FIXED, "group a 1/8x1 queue=a @n1; group g 4x1 queue=b", ONE),
    "two queues": (
        "queue a reclaimable=false; queue b reclaimable=false; queue c",
        "group a 1/4x1 queue=a @n1; group b 1/4x1 queue=b @n1; group g 2x1 queue=c", TWO,
    ),
    "it has its part": (FIXED, "group a 1/4x1 queue=a @n1; group b 1/4x1 queue=b @n1; group g 1x1 queue=b", ""),
    "nothing beyond what it deserves":
        (FIXED, "group a 1/4x1 queue=a @n1; group b 1/3x1 queue=b @n1; group g 2x1 queue=b", ""),
    "nobody reclaims": (f"{FIXED}; {NO_RECLAIM}", "group a 1/8x1 queue=a @n1; group g 4x1 queue=b", ""),
    "who would never fit": (FIXED, "group a 1/8x1 queue=a @n1; group g 1x9 queue=b", ""),
})  # fmt: skip
def test_who_waits_is_told_which_queues_give_nothing_back(queues, groups, said):
    here = World(NODE, queues, groups)
    here.cycle()
    assert here.told().endswith(said)
    assert ("reclaimable" in here.told()) == bool(said)


def test_victims_and_the_group_are_told_so_and_what_was_taken_back_is_not_won_back():
    here = World(NODE, HALVES, "group a 1/8x1 queue=a @n1; group b 4x1 queue=b")
    here.cycle()
    assert here.reason("b") == "WaitingForVictims"
    assert here.told("b").startswith("4 pods of a are asked to end")
    told = [each["message"] for each in here.events if each["involvedObject"]["kind"] == "Pod"]
    assert set(told) == {"Pod is evicted, because of reclaim: pod group ns/b gets its room."}
    for _ in range(4):
        names = here.going()
        here.gone()
        here.put(*(pod(name, "a") for name in names))
        here.cycle(seconds=1)
    assert sorted(name[0] for name in here.where()) == ["a"] * 4 + ["b"] * 4
    assert here.going() == []


@pytest.mark.shows("scheduler 1.10/victims")
def test_youngest_of_the_lowest_priority_goes_first():
    here = World(NODE, HALVES, "group x 1/3x1 queue=a @n1; group y 1/3x1 queue=a @n1 created=2026-01-02")
    here.put("group z 1/2x1 queue=a @n1 low; group g 3x1 queue=b")
    here.cycle()
    assert here.going() == ["y-2", "z-0", "z-1"]


@pytest.mark.shows("scheduler 1.10/victims", "scheduler 3.6/victims' order")
@cases("groups, going", {
    "of lower priority, the second by name": ("group a 1x4 queue=a @n1; group b 1x4 queue=b @n1 low", ["b-0"]),
    "of lower priority, the first by name": ("group a 1x4 queue=a @n1 low; group b 1x4 queue=b @n1", ["a-0"]),
    "younger, the second by name": ("group a 1x4 queue=a @n1; group b 1x4 queue=b @n1 created=2026-01-02", ["b-0"]),
    "younger, the first by name": ("group a 1x4 queue=a @n1 created=2026-01-02; group b 1x4 queue=b @n1", ["a-0"]),
    "of which fewer pods go": ("group a 4x1 queue=a @n1; group b 1x4 queue=b @n1", ["b-0"]),
})  # fmt: skip
def test_of_equal_queues_that_one_gives_where_least_is_lost(groups, going):
    here = World(NODE, "queue a deserved=2; queue b deserved=2; queue c deserved=2", groups, "group g 2x1 queue=c")
    here.cycle()
    assert here.going() == going


BOTH = "group a 1/6x1 queue=a @n1; group b 1/2x1 queue=b @n1; group g 1x1 queue=b high"


@pytest.mark.shows("scheduler 2.5/order", "scheduler 4.1/order of actions", "scheduler 2.5/not listed")
@cases("actions, taken", {
    "both: who was preempted in a queue below its part would only reclaim in turn": (set(Action), Action.RECLAIM),
    "reclaim is not configured": (set(Action) - {Action.RECLAIM}, Action.PREEMPT),
    "preempt is not configured": (set(Action) - {Action.PREEMPT}, Action.RECLAIM),
})  # fmt: skip
def test_reclaim_comes_before_preempt_and_what_is_not_configured_is_not_done(actions, taken):
    here = World(NODE, HALVES, BOTH)
    here.snapshot.policy = Policy(frozenset(actions))
    decisions = here.cycle()
    assert {each.action for each in decisions.evictions} == {taken}
    assert queues_of(here.going()) == {"a" if taken is Action.RECLAIM else "b"}


def test_scarce_resource_counts_alone():
    """Memory is there for all, so that nobody has more of it than he deserves; CPUs are what is fought for."""
    here = World(NODE, HALVES, "group a 1/8x1 queue=a @n1 memory:64Mi; group b 2x1 queue=b memory:64Mi")
    here.cycle()
    assert len(here.going()) == 2


GPU = "nvidia.com/gpu"
GPU_NODE = f"{NODE} {GPU}:1"
DUE = [queue(name, deserved={"cpu": str(cpu), GPU: str(gpus)}) for name, cpu, gpus in (("a", 7, 0), ("b", 1, 1))]


@pytest.mark.shows("scheduler 2.5/for whom")
@cases("groups, going", {
    "what it goes beyond lies idle": (f"group a 1x1 queue=a @n1 {GPU}:1", ["a-0"]),
    "nobody goes for it who has no GPU": (f"group a 1x1 queue=a @n1 {GPU}:1; group c 1/3x1 queue=a @n1", ["a-0"]),
    "it would have to be taken": (f"group a 1x1 queue=a @n1 {GPU}:1; group c 1/4x1 queue=a @n1", []),
    "only who has the GPU has it, and he deserves it": (f"group a 1x6 queue=a @n1 {GPU}:1", []),
    "it has its GPU": (f"group b 1x1 queue=b @n1 {GPU}:1", []),
})  # fmt: skip
def test_what_lies_idle_needs_nobodys_leave(groups, going):
    """The queue deserves the one GPU and a CPU, and asks for it with 4 of 8."""
    here = World(GPU_NODE, *DUE, groups, f"group g 1x4 queue=b {GPU}:1")
    here.cycle()
    assert here.going() == going


FULL = "group a 1/8x1 queue=a @n1"


@pytest.mark.shows("scheduler 2.5/entry")
@cases("situation, enters", {
    "what its queue deserves": (f"{HALVES}; {FULL}; group g 4 queue=b minMember=4", True),
    "more than its queue deserves": (f"{HALVES}; {FULL}; group g 5 queue=b minMember=5", False),
    "less, but others of it are in": (
        f"{HALVES}; {FULL}; group b 2 queue=b minMember=2 phase=Inqueue; pod b-0..1 group=b; "
        "group g 3 queue=b minMember=3", False,
    ),
    "nobody would give it back": (f"{FIXED}; {FULL}; group g 4 queue=b minMember=4", False),
    "more than its queue may use": (f"queue a; queue b 3 deserved=6; {FULL}; group g 4 queue=b minMember=4", False),
})  # fmt: skip
def test_who_may_reclaim_is_let_in_though_the_cluster_is_full(situation, enters):
    here = World(NODE, situation)
    here.cycle()
    assert here.phase() == ("Inqueue" if enters else "Pending")


@pytest.mark.shows("scheduler 2.5/not listed")
def test_without_reclaim_a_full_cluster_lets_nobody_in():
    here = World(NODE, HALVES, FULL, "group g 4 queue=b")
    here.snapshot.policy = Policy(frozenset(Action) - {Action.RECLAIM})
    here.cycle()
    assert here.phase() == "Pending"


@pytest.mark.shows("scheduler 2.5/entry")
@cases("cpu, others, enters", {
    "what its queue deserves": (1, "", True),
    "more of what lies idle": (7, "", True),
    "more than lies idle": (8, "", False),
    "others have it": (4, "group c 1/4x1 queue=a @n1", False),
})  # fmt: skip
def test_who_may_reclaim_is_let_in_with_more_of_what_lies_idle(cpu, others, enters):
    """Its queue deserves the one GPU, which another has with a CPU, and one of 8 CPUs."""
    here = World(GPU_NODE, *DUE, f"group a 1x1 queue=a @n1 {GPU}:1", others, f"group g {cpu} queue=b {GPU}:1")
    here.cycle()
    assert here.phase() == ("Inqueue" if enters else "Pending")
    if enters:
        here.put(f"pod g-0 {cpu} group=g {GPU}:1")
        here.cycle()
        assert here.going() == ["a-0"]
