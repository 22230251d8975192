"""The action shuffle with the plugin rescheduling: running pods go from full nodes to empty ones."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube import resources
from scheduler.cycle.rescheduling import MOST
from scheduler.policy.rescheduling import INTERVAL_MS
from scheduler.writes import groups_of
from tests.campaign import examples
from tests.tables import cases

from .test_quotas import quota
from .world import World, configuration, group, made, node, queue, situation

CONF = """
actions: enqueue, allocate%s
tiers:
- plugins:
%s
  - name: rescheduling
    arguments:
      strategies:
      - name: lowNodeUtilization
        params:
          thresholds: {cpu: 50, memory: 50}
          targetThresholds: {cpu: 75, memory: 75}
"""
SPREAD = "  - name: nodeorder"
PACK = "  - name: binpack"
TWO_NODES = "node empty; node full; queue default"
USUAL = "group g 1/4x1 @full owned"


def conf(*plugins, actions=", shuffle"):
    return configuration(CONF % (actions, "\n".join(plugins or [SPREAD])))


def after_a_cycle(*objects):
    here = World(TWO_NODES, conf(), *objects)
    here.cycle()
    return here


def came_back(here, *names):
    """Let pods that were asked to end be gone, and their controller make them again under new names."""
    for name in names or here.going():
        old = json.loads(json.dumps(here.get(resources.PODS, name)))
        here.gone(name)
        new = {"metadata": old["metadata"], "spec": old["spec"], "status": {"phase": "Pending"}}
        del new["metadata"]["deletionTimestamp"], new["spec"]["nodeName"]
        new["metadata"]["uid"] += "x"
        here.put((resources.PODS, new))


def start(here):
    """Let all bound pods run."""
    for name in here.where():
        body = here.get(resources.PODS, name)
        if body["status"].get("phase") == "Pending":
            here.put((resources.PODS, body | {"status": {**body["status"], "phase": "Running"}}))


@pytest.mark.shows("scheduler 2.7/shuffle", "scheduler 3.11 rescheduling/lowNodeUtilization")
@pytest.mark.shows("scheduler 3.11 rescheduling/use")
def test_pods_go_from_full_nodes_until_those_are_within_their_target():
    here = after_a_cycle(USUAL)
    assert here.going() == ["g-3"]
    came_back(here)
    here.cycle()
    assert here.where() == {"g-0": "full", "g-1": "full", "g-2": "full", "g-3": "empty"}
    start(here)
    assert here.cycle(600).evictions == []


def on_full(**more):
    """Pods of a group that run on `full`, of which a text cannot say everything."""
    return [made(f"g-{n}", "g", node="full", phase="Running", **more) for n in range(4)]


ONE_OF_FOUR = "group g 1/0x1 phase=Running"
BUDGET = "group g 1/4x1 @full owned +app=a ready; budget b minAvailable=%d +app=a"
SYSTEM = [
    (kind, json.loads(json.dumps(body).replace('"namespace": "ns"', '"namespace": "kube-system"')))
    for kind, body in situation(USUAL)
]
NO_ALLOCATE = configuration((CONF % (", shuffle", SPREAD)).replace("allocate, ", ""))


@cases("objects, gone", {
    "one pod beyond a minimum": ([USUAL], "g-3"),
    "without the action": ([USUAL, conf(actions="")], ""),
    "packing outweighs spreading": ([USUAL, conf(SPREAD, PACK)], ""),
    "it would come back by packing": ([USUAL, conf(PACK)], ""),
    "it would come back to the fullest node": ([USUAL, conf("  - name: gang")], ""),
    "nobody places it again": ([USUAL, NO_ALLOCATE], ""),
    "a gang that is at its minimum": (["group g 4x1 @full owned"], ""),
    "minima of roles that do not count":
        ([group(minimum=1, phase="Running", minTaskMember={"w": 4}), *on_full(role="w")], "g-3"),
    "pods that nobody makes again": (["group g 1/4x1 @full"], ""),
    "a node at its target": (["group g 0/3x1 @full owned"], ""),
    "no node is little used": ([USUAL, "group h 1/3x1 @empty owned"], ""),
    "the other node stays within its target": (["group g 1/2x2 @full owned"], "g-1"),
    "the other node would be above its target": ([USUAL, "group h 1x2500m @empty owned"], ""),
    "it would only carry the matter elsewhere": (["group g 0/1x3500m @full owned"], ""),
    "a group that stays": ([f"{USUAL} ~preemptable=false"], ""),
    "a pod that stays": ([USUAL, "pod g-3 group=g @full owned ~preemptable=false"], "g-2"),
    "pods of the system": (SYSTEM, ""),
    "critical pods": ([ONE_OF_FOUR, *on_full(priorityClassName="system-node-critical")], ""),
    "a budget allows it": ([BUDGET % 3], "g-3"),
    "a budget does not": ([BUDGET % 4], ""),
    "the budget of a group": ([f"{USUAL} jdb-min-available=4"], ""),
    "somebody waits for room": ([USUAL, "group h 1x5 owned"], ""),
    "its own group waits": ([USUAL, "pod g-4 5 group=g owned"], ""),
    "nobody's room helps who waits": ([USUAL, "group h 1x1 queue=nowhere owned"], "g-3"),
    "room does not help who waits for a quota": ([USUAL, quota(hard={"cpu": "1"}), "group h 2 phase="], "g-3"),
    "there is no other node": ([f"-node empty; {USUAL}"], ""),
    "a queue that does not exist": ([f"{USUAL} queue=nowhere"], ""),
    "pods that are kept close together":
        ([group(minimum=1, phase="Running", networkTopology={"mode": "soft"}), *on_full()], ""),
    "another of its group is going already": ([USUAL, made(
        "g-3", "g", node="full", phase="Running", deleted="2026-01-01T01:00:00Z",
    )], "g-3"),
    "pods that have not started": ([ONE_OF_FOUR, "pod g-0..3 group=g @full owned Pending"], ""),
    "some of its pods may be on nodes that are lent":
        ([USUAL, "pod g-3 group=g @full owned ~revocable-zone=*", conf(SPREAD, "  - name: tdm")], ""),
    "it must be there": ([ONE_OF_FOUR, *on_full(nodeSelector={"kubernetes.io/hostname": "full"})], ""),
    "the lowest priority first | scheduler 3.11 rescheduling/order": (["group a 1/2x1 low @full owned; group b 1/2x1 high @full owned"], "a-1"),
    "who is above what his queue may have would not be taken again | scheduler 3.11 rescheduling/order":
        (["queue small 1; group a 1/2x1 low @full owned queue=small; group b 1/2x1 high @full owned"], "b-1"),
    "who is within it would":
        (["queue small 2; group a 1/2x1 low @full owned queue=small; group b 1/2x1 high @full owned"], "a-1"),
    "pods that have just started stay":
        ([USUAL, "pod g-3 group=g @full owned cooldown=10m", conf(SPREAD, "  - name: cdp")], "g-2"),
})  # fmt: skip
def test_who_is_moved(objects, gone):
    assert after_a_cycle(*objects).going() == gone.split()


@pytest.mark.shows("scheduler 3.11 rescheduling/interval")
def test_it_is_asked_once_in_an_interval_and_not_while_pods_are_going():
    here = World("node empty 8; node full 8; group g 1/8x1 @full owned", conf())
    assert len(here.cycle().evictions) == 2
    assert here.cycle(2).wake == here.now - 2000 + INTERVAL_MS
    came_back(here, "g-7")
    here.cycle()
    start(here)
    assert here.cycle(297).evictions == []
    assert here.cycle(2).evictions == []  # one has not left yet
    came_back(here)
    here.cycle()
    start(here)
    assert here.cycle(301).evictions == []
    assert sorted(here.where().values()) == ["empty"] * 2 + ["full"] * 6


def test_a_round_is_bounded():
    here = World("node empty 80 pods:99; node full 80 pods:99; group g 1/80x1 @full owned", conf())
    assert len(here.cycle().evictions) == MOST


@cases("heeds, gone", {"claims are heeded": (True, []), "they are not": (False, ["g-3"])})
def test_a_pod_with_a_volume_claim_stays_where_claims_are_heeded(heeds, gone):
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    here = World(TWO_NODES, conf(), ONE_OF_FOUR, *on_full(volumes=[volume]), heeds_claims=heeds)
    here.cycle()
    assert here.going() == gone


@cases("other, gone", {"there": ("pod h 100m app=a @empty", []), "not there": ("", ["g-3"])})
def test_pods_that_are_kept_apart_from_others_go_only_where_those_are_not(other, gone):
    apart = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    named = "node empty kubernetes.io/hostname=empty; node full kubernetes.io/hostname=full"
    assert after_a_cycle(named, ONE_OF_FOUR, *on_full(affinity=affinity), other).going() == gone


def test_pods_are_told_why_they_are_moved():
    here = World(TWO_NODES, conf(), USUAL)
    decisions = here.cycle()
    words = "It is moved: 100 % of the CPU of its node full is asked for, above the target of 75 %."
    assert [each["message"] for each in here.events if each["reason"] == "Evict"] == [words]
    (condition,) = here.get(resources.PODS, "g-3")["status"]["conditions"]
    told = (condition["type"], condition["reason"], condition["message"])
    assert told == ("DisruptionTarget", "NodeAboveTarget", words)
    (kept,) = [each for some in groups_of(decisions, here.now) for each in some.decisions]
    assert (kept.kind, kept.reason, kept.name) == ("evict", "shuffle", "g")
    assert kept.message == "g-3 was asked to end, because of shuffle: more of node full is asked for than its target."


NODES = ["n0", "n1", "n2", "n3"]
pods = st.tuples(st.sampled_from(NODES), st.sampled_from([500, 1000, 1500, 2000]), st.sampled_from([0, 1, 3]))
"""The node of a pod, and how many thousandths of a CPU and Gi of memory it asks for."""
groups = st.lists(st.tuples(st.integers(0, 3), st.lists(pods, max_size=6)), max_size=4)
sizes = st.lists(st.tuples(st.sampled_from([2000, 4000, 8000]), st.sampled_from([4, 8])), min_size=4, max_size=4)


class Room:
    """What nodes have and what is asked for of them, counted anew."""

    def __init__(self, of):
        self.of, self.asked, self.on = dict(zip(NODES, of, strict=True)), {}, {}

    def left(self, name):
        there = [self.asked[each] for each, on in self.on.items() if on == name]
        return tuple(whole - sum(used) for whole, *used in zip(self.of[name], *there, strict=True))

    def put(self, name, on, cpu, memory):
        self.asked[name], self.on[name] = (cpu, memory), on

    def above(self):
        return {
            name
            for name, whole in self.of.items()
            if any(left < total / 4 for left, total in zip(self.left(name), whole, strict=True))
        }

    def crowd(self):
        """How many pods are on nodes above their target."""
        above = self.above()
        return sum(on in above for on in self.on.values())


def settled(of, given, plugins):
    """A world in which all pods that have room run, and a count of it."""
    here = World(
        *(node(name, f"{cpu}m", f"{memory}Gi") for name, (cpu, memory) in zip(NODES, of, strict=True)),
        queue(),
        conf(*plugins),
    )
    room = Room(of)
    for number, (minimum, some) in enumerate(given):
        placed = []
        for at, (on, cpu, memory) in enumerate(some):
            if all(left >= asked for left, asked in zip(room.left(on), (cpu, memory), strict=True)):
                requests = {"memory": f"{memory}Gi"} if memory else None
                name = f"g{number}-{at}"
                room.put(name, on, cpu, memory)
                placed.append(made(name, f"g{number}", f"{cpu}m", node=on, phase="Running", requests=requests))
        here.put(group(f"g{number}", min(minimum, len(placed)), phase="Running"), *placed)
    return here, room


@examples(150)
@given(
    sizes,
    groups,
    st.sampled_from([[SPREAD], [PACK], [SPREAD, PACK], ["  - name: gang"]]),
    st.randoms(use_true_random=False),
)
def test_after_a_while_nobody_is_moved_any_more(of, given, plugins, random):
    """Whether pods come back all at once or one by one: each round leaves fewer on nodes above their target."""
    here, room = settled(of, given, plugins)
    for _ in range(len(room.on) + 1):
        above, before = room.above(), room.crowd()
        decisions = here.cycle(INTERVAL_MS / 1000)
        going = here.going()
        if not going:
            return
        assert {each.pod.node for each in decisions.evictions} <= above
        for key in here.snapshot.holding:
            some = here.snapshot.groups[key]
            assert some.ready() >= some.min_member
        random.shuffle(going)
        while going:
            some = going if random.random() < 0.5 else going[:1]
            going = going[len(some) :]
            came_back(here, *some)
            here.cycle()
            start(here)
        assert here.where().keys() == room.on.keys()
        room.on = here.where()
        assert room.crowd() < before
    pytest.fail("pods are moved without end")
