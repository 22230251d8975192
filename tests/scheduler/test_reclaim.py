"""Reclaim: queues that have less than they deserve take from those that have more."""

from __future__ import annotations

import pytest

from kube import resources
from scheduler.engine.message import people
from scheduler.policy.policy import Action, Policy

from .world import World, configuration, group, keeping, node, pod, priority_class, queue

OLD, NEW = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def runs(where, count, *, name="", minimum=1, cpu="1", node="n1", **spec):
    """A group of a queue whose pods run."""
    name = name or f"run-{where}"
    return [
        group(name, minimum, queue=where, phase="Running", **spec),
        *(pod(f"{name}-{number}", name, cpu, phase="Running", node=node) for number in range(count)),
    ]


def asks(where, count=1, *, cpu="1", name="", **spec):
    """A group of a queue that waits for nodes."""
    name = name or f"ask-{where}"
    return [group(name, count, queue=where, **spec), *(pod(f"{name}-{number}", name, cpu) for number in range(count))]


def world(*objects, cpu="8", nodes=("n1",)):
    return World(*(node(each, cpu=cpu, pods=99) for each in nodes), *objects)


HALVES = (queue("a"), queue("b"))


@pytest.mark.shows(
    "scheduler 2.5/for whom",
    "scheduler 2.5/from whom",
    "scheduler 2.5/reclaimable",
    "scheduler 2.5/priority",
    "scheduler 2.5/Never",
    "scheduler 2.5/guarantee",
    "scheduler 3.6/reclaim",
    "queues 1.2/reclaimable",
    "scheduler 11/14",
    "scheduler 2.6/gangreclaim",
)
@pytest.mark.parametrize(
    ("objects", "victims"),
    [
        pytest.param([*HALVES, *runs("a", 8), *asks("b", 4)], 4, id="up to what it deserves"),
        pytest.param([*HALVES, *runs("a", 8), *asks("b", 5)], 0, id="nothing beyond what it deserves"),
        pytest.param([*HALVES, *runs("a", 6), *asks("b", 4)], 2, id="what is free counts"),
        pytest.param([*HALVES, *runs("a", 4), *runs("b", 4), *asks("b", 1)], 0, id="it has its part"),
        pytest.param(
            [queue("a", reclaimable=False), queue("b"), *runs("a", 8), *asks("b", 4)], 0, id="not reclaimable"
        ),
        pytest.param([*HALVES, *runs("a", 8, minimum=8), *asks("b", 4)], 8, id="a gang that is all it has"),
        pytest.param([*HALVES, *runs("a", 2, cpu="3"), *asks("b", 4)], 1, id="its last one"),
        pytest.param(
            [*HALVES, *runs("a", 2, cpu="3"), *runs("b", 2), *asks("b", 1)],
            1,
            id="its last one, though it is shorter than the other one then",
        ),
        pytest.param([*HALVES, *runs("a", 1, cpu="8"), *asks("b", 4)], 1, id="a pod that is all it has"),
        pytest.param(
            [*HALVES, *runs("a", 1, cpu="4"), *runs("b", 1, cpu="1"), *asks("b", 4, name="more")],
            0,
            id="nothing of what it deserves",
        ),
        pytest.param(
            [
                *HALVES,
                *runs("a", 3, cpu="2", name="x"),
                *runs("a", 1, cpu="2", name="y", created=NEW),
                *asks("b", 1),
                *asks("b", 1, name="more"),
            ],
            1,
            id="what goes for one is enough for two",
        ),
        pytest.param(
            [
                *HALVES,
                *runs("a", 4, name="x", minimum=4, created=OLD),
                *runs("a", 4, name="y", minimum=4, created=NEW),
                *asks("b", 4),
            ],
            4,
            id="a gang goes whole where enough is left",
        ),
        pytest.param([queue("a", weight=3), queue("b"), *runs("a", 8), *asks("b", 2)], 2, id="parts by weight"),
        pytest.param(
            [queue("a", **keeping(6)), queue("b", deserved={"cpu": "4"}), *runs("a", 8), *asks("b", 4)],
            0,
            id="a guarantee stays",
        ),
        pytest.param(
            [queue("a", deserved={"cpu": "2"}), queue("b", deserved={"cpu": "6"}), *runs("a", 8), *asks("b", 6)],
            6,
            id="parts as stated",
        ),
        pytest.param(
            [*HALVES, priority_class("high", 9), *runs("a", 8, priorityClassName="high"), *asks("b", 1)],
            1,
            id="whatever the priority",
        ),
        pytest.param(
            [
                *HALVES,
                *runs("a", 8),
                *asks("b", 1, priorityClassName="calm"),
                priority_class("calm", 0, preemptionPolicy="Never"),
            ],
            0,
            id="its class has nobody evicted",
        ),
    ],
)
def test_how_much_is_taken_back(objects, victims):
    here = world(*objects)
    decisions = here.cycle()
    assert len(here.going()) == victims
    assert all(each.action is Action.RECLAIM for each in decisions.evictions)


TREE = (queue("left"), queue("right"), queue("a", parent="left"), queue("b", parent="left"), queue("c", parent="right"))


@pytest.mark.shows("scheduler 2.5/tree", "scheduler 3.6/ancestorReclaimLevel")
@pytest.mark.parametrize(
    ("objects", "queues"),
    [
        pytest.param([*runs("a", 4), *runs("c", 4), *asks("b", 2)], {"a"}, id="from a queue beside it"),
        pytest.param([*runs("c", 8), *asks("a", 4)], {"c"}, id="from a queue under another one"),
        pytest.param([*runs("a", 6), *runs("c", 2), *asks("c", 2)], {"a"}, id="only from those above their part"),
        pytest.param([*runs("a", 4), *runs("c", 4), *asks("b", 3)], set(), id="not beyond its part of its parent's"),
        pytest.param(
            [*runs("a", 5), *runs("c", 3), *asks("b", 2)], {"a"}, id="a parent that has too much gives inside"
        ),
    ],
)
def test_from_whom_in_a_tree(objects, queues):
    here = world(*TREE, *objects)
    decisions = here.cycle()
    assert {each.pod.name.split("-")[1] for each in decisions.evictions} == queues


@pytest.mark.shows("scheduler 3.6/victims' order")
def test_of_two_queues_above_their_parts_the_nearer_one_gives_first():
    """The farther one has more of what it deserves: 11 of 8, not 5 of 4."""
    here = world(*TREE, *runs("a", 5), *runs("c", 11), *asks("b", 1), *asks("b", 9, name="more"), cpu="16")
    here.cycle()
    assert [name.split("-")[1] for name in here.going()] == ["a"]


FIXED = queue("a", reclaimable=False)
ONE = " Queue a has more than it deserves, and gives nothing back (reclaimable: false)."
NO_RECLAIM = configuration("actions: enqueue, allocate\ntiers: [{plugins: [{name: proportion}]}]")


@pytest.mark.parametrize(
    ("objects", "said"),
    [
        pytest.param([FIXED, queue("b"), *runs("a", 8), *asks("b", 4)], ONE, id="one queue"),
        pytest.param(
            [FIXED, queue("b", reclaimable=False), queue("c"), *runs("a", 4), *runs("b", 4), *asks("c", 2)],
            " Queues a and b have more than they deserve, and give nothing back (reclaimable: false).",
            id="two queues",
        ),
        pytest.param([FIXED, queue("b"), *runs("a", 4), *runs("b", 4), *asks("b", 1)], "", id="it has its part"),
        pytest.param([FIXED, queue("b"), *runs("a", 4), *runs("b", 3), *asks("b", 2)], "", id="nothing beyond what it deserves"),
        pytest.param([FIXED, queue("b"), NO_RECLAIM, *runs("a", 8), *asks("b", 4)], "", id="nobody reclaims"),
        pytest.param([FIXED, queue("b"), *runs("a", 8), *asks("b", 1, cpu="9")], "", id="who would never fit"),
    ],
)  # fmt: skip
def test_who_waits_is_told_which_queues_give_nothing_back(objects, said):
    here = world(*objects)
    here.cycle()
    asking = "ask-c" if any(each["metadata"]["name"] == "ask-c" for _, each in objects) else "ask-b"
    told = people(here.condition(asking)["message"])
    assert told.endswith(said)
    assert ("reclaimable" in told) == bool(said)


def test_victims_and_the_group_are_told_so():
    here = world(*HALVES, *runs("a", 8), *asks("b", 2))
    here.cycle()
    assert here.condition("ask-b")["reason"] == "WaitingForVictims"
    assert people(here.condition("ask-b")["message"]).startswith("2 pods of run-a are asked to end")
    told = [each["message"] for each in here.events if each["involvedObject"]["kind"] == "Pod"]
    assert set(told) == {"Pod is evicted, because of reclaim: pod group ns/ask-b gets its room."}


def test_what_was_taken_back_is_not_won_back():
    here = world(*HALVES, *runs("a", 8), *asks("b", 4))
    here.cycle()
    for _ in range(4):
        names = here.going()
        here.gone()
        here.put(*(pod(name, name.rpartition("-")[0]) for name in names))
        here.cycle(seconds=1)
    assert sum(name.startswith("ask-b") for name in here.where()) == 4
    assert sum(name.startswith("run-a") for name in here.where()) == 4
    assert here.going() == []


@pytest.mark.shows("scheduler 1.10/victims")
def test_youngest_of_the_lowest_priority_goes_first():
    here = world(
        *HALVES,
        priority_class("low", -1),
        *runs("a", 3, name="x", created=OLD),
        *runs("a", 3, name="y", created=NEW),
        *runs("a", 2, name="z", created=OLD, priorityClassName="low"),
        *asks("b", 3),
    )
    here.cycle()
    assert here.going() == ["y-2", "z-0", "z-1"]


@pytest.mark.shows("scheduler 2.5/order", "scheduler 4.1/order of actions")
def test_reclaim_comes_before_preempt():
    """Who was preempted in a queue that is below its part would only reclaim in turn."""
    here = world(
        *HALVES, priority_class("high", 9), *runs("a", 6), *runs("b", 2), *asks("b", 1, priorityClassName="high")
    )
    here.cycle()
    assert [name.split("-")[1] for name in here.going()] == ["a"]


GPU = "nvidia.com/gpu"


def deserves(name, cpu, gpus):
    return queue(name, deserved={"cpu": str(cpu), GPU: str(gpus)})


def with_gpu(where, cpu, *, runs_on=""):
    """A group of one pod that has a GPU, or waits for one."""
    name = f"{'run' if runs_on else 'ask'}-{where}-gpu"
    spec = {"phase": "Running", "node": runs_on} if runs_on else {}
    return [
        group(name, queue=where, phase="Running" if runs_on else "Inqueue"),
        pod(f"{name}-0", name, str(cpu), requests={GPU: "1"}, **spec),
    ]


@pytest.mark.shows("scheduler 2.5/for whom")
@pytest.mark.parametrize(
    ("objects", "going"),
    [
        pytest.param([*with_gpu("a", 1, runs_on="n1")], ["run-a-gpu-0"], id="what it goes beyond lies idle"),
        pytest.param(
            [*with_gpu("a", 1, runs_on="n1"), *runs("a", 3)], ["run-a-gpu-0"], id="nobody goes for it who has no GPU"
        ),
        pytest.param([*with_gpu("a", 1, runs_on="n1"), *runs("a", 4)], [], id="it would have to be taken"),
        pytest.param([*with_gpu("a", 6, runs_on="n1")], [], id="only who has the GPU has it, and he deserves it"),
        pytest.param([*with_gpu("b", 1, runs_on="n1")], [], id="it has its GPU"),
    ],
)
def test_what_lies_idle_needs_nobodys_leave(objects, going):
    """The queue deserves the one GPU and a CPU, and asks for it with 4 of 8."""
    here = World(
        node("n1", cpu="8", pods=99, **{GPU: "1"}),
        deserves("a", 7, 0),
        deserves("b", 1, 1),
        *objects,
        *with_gpu("b", 4),
    )
    here.cycle()
    assert here.going() == going


@pytest.mark.shows("scheduler 1.10/victims", "scheduler 3.6/victims' order")
@pytest.mark.parametrize(
    ("first", "second", "going"),
    [
        pytest.param({}, {"priorityClassName": "low"}, ["run-b-0"], id="of lower priority, the second by name"),
        pytest.param({"priorityClassName": "low"}, {}, ["run-a-0"], id="of lower priority, the first by name"),
        pytest.param({"created": OLD}, {"created": NEW}, ["run-b-0"], id="younger, the second by name"),
        pytest.param({"created": NEW}, {"created": OLD}, ["run-a-0"], id="younger, the first by name"),
    ],
)
def test_of_equal_queues_that_one_gives_where_least_is_lost(first, second, going):
    queues = (queue(name, deserved={"cpu": "2"}) for name in "abc")
    low = priority_class("low", -1)
    here = world(*queues, low, *runs("a", 1, cpu="4", **first), *runs("b", 1, cpu="4", **second), *asks("c", 2))
    here.cycle()
    assert here.going() == going


def test_of_equal_queues_that_one_gives_of_which_fewer_pods_go():
    queues = (queue(name, deserved={"cpu": "2"}) for name in "abc")
    here = world(*queues, *runs("a", 4, minimum=4), *runs("b", 1, cpu="4"), *asks("c", 2))
    here.cycle()
    assert here.going() == ["run-b-0"]


@pytest.mark.shows("scheduler 2.5/not listed")
@pytest.mark.parametrize("action", [Action.RECLAIM, Action.PREEMPT])
def test_action_that_is_not_configured_is_not_taken(action):
    here = world(
        *HALVES, priority_class("high", 9), *runs("a", 6), *runs("b", 2), *asks("b", 1, priorityClassName="high")
    )
    here.snapshot.policy = Policy(frozenset(Action) - {action})
    decisions = here.cycle()
    assert {each.action for each in decisions.evictions} == {Action.PREEMPT, Action.RECLAIM} - {action}


def test_scarce_resource_counts_alone():
    """Memory is there for all, so that nobody has more of it than he deserves; CPUs are what is fought for."""
    here = world(*HALVES, *runs("a", 8), *asks("b", 2))
    for name in [key[2] for key in here.objects if key[0] == resources.PODS.id]:
        obj = here.get(resources.PODS, name)
        obj["spec"]["containers"][0]["resources"]["requests"]["memory"] = "64Mi"
        here.put((resources.PODS, obj))
    here.cycle()
    assert len(here.going()) == 2


def outside(where, cpus, **spec):
    """A group that was not let in yet, and has no pods."""
    return group("new", cpus, queue=where, phase="Pending", minResources={"cpu": str(cpus)}, **spec)


@pytest.mark.shows("scheduler 2.5/entry")
@pytest.mark.parametrize(
    ("objects", "enters"),
    [
        pytest.param([*HALVES, *runs("a", 8), outside("b", 4)], True, id="what its queue deserves"),
        pytest.param([*HALVES, *runs("a", 8), outside("b", 5)], False, id="more than its queue deserves"),
        pytest.param(
            [*HALVES, *runs("a", 8), *asks("b", 2, minResources={"cpu": "2"}), outside("b", 3)],
            False,
            id="less, but others of it are in",
        ),
        pytest.param(
            [queue("a", reclaimable=False), queue("b"), *runs("a", 8), outside("b", 4)],
            False,
            id="nobody would give it back",
        ),
        pytest.param(
            [queue("a"), queue("b", {"cpu": "3"}, deserved={"cpu": "6"}), *runs("a", 8), outside("b", 4)],
            False,
            id="more than its queue may use",
        ),
    ],
)
def test_who_may_reclaim_is_let_in_though_the_cluster_is_full(objects, enters):
    here = world(*objects)
    here.cycle()
    assert (here.status("new")["phase"] == "Inqueue") == enters


@pytest.mark.shows("scheduler 2.5/entry")
@pytest.mark.parametrize(
    ("cpu", "others", "enters"),
    [
        pytest.param(1, [], True, id="what its queue deserves"),
        pytest.param(7, [], True, id="more of what lies idle"),
        pytest.param(8, [], False, id="more than lies idle"),
        pytest.param(4, [*runs("a", 4)], False, id="others have it"),
    ],
)
def test_who_may_reclaim_is_let_in_with_more_of_what_lies_idle(cpu, others, enters):
    """Its queue deserves the one GPU, which another has with a CPU, and one of 8 CPUs."""
    here = World(
        node("n1", cpu="8", pods=99, **{GPU: "1"}),
        deserves("a", 7, 0),
        deserves("b", 1, 1),
        *with_gpu("a", 1, runs_on="n1"),
        *others,
        group("new", 1, queue="b", phase="Pending", minResources={"cpu": str(cpu), GPU: "1"}),
    )
    here.cycle()
    assert (here.status("new")["phase"] == "Inqueue") == enters
    if enters:
        here.put(pod("new-0", "new", str(cpu), requests={GPU: "1"}))
        here.cycle()
        assert here.going() == ["run-a-gpu-0"]


@pytest.mark.shows("scheduler 2.5/not listed")
def test_without_reclaim_a_full_cluster_lets_nobody_in():
    here = world(*HALVES, *runs("a", 8), outside("b", 4))
    here.snapshot.policy = Policy(frozenset(Action) - {Action.RECLAIM})
    here.cycle()
    assert here.status("new")["phase"] == "Pending"
