"""Rules of the reference that no other module is about, each on a small cluster."""

from __future__ import annotations

import copy

import pytest

from kube import resources
from scheduler.cycle.cycle import schedule
from tests.tables import cases

from .world import World, group, node, pod, priority_class, queue


def annotated(made, **notes):
    kind, obj = made
    obj["metadata"]["annotations"] |= {f"volcano.sh/{name.replace('_', '-')}": value for name, value in notes.items()}
    return kind, obj


def elsewhere(made, namespace="other"):
    kind, obj = made
    obj["metadata"]["namespace"] = namespace
    return kind, obj


def without_pods(made):
    kind, obj = made
    del obj["status"]["allocatable"]["pods"]
    return kind, obj


def written(spec):
    """The group g with nothing in its spec but this."""
    kind, obj = group()
    return kind, {**obj, "spec": spec}


NOTHING = {"cpu": ""}  # of a pod that asks for nothing
FULL = [node("n1", cpu="1"), pod("full", "", node="n1", phase="Running")]


@cases("objects, start", {
    "a node that states no pods | scheduler 1.1/pods": ([without_pods(node("n1")), group(), pod("g-0")], set()),
    "a pod that asks for nothing on a full node | scheduler 2.3/full nodes":
        ([*FULL, group(), pod("g-0", **NOTHING)], {"g-0"}),
    "but as many pods as a node may have | scheduler 2.3/full nodes + scheduler 3.7/pods of a node":
        ([node("n1", pods=1), pod("one", "", node="n1", **NOTHING), group(), pod("g-0", **NOTHING)], set()),
    "nor more pods than a queue may have | scheduler 11/20": (
        [node("n1"), queue("small", {"pods": "1"}), group(queue="small", minimum=1), pod("g-0", **NOTHING), pod("g-1", **NOTHING)],
        {"g-0"},
    ),
    "a gang some of which asks for nothing | scheduler 1.4/best effort + scheduler 2.3/when + scheduler 10.1/13":
        ([*FULL, group(minimum=2), pod("g-0"), pod("g-1", **NOTHING)], set()),
    "the priority that a task states | scheduler 1.3/priority + scheduler 3.2/pods": (
        [node("n1", cpu="1"), group(), annotated(pod("g-0"), task_priority="1"), annotated(pod("g-1"), task_priority="2")],
        {"g-1"},
    ),
    "the priority of the default class | scheduler 1.4/priority": (
        [
            node("n1", cpu="1"), priority_class("usual", 5, globalDefault=True), priority_class("low", 1),
            group("low", priorityClassName="low"), pod("low-0", "low"),
            group("plain", created="2026-02-01T00:00:00Z"), pod("plain-0", "plain"),
        ],
        {"plain-0"},
    ),
    "the priority of pods is none of their job | scheduler 3.2/jobs + scheduler 10.2/4": (
        [
            node("n1", cpu="1"), priority_class("low", 1),
            group("plain"), pod("plain-0", "plain", priority=9),
            group("low", priorityClassName="low", created="2026-02-01T00:00:00Z"), pod("low-0", "low"),
        ],
        {"low-0"},
    ),
    "pods of a group that is not let in | scheduler 2.2/who":
        ([node("n1"), group(phase="Pending", minResources={"cpu": "9"}), pod("g-0")], set()),
    "no minimum | scheduler 3.1/minMember 0 + scheduler 2.2/beyond in short supply":
        ([node("n1", cpu="2"), group(minimum=0), *(pod(f"g-{n}") for n in range(3))], {"g-0", "g-1"}),
    "minMembers | coscheduling 1/MinMembers": ([node("n1"), written({"minMembers": 2}), pod("g-0")], set()),
    "numMember | coscheduling 1/MinMembers": ([node("n1"), written({"numMember": 2}), pod("g-0")], set()),
    "a pod of another namespace | groups 3.5/namespace + coscheduling 1/group-name":
        ([node("n1"), group(minimum=2), pod("g-0"), elsewhere(pod("g-1"))], set()),
    "a queue of higher priority | queues 1.2/priority + scheduler 1.10/queues": (
        [
            node("n1", cpu="1"), queue("late", priority=1),
            group("early"), pod("early-0", "early"),
            group("late", queue="late", created="2026-02-01T00:00:00Z"), pod("late-0", "late"),
        ],
        {"late-0"},
    ),
    "equals of one age by name | scheduler 1.10/equals":
        ([node("n1", cpu="1"), group("b"), pod("b-0", "b"), group("a"), pod("a-0", "a")], {"a-0"}),
})  # fmt: skip
def test_which_pods_start(objects, start):
    world = World(queue(), *copy.deepcopy(objects))
    before = world.where()
    world.cycle()
    assert world.where().keys() - before.keys() == start


@pytest.mark.shows("coscheduling 1/TotalResources")
@pytest.mark.parametrize(("cpu", "phase"), [("4", "Inqueue"), ("5", "Pending")])
def test_the_total_of_the_kep_has_to_be_there_for_a_group_to_be_let_in(cpu, phase):
    kind, obj = written({"minMembers": 1, "totalResources": {"cpu": cpu}})
    world = World(node("n1"), queue(), (kind, {**obj, "status": {}}))
    world.cycle()
    assert world.status()["phase"] == phase


@pytest.mark.shows("groups 3.5/several owners", "coscheduling 1/several collections")
@pytest.mark.shows("coscheduling 1/existing workloads")
def test_pods_of_several_owners_are_one_gang():
    world = World(node("n1"), queue(), group(minimum=2))
    for name in ("a", "b"):
        kind, obj = pod(name, "g")
        world.cycle()
        assert world.where() == {}
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": f"uid-{name}", "controller": True}
        obj["metadata"]["ownerReferences"] = [owner]
        world.put((kind, obj))
    world.cycle()
    assert len(world.where()) == 2


@pytest.mark.shows("groups 3.1/changes", "coscheduling 2/updates", "scheduler 10.1/14")
def test_a_changed_minimum_counts_from_the_next_cycle_on():
    world = World(node("n1", cpu="2"), queue(), group(minimum=3), *(pod(f"g-{n}") for n in range(3)))
    world.cycle()
    assert world.where() == {}
    world.put(group(minimum=2))
    world.cycle()
    assert len(world.where()) == 2


@pytest.mark.shows("coscheduling 2/deletion")
def test_pods_of_a_group_that_is_deleted_stay_as_they_are():
    world = World(node("n1"), queue(), group(phase="Running"), pod("g-0", node="n1", phase="Running"))
    world.cycle()
    before = copy.deepcopy(world.get(resources.PODS, "g-0"))
    world.remove(resources.POD_GROUPS, "g")
    world.cycle(seconds=60)
    assert world.get(resources.PODS, "g-0") == before


@pytest.mark.shows("scheduler 3.3/namespace")
@pytest.mark.parametrize(("namespace", "goes"), [("kube-system", []), ("other", ["low-0"])])
def test_pods_of_kube_system_are_evicted_for_nobody(namespace, goes):
    objects = [
        elsewhere(group("low", phase="Running"), namespace),
        elsewhere(pod("low-0", "low", node="n1", phase="Running"), namespace),
    ]
    world = World(
        node("n1", cpu="1"), queue(reclaimable=False), priority_class("high", 9), *objects,
        group(priorityClassName="high"), pod("g-0"),
    )  # fmt: skip
    decisions = schedule(world.snapshot, world.now)
    assert [each.pod.name for each in decisions.evictions] == goes


@pytest.mark.shows("scheduler 1.5/not Ready")
def test_a_node_that_is_not_ready_is_not_used_even_where_its_taint_is_tolerated():
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    world = World(
        node("n1", ready=False, taints=[taint]), queue(), group(), pod("g-0", tolerations=[{"operator": "Exists"}])
    )
    world.cycle()
    assert world.where() == {}
    assert world.condition()["reason"] == "NodesUnavailable"


@pytest.mark.shows("scheduler 1.11/how many", "scheduler 4.2/--percentage-nodes-to-find and the like")
def test_the_only_node_that_fits_is_found_among_many_that_nearly_do():
    world = World(*(node(f"n{number:03}", cpu="1") for number in range(300)), queue(), group(), pod("g-0", cpu="2"))
    world.put(node("n299", cpu="2"))
    world.put(node("n299", cpu="3"), node("n150", cpu="2"))
    world.cycle()
    assert world.where() == {"g-0": "n150"}, "of those that fit the fullest"


@pytest.mark.shows("groups 3.6/priorityClassName")
def test_a_group_that_is_made_for_a_pod_has_its_priority_class():
    world = World(node("n1"), queue(), pod("solo", "", priorityClassName="high"))
    world.cycle()
    assert world.get(resources.POD_GROUPS, "podgroup-uid-solo")["spec"]["priorityClassName"] == "high"


@pytest.mark.shows("scheduler 11/15")
def test_nobody_deserves_a_number_of_pods():
    """A queue within half of the CPUs takes back, though it asks for more than half of the pods of the node."""
    world = World(
        node("n1", cpu="8", pods=6), queue("a"), queue("b"),
        group("run", queue="a", phase="Running"), *(pod(f"run-{n}", "run", "4", node="n1", phase="Running") for n in range(2)),
        *(pod(f"run-{n}", "run", "4") for n in range(2, 8)),
        group("ask", 4, queue="b"), *(pod(f"ask-{n}", "ask") for n in range(4)),
    )  # fmt: skip
    world.cycle()
    assert world.going() == ["run-1"]
