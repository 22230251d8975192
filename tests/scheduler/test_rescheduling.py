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
from .world import World, configuration, group, made, node, pod, priority_class, queue

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


def conf(*plugins, actions=", shuffle"):
    return configuration(CONF % (actions, "\n".join(plugins or [SPREAD])))


def running(count, *, on="full", of="g", **more):
    return [made(f"{of}-{n}", of, node=on, phase="Running", **more) for n in range(count)]


def world(*objects, nodes=("empty", "full"), config=None):
    """Two nodes of four CPUs; `full` has what a group of four single pods with a minimum of one asks for."""
    return World(*(node(name) for name in nodes), queue(), config or conf(), *objects)


def usual():
    return [group(minimum=1, phase="Running"), *running(4)]


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
    here = world(*usual())
    here.cycle()
    assert here.going() == ["g-3"]
    came_back(here)
    here.cycle()
    assert here.where() == {"g-0": "full", "g-1": "full", "g-2": "full", "g-3": "empty"}
    start(here)
    assert here.cycle(600).evictions == []


def changed(objects, name, change):
    found = json.loads(json.dumps([body for _, body in objects]))
    for body in found:
        if body["metadata"]["name"] == name:
            change(body)
    return [(kind, body) for (kind, _), body in zip(objects, found, strict=True)]


def annotated(objects, name, **notes):
    return changed(objects, name, lambda body: body["metadata"].setdefault("annotations", {}).update(notes))


def budget(least):
    return resources.DISRUPTION_BUDGETS, {
        "metadata": {"name": "b", "namespace": "ns"},
        "spec": {"minAvailable": least, "selector": {"matchLabels": {"app": "a"}}},
    }


READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def budgeted(least):
    objects = [group(minimum=1, phase="Running"), *running(4, labels={"app": "a"})]
    for n in range(4):
        objects = changed(objects, f"g-{n}", lambda body: body.update(status=READY))
    return [*objects, budget(least)]


def in_kube_system():
    return changed(usual(), "g", lambda body: body["metadata"].update(namespace="kube-system")) and [
        (kind, json.loads(json.dumps(body).replace('"namespace": "ns"', '"namespace": "kube-system"')))
        for kind, body in usual()
    ]


@cases("objects, options, gone", {
    "one pod beyond a minimum": (usual(), {}, ["g-3"]),
    "without the action": (usual(), {"config": conf(actions="")}, []),
    "packing outweighs spreading": (usual(), {"config": conf(SPREAD, PACK)}, []),
    "it would come back by packing": (usual(), {"config": conf(PACK)}, []),
    "it would come back to the fullest node": (usual(), {"config": conf("  - name: gang")}, []),
    "a gang that is at its minimum": ([group(minimum=4, phase="Running"), *running(4)], {}, []),
    "minima of roles that do not count":
        ([group(minimum=1, phase="Running", minTaskMember={"w": 4}), *running(4, role="w")], {}, ["g-3"]),
    "pods that nobody makes again":
        ([group(minimum=1, phase="Running"), *(pod(f"g-{n}", node="full", phase="Running") for n in range(4))], {}, []),
    "a node at its target": ([group(minimum=0, phase="Running"), *running(3)], {}, []),
    "no node is little used": ([*usual(), group("h", phase="Running"), *running(3, on="empty", of="h")], {}, []),
    "the other node stays within its target": ([group(minimum=1, phase="Running"), *running(2, cpu="2")], {}, ["g-1"]),
    "the other node would be above its target":
        ([*usual(), group("h", phase="Running"), *running(1, on="empty", of="h", cpu="2500m")], {}, []),
    "it would only carry the matter elsewhere": ([group(minimum=0, phase="Running"), *running(1, cpu="3500m")], {}, []),
    "a group that stays": (annotated(usual(), "g", **{"volcano.sh/preemptable": "false"}), {}, []),
    "a pod that stays": (annotated(usual(), "g-3", **{"volcano.sh/preemptable": "false"}), {}, ["g-2"]),
    "pods of the system": (in_kube_system(), {}, []),
    "critical pods":
        ([group(minimum=1, phase="Running"), *running(4, priorityClassName="system-node-critical")], {}, []),
    "a budget allows it": (budgeted(3), {}, ["g-3"]),
    "a budget does not": (budgeted(4), {}, []),
    "the budget of a group": (annotated(usual(), "g", **{"volcano.sh/jdb-min-available": "4"}), {}, []),
    "somebody waits for room": ([*usual(), group("h", minimum=1), made("h-0", "h", cpu="5")], {}, []),
    "its own group waits": ([*usual(), made("g-4", "g", cpu="5")], {}, []),
    "nobody's room helps who waits": ([*usual(), group("h", queue="nowhere"), made("h-0", "h")], {}, ["g-3"]),
    "room does not help who waits for a quota":
        ([*usual(), quota(hard={"cpu": "1"}), group("h", phase="", minResources={"cpu": "2"})], {}, ["g-3"]),
    "there is no other node": (usual(), {"nodes": ["full"]}, []),
    "nobody places it again":
        (usual(), {"config": configuration((CONF % (", shuffle", SPREAD)).replace("allocate, ", ""))}, []),
    "a queue that does not exist": ([group(minimum=1, phase="Running", queue="nowhere"), *running(4)], {}, []),
    "pods that are kept close together":
        ([group(minimum=1, phase="Running", networkTopology={"mode": "soft"}), *running(4)], {}, []),
    "another of its group is going already": (
        [group(minimum=1, phase="Running"), *running(3), made("g-3", "g", node="full", phase="Running", deleted="2026-01-01T01:00:00Z")],
        {}, ["g-3"],
    ),
    "pods that have not started":
        ([group(minimum=1, phase="Running"), *(made(f"g-{n}", "g", node="full") for n in range(4))], {}, []),
    "some of its pods may be on nodes that are lent": (
        annotated(usual(), "g-0", **{"volcano.sh/revocable-zone": "*"}), {"config": conf(SPREAD, "  - name: tdm")}, [],
    ),
    "it must be there":
        ([group(minimum=1, phase="Running"), *running(4, nodeSelector={"kubernetes.io/hostname": "full"})], {}, []),
})  # fmt: skip
def test_who_is_moved(objects, options, gone):
    here = world(**options)
    here.put(*objects)
    here.cycle()
    assert here.going() == gone


@pytest.mark.shows("scheduler 3.11 rescheduling/order")
def test_the_lowest_priority_goes_first_and_a_queue_that_would_not_take_it_again_keeps_it():
    classes = [priority_class("low", 1), priority_class("high", 9)]
    objects = [
        *classes,
        queue("small", {"cpu": "1"}),
        group("a", phase="Running", priorityClassName="low", queue="small"),
        *running(2, of="a"),  # more than its queue may have by now
        group("b", phase="Running", priorityClassName="high"),
        *running(2, of="b"),
    ]
    here = world(*objects)
    here.cycle()
    assert here.going() == ["b-1"]
    here = world(*objects, queue("small", {"cpu": "2"}))
    here.cycle()
    assert here.going() == ["a-1"]


def test_pods_that_have_just_started_stay():
    objects = annotated(usual(), "g-3", **{"volcano.sh/cooldown-time": "10m"})
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    objects = changed(objects, "g-3", lambda body: body.update(status={"phase": "Running", "conditions": [scheduled]}))
    here = world(*objects, config=conf(SPREAD, "  - name: cdp"))
    here.cycle()
    assert here.going() == ["g-2"]


@pytest.mark.shows("scheduler 3.11 rescheduling/interval")
def test_it_is_asked_once_in_an_interval_and_not_while_pods_are_going():
    here = World(node("empty", "8"), node("full", "8"), queue(), conf(), group(phase="Running"), *running(8))
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
    here = World(node("empty", "80", pods=99), node("full", "80", pods=99), queue(), conf())
    here.put(group(phase="Running"), *running(80))
    assert len(here.cycle().evictions) == MOST


def test_a_pod_with_a_volume_claim_stays_where_claims_are_heeded():
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    objects = [group(minimum=1, phase="Running"), *running(4, volumes=[volume])]
    gone = []
    for heeds in (True, False):
        here = World(node("empty"), node("full"), queue(), conf(), *objects, heeds_claims=heeds)
        here.cycle()
        gone.append(here.going())
    assert gone == [[], ["g-3"]]


def test_pods_that_are_kept_apart_from_others_go_only_where_those_are_not():
    apart = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    other = [group("h", phase="Running"), *running(1, on="empty", of="h", cpu="100m", labels={"app": "a"})]
    nodes = [node(name, labels={"kubernetes.io/hostname": name}) for name in ("empty", "full")]
    for more, gone in ((other, []), ([], ["g-3"])):
        here = World(*nodes, queue(), conf(), group(minimum=1, phase="Running"), *running(4, affinity=affinity), *more)
        here.cycle()
        assert here.going() == gone


def test_pods_are_told_why_they_are_moved():
    here = world(*usual())
    decisions = here.cycle()
    words = "It is moved: 100 % of the CPU of its node full is asked for, above the target of 75 %."
    assert [each["message"] for each in here.events if each["reason"] == "Evict"] == [words]
    (condition,) = here.get(resources.PODS, "g-3")["status"]["conditions"]
    assert (condition["type"], condition["reason"], condition["message"]) == (
        "DisruptionTarget", "NodeAboveTarget", words,
    )  # fmt: skip
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
