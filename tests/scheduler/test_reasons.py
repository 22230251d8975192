"""Every reason of the closed list; most are brought about by the situations of tests/golden/scheduler/waits.txt."""

from __future__ import annotations

import re

import pytest

from scheduler.engine.cause import Reason
from scheduler.engine.message import gist
from tests.tables import cases

from . import test_quotas, test_sub_groups, test_topology
from .blocks import GOLDEN
from .world import World, configuration, pod, queue

HOST = "kubernetes.io/hostname"
NODE = f"node n1 4 {HOST}=n1"
GANG = "group g 2x2"
GROUP = "group g 1/0x1; group o 1/0x1 phase=Running"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
RULE = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "a"}}}
APART = {"affinity": {"podAntiAffinity": {REQUIRED: [RULE]}}}
NEAR = {"affinity": {"podAffinity": {REQUIRED: [RULE]}}}
SPREAD = {"topologySpreadConstraints": [{**RULE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]}
PORT = {"containers": [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}]}
LABELLED = {"labels": {"app": "a"}}
RED = {"affinity": {"nodeGroupAffinity": {REQUIRED: ["red"]}}}


def runs(**spec):
    return pod("o-0", "o", phase="Running", node="n1", **spec)


def configured(plugin):
    return configuration(f"actions: enqueue, allocate\ntiers: [{{plugins: [{{name: {plugin}}}]}}]")


CASES = {
    "port": (Reason.HOST_PORT_TAKEN, "needs port 80", [GROUP, runs(**PORT), pod("g-0", **PORT)]),
    "affinity": (Reason.POD_AFFINITY, "needs a pod with", [GROUP, pod("g-0", **NEAR)]),
    "anti-affinity":
        (Reason.POD_ANTI_AFFINITY, "must be apart from pods with", [GROUP, runs(**LABELLED), pod("g-0", **APART)]),
    "anti-affinity of another": (Reason.REPELLED, "repels it", [GROUP, runs(**APART), pod("g-0", **LABELLED)]),
    "spreading": (
        Reason.TOPOLOGY_SPREAD, "would have 2 more than",
        [f"node n2 0 {HOST}=n2; {GROUP}", runs(**LABELLED), pod("g-0", **LABELLED, **SPREAD)],
    ),
    "unknown demand":
        (Reason.UNKNOWN_CONSTRAINT, "resourceClaims", [GROUP, pod("g-0", resourceClaims=[{"name": "gpu"}])]),
    "node group": (Reason.NODE_GROUP, "1 is of no node group", [queue(**RED), configured("nodegroup"), GANG]),
}  # fmt: skip


@pytest.mark.shows("scheduler 5.2/reasons", "scheduler 11/8", "scheduler 11/9")
@cases("reason, words, objects", CASES)
def test_a_cycle_gives_the_reason_in_words(reason, words, objects):
    world = World(NODE, *objects)
    world.cycle()
    assert world.reason() == reason
    assert words in world.told()


@cases("told, first", {
    "pods exist": ("4 of 8 pods exist; waiting for the others to be created.", "4 of 8 pods exist"),
    "gates": ("2 of 4 pods may be scheduled; 2 are held back by scheduling gates.", "2 of 4 pods may be scheduled"),
    "pods beyond": ("3 of 5 pods have a node; each of the others needs 1 CPU.", "3 of 5 pods have a node"),
    "pods fit": ("3 of 8 pods fit; each needs 1 CPU, the most free on one node is 0 CPU (n1).", "of 8 pods fit"),
    "sub-groups fit": (
        "1 of 2 sub-groups fit that must start together; each needs room for 2 pods.",
        "of 2 sub-groups fit that must start together",
    ),
    "a HyperNode": (
        "3 of 4 pods fit at best into one HyperNode of tier 1 (s0), and all must be in one.",
        "of 4 pods fit at best into one HyperNode of tier 1",
    ),
    "room in a queue for some": (
        "Queue a has room for 1 of the 2 pods that must start together: the next needs 2 CPU.",
        "Queue a has room for of the 2 pods that must start together",
    ),
    "a queue's room": ("Waits for room in queue a.b: its minimum needs 2 CPU.", "Waits for room in queue a.b"),
    "a queue is closed": ("Queue a.b is closed; open it or choose another.", "Queue a.b is closed"),
    "no nodes": ("The cluster has no nodes.", "The cluster has no nodes"),
})  # fmt: skip
def test_gist(told, first):
    assert gist(told) == first


def told_in_golden():
    """Return the reasons and what is told of them in the golden files."""
    text = "\n".join(each.read_text() for each in GOLDEN.glob("*.txt"))
    return re.findall(rf"^→ .*?\b({'|'.join(Reason)})[:,] (.*)$", text, re.M)


def test_the_gist_has_no_amounts_that_change_as_often_as_others_start_or_end():
    told = [words for _, words in told_in_golden()]
    assert len(told) > 99
    assert [each for each in told if "CPU" in gist(each)] == []


def test_a_claim_without_a_volume_is_named():
    claim = [{"name": "data", "persistentVolumeClaim": {"claimName": "disk"}}]
    world = World(NODE, GROUP, pod("g-0", volumes=claim), heeds_claims=True)
    world.cycle()
    assert world.reason() == "ClaimNotBound"
    assert "The claim disk has no volume yet" in world.told()


def test_nodes_that_are_too_busy_are_counted():
    world = World(NODE, configured("usage"), GANG)
    world.snapshot.loads.note({"node": "n1", "at": world.now, "machine": [4_000_000_000, 0, 15_000]})
    world.cycle()
    assert world.reason() == "NodesBusy"
    assert "1 is above 80 % of its CPU" in world.told()


def test_pods_of_a_group_that_is_not_there_are_told_so():
    world = World(NODE, "pod p group=lost")
    world.cycle()
    world.cycle(seconds=11)
    assert world.says("p") == "Pod group lost does not exist; create it, or create the pod without naming a group."


ELSEWHERE = {
    Reason.GROUP_NOT_FOUND: test_pods_of_a_group_that_is_not_there_are_told_so,
    Reason.CLAIM_NOT_BOUND: test_a_claim_without_a_volume_is_named,
    Reason.NODES_BUSY: test_nodes_that_are_too_busy_are_counted,
    Reason.QUOTA_EXCEEDED: test_quotas.test_it_says_why,
    Reason.NETWORK_TOPOLOGY: test_topology.test_a_gang_waits_rather_than_be_farther_apart_and_says_so,
    Reason.SUB_GROUPS: test_sub_groups.test_as_many_sub_groups_start_with_the_gang_as_it_asks_for,
}
"""Reasons that the test of their own subject brings about."""


def test_no_reason_is_left_out():
    shown = {reason for reason, _ in told_in_golden()} | {reason for reason, *_ in CASES.values()}
    assert set(Reason) <= shown | ELSEWHERE.keys()
