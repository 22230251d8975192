"""Rules of the reference that no other module is about, each on a small cluster."""

from __future__ import annotations

import copy

import pytest

from kube import resources
from scheduler.cycle.cycle import schedule
from tests.tables import cases

from .world import World, group, node, pod, priority_class, situation


def elsewhere(text, namespace="other"):
    """The objects of a text in another namespace."""
    for kind, obj in situation(text):
        obj["metadata"]["namespace"] = namespace
        yield kind, obj


def written(spec, name="g"):
    """A group with nothing in its spec but this."""
    kind, obj = group(name)
    return kind, {**obj, "spec": spec}


def without_pods(name):
    kind, obj = node(name)
    del obj["status"]["allocatable"]["pods"]
    return kind, obj


FULL = "node n1 1; pod full @n1"


def nothing(name, group="g", **more):
    """A pod that asks for nothing."""
    return pod(name, group, cpu="", **more)


@cases("objects, start", {
    "a node that states no pods | scheduler 1.1/pods": ([without_pods("n1"), "group g 1x1"], ""),
    "a pod that asks for nothing on a full node | scheduler 2.3/full nodes":
        ([FULL, "group g 1/0x1", nothing("g-0")], "g-0"),
    "but as many pods as a node may have | scheduler 2.3/full nodes + scheduler 3.7/pods of a node":
        (["node n1 pods:1; group g 1/0x1", nothing("one", "", node="n1"), nothing("g-0")], ""),
    "nor more pods than a queue may have | scheduler 11/20":
        (["node n1; queue small pods:1; group g 1/0x1 queue=small", nothing("g-0"), nothing("g-1")], "g-0"),
    "a gang some of which asks for nothing | scheduler 1.4/best effort + scheduler 2.3/when + scheduler 10.1/13":
        ([FULL, "group g 2/1x1", nothing("g-1")], ""),
    "the priority that a task states | scheduler 1.3/priority + scheduler 3.2/pods":
        (["node n1 1; group g 1/0x1; pod g-0 group=g ~task-priority=1; pod g-1 group=g ~task-priority=2"], "g-1"),
    "the priority of the default class | scheduler 1.4/priority": (
        ["node n1 1; group low 1x1 low; group plain 1x1 created=2026-02-01", priority_class("usual", 5, globalDefault=True)],
        "plain-0",
    ),
    "the priority of pods is none of their job | scheduler 3.2/jobs + scheduler 10.2/4":
        (["node n1 1; group plain 1/0x1; group high 1x1 high created=2026-02-01", pod("p", "plain", priority=99)], "high-0"),
    "pods of a group that is not let in | scheduler 2.2/who": (["node n1; group g 9; pod g-0 group=g"], ""),
    "no minimum | scheduler 3.1/minMember 0 + scheduler 2.2/beyond in short supply":
        (["node n1 2; group g 0/3x1"], "g-0 g-1"),
    "minMembers | coscheduling 1/MinMembers": (["node n1; pod g-0 group=g", written({"minMembers": 2})], ""),
    "numMember | coscheduling 1/MinMembers": (["node n1; pod g-0 group=g", written({"numMember": 2})], ""),
    "a pod of another namespace | groups 3.5/namespace + coscheduling 1/group-name":
        (["node n1; group g 2/1x1", *elsewhere("pod g-1 group=g")], ""),
    "a queue of higher priority | queues 1.2/priority + scheduler 1.10/queues":
        (["node n1 1; queue late priority=1; group early 1x1; group late 1x1 queue=late created=2026-02-01"], "late-0"),
    "equals of one age by name | scheduler 1.10/equals": (["node n1 1; group b 1x1; group a 1x1"], "a-0"),
})  # fmt: skip
def test_which_pods_start(objects, start):
    world = World("queue default", *copy.deepcopy(objects))
    world.cycle()
    assert sorted(world.bound) == start.split()


@pytest.mark.shows("coscheduling 1/TotalResources")
@cases("cpu, phase", {"as much as there is": ("4", "Inqueue"), "more": ("5", "Pending")})
def test_the_total_of_the_kep_has_to_be_there_for_a_group_to_be_let_in(cpu, phase):
    kind, obj = written({"minMembers": 1, "totalResources": {"cpu": cpu}})
    world = World("node n1", (kind, {**obj, "status": {}}))
    world.cycle()
    assert world.phase() == phase


@pytest.mark.shows("groups 3.5/several owners", "coscheduling 1/several collections")
@pytest.mark.shows("coscheduling 1/existing workloads")
def test_pods_of_several_owners_are_one_gang():
    world = World("node n1; group g 2/0x1")
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
    world = World("node n1 2; group g 3x1")
    world.cycle()
    assert world.where() == {}
    world.put("group g 2/0x1")
    world.cycle()
    assert len(world.where()) == 2


@pytest.mark.shows("coscheduling 2/deletion")
def test_pods_of_a_group_that_is_deleted_stay_as_they_are():
    world = World("node n1; group g 1x1 @n1")
    world.cycle()
    before = copy.deepcopy(world.get(resources.PODS, "g-0"))
    world.put("-group g")
    world.cycle(seconds=60)
    assert world.get(resources.PODS, "g-0") == before


@pytest.mark.shows("scheduler 3.3/namespace")
@cases("namespace, goes", {"kube-system": ("kube-system", []), "another": ("other", ["low-0"])})
def test_pods_of_kube_system_are_evicted_for_nobody(namespace, goes):
    world = World("node n1 1; queue default reclaimable=false; group g 1x1 high")
    world.put(*elsewhere("group low 1x1 @n1", namespace))
    decisions = schedule(world.snapshot, world.now)
    assert [each.pod.name for each in decisions.evictions] == goes


@pytest.mark.shows("scheduler 1.5/not Ready")
def test_a_node_that_is_not_ready_is_not_used_even_where_its_taint_is_tolerated():
    tolerant = pod("g-0", tolerations=[{"operator": "Exists"}])
    world = World("node n1 notready !node.kubernetes.io/not-ready; group g 1/0x1", tolerant)
    world.cycle()
    assert world.where() == {}
    assert world.reason() == "NodesUnavailable"


@pytest.mark.shows("scheduler 1.11/how many", "scheduler 4.2/--percentage-nodes-to-find and the like")
def test_the_only_node_that_fits_is_found_among_many_that_nearly_do():
    world = World("node n000..299 1; group g 1x2", "node n299 2", "node n299 3; node n150 2")
    world.cycle()
    assert world.where() == {"g-0": "n150"}, "of those that fit the fullest"


@pytest.mark.shows("groups 3.6/priorityClassName")
def test_a_group_that_is_made_for_a_pod_has_its_priority_class():
    world = World("node n1", pod("solo", "", priorityClassName="high"))
    world.cycle()
    assert world.get(resources.POD_GROUPS, "podgroup-uid-solo")["spec"]["priorityClassName"] == "high"


@pytest.mark.shows("scheduler 11/15")
def test_nobody_deserves_a_number_of_pods():
    """A queue within half of the CPUs takes back, though it asks for more than half of the pods of the node."""
    world = World("node n1 8 pods:6; queue a; queue b; group run 1/2x4 queue=a @n1; pod run-2..7 4 group=run")
    world.put("group ask 4x1 queue=b")
    world.cycle()
    assert world.going() == ["run-1"]
