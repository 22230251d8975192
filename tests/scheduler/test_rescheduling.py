"""The action shuffle with the plugin rescheduling: running pods go from full nodes to empty ones."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube import resources
from scheduler.cycle.rescheduling import MOST
from scheduler.policy.rescheduling import INTERVAL_MS
from tests.campaign import examples

from .world import World

STRATEGY = (
    "{name: lowNodeUtilization, params: {thresholds: {cpu: 50, memory: 50}, targetThresholds: {cpu: 75, memory: 75}}}"
)
MOVES = f"{{name: rescheduling, arguments: {{strategies: [{STRATEGY}]}}}}"


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


def test_a_round_is_bounded():
    here = World("node empty 80 pods:99; node full 80 pods:99; group g 1/80x1 @full owned")
    here.put(f"conf enqueue, allocate, shuffle: nodeorder, {MOVES}")
    assert len(here.cycle().evictions) == MOST


NODES = ["n0", "n1", "n2", "n3"]
pods = st.tuples(st.sampled_from(NODES), st.sampled_from([500, 1000, 1500, 2000]), st.sampled_from([0, 1, 3]))
"""The node of a pod, and how many thousandths of a CPU and Gi of memory it asks for."""
groups = st.lists(st.tuples(st.integers(0, 3), st.lists(pods, max_size=6)), max_size=4)
sizes = st.lists(st.tuples(st.sampled_from([2000, 4000, 8000]), st.sampled_from([4, 8])), min_size=4, max_size=4)


class Room:
    """What nodes have and what is asked for of them, counted anew."""

    def __init__(self, of):
        self.of, self.requests, self.on = dict(zip(NODES, of, strict=True)), {}, {}

    def left(self, name):
        there = [self.requests[each] for each, on in self.on.items() if on == name]
        return tuple(whole - sum(used) for whole, *used in zip(self.of[name], *there, strict=True))

    def put(self, name, on, cpu, memory):
        self.requests[name], self.on[name] = (cpu, memory), on

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
    here = World(f"queue default; conf enqueue, allocate, shuffle: {plugins}, {MOVES}")
    here.put(*(f"node {name} {cpu}m memory:{memory}Gi" for name, (cpu, memory) in zip(NODES, of, strict=True)))
    room = Room(of)
    for number, (minimum, some) in enumerate(given):
        placed = []
        for at, (on, cpu, memory) in enumerate(some):
            if all(left >= request for left, request in zip(room.left(on), (cpu, memory), strict=True)):
                name = f"g{number}-{at}"
                room.put(name, on, cpu, memory)
                placed.append(
                    f"pod {name} {cpu}m group=g{number} @{on} owned" + (f" memory:{memory}Gi" if memory else "")
                )
        here.put(f"group g{number} {min(minimum, len(placed))}/0x1 phase=Running", *placed)
    return here, room


@examples(150)
@given(
    sizes,
    groups,
    st.sampled_from(["nodeorder", "binpack", "nodeorder, binpack", "gang"]),
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
        for key in here.snapshot.groups.holding:
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
