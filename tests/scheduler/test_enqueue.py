"""Who is let in: room of the cluster, ceilings of queues, and who holds what was promised."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.policy.policy import DEFAULT
from tests.campaign import examples

from .world import START, World, configuration, group, node, priority_class, queue


def asking(name, cpu, **more):
    return group(name, phase="Pending", minResources={"cpu": str(cpu)}, **more)


PARENTS = {"a": "", "b": "a", "c": "a", "d": "b", "e": "b"}
LEAVES = ("c", "d", "e", "free")
ABOVE = {"c": ("c", "a"), "d": ("d", "b", "a"), "e": ("e", "b", "a"), "free": ("free",)}
CLUSTER = 20
limits = st.fixed_dictionaries({name: st.sampled_from([None, 4, 7, 12]) for name in PARENTS})
some_groups = st.lists(
    st.tuples(st.sampled_from(LEAVES), st.integers(1, 9), st.sampled_from(["", "high"])), max_size=14
)


def queues(ceilings):
    rooms = {name: {"cpu": str(limit)} if limit else None for name, limit in ceilings.items()}
    return [*(queue(name, room, parent=PARENTS[name]) for name, room in rooms.items()), queue("free")]


def backlog(requests):
    return [
        asking(f"g{number:02}", cpu, queue=where, priorityClassName=urgency)
        for number, (where, cpu, urgency) in enumerate(requests)
    ]


GATE = configuration("actions: enqueue\ntiers: [{plugins: [{name: overcommit}]}]")


def let_in(ceilings, groups):
    """Return whom the gate lets in by itself, where nothing is placed."""
    world = World(node("n1", cpu=str(CLUSTER)), priority_class("high", 5), GATE, *queues(ceilings), *groups)
    world.cycle()
    return world.inside()


def of(obj):
    spec = obj["spec"]
    return spec["queue"], int(spec["minResources"]["cpu"]), spec["priorityClassName"]


@pytest.mark.shows("scheduler 2.1/room", "scheduler 2.1/passing")
@examples(150)
@given(limits, some_groups)
def test_what_entered_fits_under_every_ceiling_and_what_waits_does_not(ceilings, requests):
    """Beside what is as urgent: what is less urgent is no obstacle. Among equals the older enters first."""
    groups = backlog(requests)
    entered = let_in(ceilings, groups)
    rooms = {**ceilings, "cluster": CLUSTER * DEFAULT.overcommit // 1000}
    given_out, beside, refused = {"": Counter(), "high": Counter()}, {"": Counter(), "high": Counter()}, set()
    for _, obj in groups:
        where, cpu, urgency = of(obj)
        if obj["metadata"]["name"] not in entered:
            refused.add(of(obj))
            continue
        assert of(obj) not in refused
        given_out[urgency].update(dict.fromkeys((*ABOVE[where], "cluster"), cpu))
        for each in {urgency, ""}:
            beside[each].update(dict.fromkeys((*ABOVE[where], "cluster"), cpu))
    for each in given_out.values():
        assert all(each[name] <= room for name, room in rooms.items() if room)
    for where, cpu, urgency in refused:
        assert any(rooms.get(name) and beside[urgency][name] + cpu > rooms[name] for name in (*ABOVE[where], "cluster"))


@examples(150)
@given(limits, st.lists(st.sampled_from(LEAVES), max_size=25), st.sampled_from(LEAVES))
def test_without_a_queue_nobody_enters_later(ceilings, leaves, where):
    """Of groups that ask for the same, at least those enter that entered beside the queue."""
    groups = backlog([(each, 2, "") for each in leaves])
    others = [(kind, obj) for kind, obj in groups if obj["spec"]["queue"] != where]
    names = {obj["metadata"]["name"] for _, obj in others}
    assert let_in(ceilings, others) >= let_in(ceilings, groups) & names


STATES = ("Open", "Open", "Closing", "Closed")


@given(steps=st.lists(st.one_of(st.sampled_from(STATES), st.sampled_from(["group", "cycle"])), min_size=4, max_size=20))
@examples(500, deadline=None)
def test_who_came_while_a_queue_was_shut_waits_and_nobody_else_does(steps):
    """The queue notes since when it is shut, as its controller does; all would be let in for want of nothing."""
    world = World("node n 99")
    state, since, may, number = "Open", None, set(), 0
    for step in [*steps, "cycle"]:
        world.now += 1000
        if step == "group":
            world.put(f"group g{number} 1 ago={(START - world.now) // 1000}")
            if state == "Open":
                may.add(f"g{number}")
            number += 1
        elif step == "cycle":
            world.cycle()
            if state == "Open":
                may |= {f"g{each}" for each in range(number)}
            if state != "Closed":
                assert world.inside() == may
        else:
            since = None if step == "Open" else since or world.now
            state = step
            world.put(f"queue default {state}" + (f" since={(START - since) // 1000}" if since else ""))
            if state == "Open":
                may |= {f"g{each}" for each in range(number)}
