"""Who is let in: room of the cluster, ceilings of queues, and who holds what was promised."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler.cycle.enqueue import OVERCOMMIT_PERCENT
from scheduler.engine.message import people

from .world import World, group, node, pod, priority_class, queue


def asking(name, cpu, **more):
    return group(name, phase="Pending", minResources={"cpu": str(cpu)}, **more)


def inside(world):
    phases = {key[2]: world.status(key[2]).get("phase") for key in world.objects if "podgroups" in key[0]}
    return {name for name, phase in phases.items() if phase == "Inqueue"}


def told(world, name):
    return people(world.condition(name)["message"])


def test_a_full_queue_starves_nobody_else():
    """A backlog of 200 jobs of 10 CPU behind a ceiling of 10, a gang of 16 CPU elsewhere, a cluster of 1,600."""
    world = World(
        *(node(f"n{i}", cpu="16") for i in range(100)),
        queue(),
        queue("small", {"cpu": "10"}),
        *(asking(f"backlog-{i:03}", 10, queue="small") for i in range(200)),
    )
    world.cycle()
    assert inside(world) == {"backlog-000"}
    world.put(asking("gang", 16, created="2026-02-01T00:00:00Z"))
    world.cycle()
    assert "gang" in inside(world)
    assert world.condition("backlog-001")["reason"] == "QueueLimit"
    assert told(world, "backlog-001") == (
        "Waits for room in queue small: its minimum needs 10 CPU, 0 CPU of 10 CPU can still be given out. "
        "Queue small may still take 10 CPU for 1 job that entered before."
    )


def test_groups_that_entered_a_queue_before_its_ceiling_fell_promise_no_more_than_the_ceiling():
    world = World(
        *(node(f"n{i}", cpu="16") for i in range(100)),
        queue(),
        queue("small", {"cpu": "10"}),
        *(group(f"in-{i:03}", queue="small", minResources={"cpu": "10"}) for i in range(200)),
        asking("gang", 16),
    )
    world.cycle()
    assert "gang" in inside(world)


def test_the_sentence_names_the_queue_that_holds_most_of_what_was_given_out():
    world = World(
        *(node(f"n{i}", cpu="64") for i in range(13)),
        queue(),
        queue("research"),
        *(group(f"r-{i:02}", queue="research", minResources={"cpu": "10"}) for i in range(98)),
        group("other", minResources={"cpu": "8"}),
        asking("gang", 16),
    )
    world.cycle()
    assert told(world, "gang") == (
        "Waits for room in the cluster: its minimum needs 16 CPU, 10.4 CPU can still be given out. "
        "Queue research may still take 980 CPU for 98 jobs that entered before."
    )


@pytest.mark.parametrize(
    ("objects", "cpu", "reason", "words"),
    [
        pytest.param(
            [], 11, "QueueTooSmall",
            "This can never start in queue leaf: it needs more than the queue's limit of 10 CPU.",
            id="more than the queue may ever have",
        ),
        pytest.param(
            [group("o", queue="leaf", phase="Running"), pod("o-0", "o", "4", node="n1", phase="Running")],
            7, "QueueLimit",
            "Waits for room in queue leaf: its minimum needs 7 CPU, 6 CPU of 10 CPU can still be given out.",
            id="what pods of the queue hold",
        ),
        pytest.param(
            [group("o", queue="beside", minResources={"cpu": "9"})],
            7, "QueueLimit",
            "Waits for room in queue above: its minimum needs 7 CPU, 3 CPU of 12 CPU can still be given out. "
            "Queue beside may still take 9 CPU for 1 job that entered before.",
            id="the ceiling of an ancestor, taken by a sibling",
        ),
        pytest.param(
            [group("o", queue="leaf", priorityClassName="low", minResources={"cpu": "10"})],
            10, "", "", id="lower priority in the same queue is no obstacle",
        ),
        pytest.param(
            [group("o", minimum=2, queue="leaf", minResources={"cpu": "10"}),
             pod("o-0", "o", "5", schedulingGates=[{"name": "x"}]),
             pod("o-1", "o", "5", schedulingGates=[{"name": "x"}])],
            10, "", "", id="gated pods promise nothing",
        ),
        pytest.param(
            [group("o", minimum=1, queue="leaf", minResources={"cpu": "10"}),
             pod("o-0", "o", "10", topologySpreadConstraints=[{"whenUnsatisfiable": "DoNotSchedule"}])],
            10, "", "", id="pods with an unknown demand promise nothing",
        ),
        pytest.param(
            [group("o", queue="above", minResources={"cpu": "10"})],
            10, "", "", id="groups in a queue that takes no pods promise nothing",
        ),
    ],
)  # fmt: skip
def test_entry_heeds_the_ceilings_of_a_queue_and_of_those_above_it(objects, cpu, reason, words):
    world = World(
        node("n1", cpu="100"),
        queue("above", {"cpu": "12"}),
        queue("leaf", {"cpu": "10"}, parent="above"),
        queue("beside", parent="above"),
        queue(),
        priority_class("low", -1),
        *objects,
        asking("g", cpu, queue="leaf"),
    )
    world.cycle()
    if reason:
        assert (world.condition("g")["reason"], told(world, "g")) == (reason, words)
    else:
        assert "g" in inside(world)


TREE = {"a": ("b", "c"), "b": ("d", "e")}
LEAVES = ("c", "d", "e", "free")
ABOVE = {"c": ("c", "a"), "d": ("d", "b", "a"), "e": ("e", "b", "a"), "free": ("free",)}
CLUSTER = 20
limits = st.fixed_dictionaries({name: st.sampled_from([None, 4, 7, 12]) for name in (*TREE, *LEAVES[:3])})
some_groups = st.lists(
    st.tuples(st.sampled_from(LEAVES), st.integers(1, 9), st.sampled_from(["", "high"])), max_size=14
)


def queues(ceilings):
    parents = {below: above for above, children in TREE.items() for below in children}
    made = [
        queue(name, {"cpu": str(limit)} if limit else None, parent=parents.get(name, ""))
        for name, limit in ceilings.items()
    ]
    return [*made, queue("free")]


def backlog(asked):
    return [
        asking(f"g{number:02}", cpu, queue=where, priorityClassName=urgency)
        for number, (where, cpu, urgency) in enumerate(asked)
    ]


def let_in(ceilings, groups):
    world = World(node("n1", cpu=str(CLUSTER)), priority_class("high", 5), *queues(ceilings), *groups)
    world.cycle()
    return inside(world), world


def of(obj):
    spec = obj["spec"]
    return spec["queue"], int(spec["minResources"]["cpu"]), spec["priorityClassName"]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(limits, some_groups)
def test_what_entered_fits_under_every_ceiling(ceilings, asked):
    groups = backlog(asked)
    entered, _ = let_in(ceilings, groups)
    given_out = Counter()
    for _, obj in groups:
        where, cpu, _ = of(obj)
        if obj["metadata"]["name"] in entered:
            given_out.update(dict.fromkeys((*ABOVE[where], "cluster"), cpu))
    assert all(given_out[name] <= limit for name, limit in ceilings.items() if limit)
    assert given_out["cluster"] <= CLUSTER * OVERCOMMIT_PERCENT // 100


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(limits, some_groups)
def test_among_equals_the_older_enters_first(ceilings, asked):
    groups = backlog(asked)
    entered, _ = let_in(ceilings, groups)
    refused = set()
    for _, obj in groups:
        if obj["metadata"]["name"] not in entered:
            refused.add(of(obj))
        else:
            assert of(obj) not in refused


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(limits, some_groups, st.sampled_from(LEAVES))
def test_the_backlog_of_a_queue_is_no_obstacle_to_others(ceilings, asked, where):
    """Whoever waits in a queue changes nothing for the other queues."""
    groups = backlog(asked)
    entered, _ = let_in(ceilings, groups)
    names = {obj["metadata"]["name"] for _, obj in groups if obj["spec"]["queue"] == where}
    without = [(r, obj) for r, obj in groups if obj["metadata"]["name"] not in names - entered]
    assert let_in(ceilings, without)[0] == entered


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(limits, st.lists(st.sampled_from(LEAVES), max_size=25), st.sampled_from(LEAVES))
def test_without_a_queue_nobody_enters_later(ceilings, asked, where):
    """Of groups that ask for the same, at least those enter that entered beside the queue."""
    groups = backlog([(each, 2, "") for each in asked])
    entered, _ = let_in(ceilings, groups)
    others = [(r, obj) for r, obj in groups if obj["spec"]["queue"] != where]
    names = {obj["metadata"]["name"] for _, obj in others}
    assert let_in(ceilings, others)[0] >= entered & names
