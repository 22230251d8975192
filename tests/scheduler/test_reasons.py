"""Every reason of the closed list, brought about by a cycle on a cluster that is as small as the reason allows."""

from __future__ import annotations

import pytest

from kube import resources
from scheduler.engine.cause import Reason
from scheduler.engine.message import gist, people

from . import test_quotas, test_reservations, test_sub_groups, test_topology
from .world import World, configuration, group, keeping, node, pod, priority_class, queue

HOST = "kubernetes.io/hostname"
N1 = node("n1", cpu="4", labels={HOST: "n1"})
GANG = (group(minimum=2), pod("g-0", cpu="2"), pod("g-1", cpu="2"))
A = {"matchLabels": {"app": "a"}}
APART = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": HOST, "labelSelector": A}]}}  # fmt: skip
NEAR = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": HOST, "labelSelector": A}]}}  # fmt: skip
SPREAD = {"topologySpreadConstraints": [
    {"topologyKey": HOST, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": A}
]}  # fmt: skip
PORT = {"containers": [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}]}
A_RUNS = (group("o"), pod("o-0", "o", phase="Running", node="n1", labels={"app": "a"}))


def runs(cpu, queue="default", *, name="o", **spec):
    """A pod of another group that runs on n1."""
    return group(name, queue=queue, phase="Running", **spec), pod(f"{name}-0", name, cpu, phase="Running", node="n1")


def evicting():
    """A group of low priority that runs, two of high priority that want its room, and who comes later."""
    return [
        N1,
        queue(),
        priority_class("high", 9),
        *runs("4", name="low"),
        group("top", priorityClassName="high"),
        pod("top-0", "top", "4"),
    ]


RED = {"affinity": {"nodeGroupAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": ["red"]}}}


def configured(plugin):
    return configuration(f"actions: enqueue, allocate\ntiers: [{{plugins: [{{name: {plugin}}}]}}]")


CASES = [
    pytest.param([queue(), *GANG], Reason.NO_NODES, "The cluster has no nodes.", id="no node"),
    pytest.param([node("n1", ready=False), queue(), *GANG], Reason.NODES_UNAVAILABLE, "1 is not ready", id="no node is ready"),
    pytest.param([N1, queue(), group(), pod("g-0", nodeSelector={"disk": "fast"})], Reason.NO_MATCHING_NODE, "No node has the label disk=fast", id="label"),
    pytest.param([node("n1", taints=[{"key": "gpu", "effect": "NoSchedule"}]), queue(), *GANG], Reason.UNTOLERATED_TAINT, "gpu on 1 node", id="taint"),
    pytest.param([N1, queue(), group(), pod("g-0", cpu="9")], Reason.NEVER_FITS, "a pod needs 9 CPU", id="larger than any node"),
    pytest.param([N1, queue(), *runs("3"), *GANG], Reason.NOT_ENOUGH_RESOURCES, "0 of 2 pods fit; each needs 2 CPU, the most free on one node is 1 CPU (n1)", id="resource, gang short by two"),
    pytest.param([node("n1", cpu="9"), queue(capability={"cpu": "5"}), *runs("2"), *GANG], Reason.QUEUE_LIMIT, "Queue default has room for 1 of the 2 pods that must start together: the next one needs 2 CPU, and 1 CPU of 5 CPU is left then.", id="capability"),
    pytest.param([node("n1", cpu="9"), queue(capability={"cpu": "3"}), *GANG], Reason.QUEUE_TOO_SMALL, "the queue's limit of 3 CPU", id="more than the capability"),
    pytest.param(
        [node("n1", cpu="9"), queue("team", {"cpu": "5"}), queue(parent="team"), queue("beside", parent="team"), *runs("2", "beside"), *GANG],
        Reason.PARENT_LIMIT, "Queue team, which is above its own, has room for 1 of the 2 pods that must start together", id="capability of a parent",
    ),
    pytest.param(
        [node("n1", cpu="9"), queue("team", {"cpu": "3"}), queue(parent="team"), *GANG],
        Reason.PARENT_TOO_SMALL, "below queue team: it needs more than that queue's limit of 3 CPU", id="more than the capability of a parent",
    ),
    pytest.param(
        [node("n1", cpu="8"), queue(deserved={"cpu": "2"}, reclaimable=False), queue("beside", deserved={"cpu": "6"}, reclaimable=False), *runs("6", "beside"), *GANG],
        Reason.QUEUE_OVER_DESERVED, "With this queue default would use 4 CPU, and it deserves 2 CPU: nothing is taken back from other queues", id="deserved",
    ),
    pytest.param([node("n1", cpu="8"), queue(), queue("kept", **keeping(3)), *runs("2"), *GANG], Reason.QUEUE_GUARANTEES, "guarantees keep 3 CPU for queue kept", id="guarantees"),
    pytest.param(
        [N1, queue(dequeueStrategy="fifo"), *runs("1"), group("first", 2, created="2025-01-01T00:00:00Z"), pod("f-0", "first", "2"), pod("f-1", "first", "2"), group(), pod("g-0")],
        Reason.QUEUE_ORDER, "waits until job group first", id="first in, first out",
    ),
    pytest.param([N1, queue(), group(queue="lost"), pod("g-0")], Reason.QUEUE_NOT_FOUND, "Queue lost does not exist", id="no such queue"),
    pytest.param([N1, queue(state="Closed"), group(phase="Pending"), pod("g-0")], Reason.QUEUE_CLOSED, "is closed", id="closed"),
    pytest.param([N1, queue(), queue("below", parent="default"), *GANG], Reason.QUEUE_HAS_CHILDREN, "has queues below it", id="not a leaf"),
    pytest.param([N1, queue(), group(minimum=3), pod("g-0")], Reason.NOT_ENOUGH_TASKS, "1 of 3 pods exist", id="pods are missing"),
    pytest.param([N1, queue(), group(minimum=2), pod("g-0"), pod("g-1", schedulingGates=[{"name": "x"}])], Reason.SCHEDULING_GATED, "1 is held back by scheduling gates", id="gates"),
    pytest.param([N1, queue(), group("o"), pod("o-0", "o", phase="Running", node="n1", **PORT), group(), pod("g-0", **PORT)], Reason.HOST_PORT_TAKEN, "needs port 80", id="port"),
    pytest.param([N1, queue(), group(), pod("g-0", affinity=NEAR)], Reason.POD_AFFINITY, "needs a pod with", id="affinity"),
    pytest.param([N1, queue(), *A_RUNS, group(), pod("g-0", affinity=APART)], Reason.POD_ANTI_AFFINITY, "must be apart from pods with", id="anti-affinity"),
    pytest.param(
        [N1, queue(), group("o"), pod("o-0", "o", phase="Running", node="n1", affinity=APART), group(), pod("g-0", labels={"app": "a"})],
        Reason.REPELLED, "repels it", id="anti-affinity of another",
    ),
    pytest.param(
        [N1, node("n2", cpu="0", labels={HOST: "n2"}), queue(), *A_RUNS, group(), pod("g-0", labels={"app": "a"}, **SPREAD)],
        Reason.TOPOLOGY_SPREAD, "would have 2 more than", id="spreading",
    ),
    pytest.param([N1, queue(), group(), pod("g-0", resourceClaims=[{"name": "gpu"}])], Reason.UNKNOWN_CONSTRAINT, "resourceClaims", id="unknown demand"),
    pytest.param([N1, queue(), *runs("4", name="low"), priority_class("high", 9), group(priorityClassName="high"), pod("g-0", cpu="4")], Reason.WAITING_FOR_VICTIMS, "1 pod of low is asked to end", id="victims"),
    pytest.param([N1, queue(**RED), configured("nodegroup"), *GANG], Reason.NODE_GROUP, "1 is of no node group", id="node group"),
    pytest.param(
        [node("n1", labels={"volcano.sh/revocable-zone": "z"}), queue(), configured("tdm"), *GANG], Reason.REVOCABLE_ZONE,
        "1 is in the revocable zone z, which is closed now", id="zone",
    ),
    pytest.param([N1, queue(), configuration('actions: "enqueue"'), *GANG], Reason.NOT_ALLOCATING, "does not name the action allocate", id="no action"),
]  # fmt: skip


def asking(minimum, **cpus):
    """A gang whose minimum pods of any task may fill; each digit is the CPU that a pod asks for."""
    each = [(task, number, cpu) for task, some in cpus.items() for number, cpu in enumerate(some)]
    return group(minimum=minimum), *(pod(f"g-{t}-{number}", cpu=cpu, role=t) for t, number, cpu in each)


CASES += [
    pytest.param(
        [N1, queue(), *runs("4"), *asking(2, large="9", small="11")], Reason.NOT_ENOUGH_RESOURCES,
        "0 of 2 pods fit; each needs 1 CPU, the most free on one node is 0 CPU (n1).", id="one is too large, and not needed",
    ),
    pytest.param(
        [N1, queue(), *runs("4"), *asking(2, large="9", small="1")], Reason.NEVER_FITS,
        "This can never start: a pod needs 9 CPU", id="one is too large, and needed",
    ),
    pytest.param(
        [node("n1", cpu="16"), queue(), queue("kept", **keeping(6)), *runs("4"), *asking(4, small="2222")], Reason.QUEUE_GUARANTEES,
        "The cluster has room for 3 of the 4 pods that must start together: the next one needs 2 CPU, and 0 CPU of 16 CPU is left then, "
        "as guarantees keep 6 CPU for queue kept.",
        id="guarantees, gang short by one",
    ),
    pytest.param(
        [node("n1", cpu="30"), queue("team", {"cpu": "16"}), queue(parent="team"), queue("kept", parent="team", **keeping(6)), *runs("4"), *asking(4, small="2222")],
        Reason.QUEUE_GUARANTEES, "Queue team has room for 3 of the 4 pods that must start together: the next one needs 2 CPU, and 0 CPU of 16 CPU is left then, ",
        id="guarantees beside it, gang short by one",
    ),
    pytest.param(
        [node("n1", cpu="20"), queue(capability={"cpu": "9"}), *runs("4"), *asking(4, small="2222")], Reason.QUEUE_LIMIT,
        "Queue default has room for 2 of the 4 pods that must start together: the next one needs 2 CPU, and 1 CPU of 9 CPU is left then.",
        id="capability, gang short by two",
    ),
    pytest.param(
        [node("n1", cpu="20"), queue(capability={"pods": "3"}), *runs("4"), *asking(4, small="2222")], Reason.QUEUE_TOO_SMALL,
        "the queue's limit of 3 pods", id="more pods than the capability",
    ),
    pytest.param(
        [node("n1", cpu="20"), queue(capability={"pods": "4"}), *runs("4"), *asking(4, small="2222")], Reason.QUEUE_LIMIT,
        "has room for 3 of the 4 pods that must start together: the next one needs 1 pod, and 0 pods of 4 pods is left then.", id="a limit of pods",
    ),
    pytest.param(
        [node("n1", cpu="20"), queue(capability={"cpu": "9"}), *runs("4"), *asking(5, a="1111", b="5")], Reason.QUEUE_LIMIT,
        "has room for 4 of the 5 pods that must start together: the next one needs 5 CPU, and 1 CPU of 9 CPU is left then.", id="capability, pods of two sizes",
    ),
    pytest.param(
        [node("n1", cpu="20"), queue(capability={"cpu": "8"}), *runs("4"), *asking(5, a="1111", b="5")], Reason.QUEUE_TOO_SMALL,
        "the queue's limit of 8 CPU", id="more than the capability, pods of two sizes",
    ),
]  # fmt: skip


@pytest.mark.shows("scheduler 5.2/reasons", "scheduler 11/8", "scheduler 11/9")
@pytest.mark.parametrize(("objects", "reason", "words"), CASES)
def test_a_cycle_gives_the_reason_with_its_numbers(objects, reason, words):
    world = World(*objects)
    world.cycle()
    if reason in (Reason.NOT_ENOUGH_TASKS, Reason.SCHEDULING_GATED):
        world.cycle(seconds=11)  # until then its pods may be about to be made
    told = world.condition()
    assert told["reason"] == reason
    assert words in people(told["message"])
    assert "CPU" not in gist(people(told["message"])), "would be written as often as others start or end"


@pytest.mark.parametrize(
    ("told", "first"),
    [
        ("4 of 8 pods exist; waiting for the others to be created.", "4 of 8 pods exist"),
        ("2 of 4 pods may be scheduled; 2 are held back by scheduling gates.", "2 of 4 pods may be scheduled"),
        ("3 of 5 pods have a node; each of the others needs 1 CPU.", "3 of 5 pods have a node"),
        ("3 of 8 pods fit; each needs 1 CPU, the most free on one node is 0 CPU (n1).", "of 8 pods fit"),
        ("1 of 2 sub-groups fit that must start together; each needs room for 2 pods.", "of 2 sub-groups fit that must start together"),
        ("3 of 4 pods fit at best into one HyperNode of tier 1 (s0), and all must be in one.", "of 4 pods fit at best into one HyperNode of tier 1"),
        ("Queue a has room for 1 of the 2 pods that must start together: the next needs 2 CPU.", "Queue a has room for of the 2 pods that must start together"),
        ("Waits for room in queue a.b: its minimum needs 2 CPU.", "Waits for room in queue a.b"),
        ("Queue a.b is closed; open it or choose another.", "Queue a.b is closed"),
        ("The cluster has no nodes.", "The cluster has no nodes"),
    ],
)  # fmt: skip
def test_gist(told, first):
    assert gist(told) == first


def test_room_that_is_kept_for_who_goes_first_is_named():
    """Half of the room of the victims is there already; a smaller job would fit into it, and is told for whom it is kept."""
    world = World(
        node("n1", cpu="4"),
        node("n2", cpu="4"),
        queue(),
        priority_class("high", 9),
        group("low", phase="Running"),
        *(pod(f"low-{n}", "low", "4", phase="Running", node=f"n{n + 1}") for n in range(2)),
        group("top", 2, priorityClassName="high"),
        *(pod(f"top-{n}", "top", "4") for n in range(2)),
    )
    world.cycle()
    assert world.going() == ["low-0", "low-1"]
    world.gone("low-0")
    world.put(group(), pod("g-0", cpu="2"), group("huge"), pod("huge-0", "huge", cpu="3"))
    before = world.snapshot
    world.cycle()
    assert world.condition()["reason"] == "RoomKept"
    assert people(world.condition()["message"]) == (
        "The room that this needs is kept for job group top, which goes first and waits for pods to end."
    )
    assert "g-0" not in world.where()
    assert world.condition("top")["reason"] == "WaitingForVictims"
    world.gone("low-1")
    world.cycle()
    assert {"top-0", "top-1"} <= world.where().keys()
    assert before is world.snapshot


def test_room_that_would_not_do_is_not_to_blame():
    world = World(*evicting())
    world.cycle()
    world.put(group(minimum=2), pod("g-0", cpu="4"), pod("g-1", cpu="4"))
    world.cycle()
    assert world.condition()["reason"] == "NeverFits"


def test_pods_of_a_group_that_is_not_there_are_told_so():
    world = World(N1, queue(), pod("p", "lost"))
    world.cycle()
    world.cycle(seconds=11)
    told = world.get(resources.PODS, "p")["status"]["conditions"][0]
    assert told["message"] == "Pod group lost does not exist; create it, or create the pod without naming a group."


def test_a_claim_without_a_volume_is_named():
    claim = [{"name": "data", "persistentVolumeClaim": {"claimName": "disk"}}]
    world = World(N1, queue(), group(), pod("g-0", volumes=claim), heeds_claims=True)
    world.cycle()
    assert world.condition()["reason"] == "ClaimNotBound"
    assert "The claim disk has no volume yet" in people(world.condition()["message"])


def test_nodes_that_are_too_busy_are_counted():
    world = World(N1, queue(), configured("usage"), *GANG)
    world.snapshot.loads.note({"node": "n1", "at": world.now, "machine": [4_000_000_000, 0, 15_000]})
    world.cycle()
    assert world.condition()["reason"] == "NodesBusy"
    assert "1 is above 80 % of its CPU" in people(world.condition()["message"])


def test_a_clock_that_was_set_back_keeps_no_news_from_those_who_wait():
    world = World(N1, queue(), *runs("3"), *GANG)
    world.cycle()
    world.now -= 3_600_000
    world.put(node("n1", ready=False))
    world.cycle()
    assert world.condition()["reason"] == "NodesUnavailable"
    note = world.get(resources.PODS, "g-0")["status"]["conditions"][0]
    assert "not ready" in note["message"]


ELSEWHERE = {
    Reason.ROOM_KEPT: test_room_that_is_kept_for_who_goes_first_is_named,
    Reason.GROUP_NOT_FOUND: test_pods_of_a_group_that_is_not_there_are_told_so,
    Reason.CLAIM_NOT_BOUND: test_a_claim_without_a_volume_is_named,
    Reason.NODES_BUSY: test_nodes_that_are_too_busy_are_counted,
    Reason.RESERVED: test_reservations.test_who_has_waited_long_gets_a_reservation,
    Reason.QUOTA_EXCEEDED: test_quotas.test_it_says_why,
    Reason.NETWORK_TOPOLOGY: test_topology.test_a_gang_waits_rather_than_be_farther_apart_and_says_so,
    Reason.SUB_GROUPS: test_sub_groups.test_as_many_sub_groups_start_with_the_gang_as_it_asks_for,
}
"""Reasons that take more than one cycle, or that the test of their own plugin brings about."""


def test_no_reason_is_left_out():
    assert {case.values[1] for case in CASES} | ELSEWHERE.keys() == set(Reason)
