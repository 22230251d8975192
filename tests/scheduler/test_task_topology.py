"""Tasks of a job that are to be on one node, or not, and in which order they start (Volcano's plugin task-topology)."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kube import task_topology
from scheduler.cycle.cycle import schedule
from tests.tables import cases

from .world import World, configuration, group, node, pod, queue

CONF = "actions: enqueue, allocate\ntiers: [{plugins: [%s]}]"
LISTED = "{name: task-topology}"
PREFIX = "volcano.sh/task-topology-"
THREE = (node("n1"), node("n2"), node("n3"))


def said(affinity="", anti_affinity="", order="", **spec):
    """A group whose annotations say this of its tasks."""
    kind, obj = group(**spec)
    texts = {"affinity": affinity, "anti-affinity": anti_affinity, "task-order": order}
    obj["metadata"]["annotations"] = {PREFIX + name: text for name, text in texts.items() if text}
    return kind, obj


def tasks(cpu="1", **replicas):
    return [pod(f"{task}-{n}", cpu=cpu, role=task) for task, count in replicas.items() for n in range(count)]


def running(name, on, role="", cpu="1", **more):
    return pod(name, cpu=cpu, role=role, node=on, phase="Running", **more)


def placed(*objects, plugins=LISTED):
    """Where the pods are that got a node: node → tasks."""
    world = World(queue(), configuration(CONF % plugins), *objects)
    before = world.where()
    world.cycle()
    found = {}
    for name, on in sorted(world.where().items()):
        if name not in before:
            found.setdefault(on, []).append(name)
    return {on: " ".join(names) for on, names in sorted(found.items())}


BUSY = running("r-0", "n1", cpu="3", group="")
TWO_EACH = {"n1": "ps-0 worker-0 worker-2", "n2": "ps-1 worker-1 worker-3"}


@pytest.mark.shows("scheduler 3.11 task-topology/affinity", "scheduler 3.11 task-topology/anti-affinity")
@pytest.mark.shows("scheduler 3.11 task-topology/buckets", "scheduler 3.11 task-topology/task-topology.weight")
@pytest.mark.shows("scheduler 3.11 task-topology/not listed")
@cases("objects, plugins, expected", {
    "together, where there is room for all":
        ([*THREE, BUSY, said("ps,worker"), *tasks(ps=1, worker=3)], LISTED, {"n2": "ps-0 worker-0 worker-1 worker-2"}),
    "not listed": (
        [*THREE, BUSY, said("ps,worker"), *tasks(ps=1, worker=3)], "",
        {"n1": "ps-0", "n2": "worker-0 worker-1 worker-2"},
    ),
    "switched off": (
        [*THREE, BUSY, said("ps,worker"), *tasks(ps=1, worker=3)], "{name: task-topology, enableNodeOrder: false}",
        {"n1": "ps-0", "n2": "worker-0 worker-1 worker-2"},
    ),
    "together against nodeorder": (
        [*THREE, said("ps,worker"), *tasks(ps=1, worker=3)], f"{LISTED}, {{name: nodeorder}}",
        {"n1": "ps-0 worker-0 worker-1 worker-2"},
    ),
    "of no weight": (
        [*THREE, said("ps,worker"), *tasks(ps=1, worker=2)],
        "{name: task-topology, arguments: {task-topology.weight: 0}}, {name: nodeorder}",
        {"n1": "ps-0", "n2": "worker-0", "n3": "worker-1"},
    ),
    "workers shared among servers": ([*THREE, said("ps,worker", "ps"), *tasks(ps=2, worker=4)], LISTED, TWO_EACH),
    "whichever task is placed first": (
        [*THREE, said("ps,worker", "ps", minimum=6, minTaskMember={"worker": 4, "ps": 2}), *tasks(ps=2, worker=4)],
        LISTED, TWO_EACH,
    ),
    "apart from each other": (
        [*THREE, said(anti_affinity="worker"), *tasks(worker=3)], LISTED,
        {"n1": "worker-0", "n2": "worker-1", "n3": "worker-2"},
    ),
    "apart as far as there are nodes": (
        [*THREE, said(anti_affinity="worker"), *tasks(worker=4)], LISTED,
        {"n1": "worker-0 worker-3", "n2": "worker-1", "n3": "worker-2"},
    ),
    "two tasks apart":
        ([*THREE, said(anti_affinity="a,b"), *tasks(a=2, b=2)], LISTED, {"n1": "a-0 a-1", "n2": "b-0 b-1"}),
    "as far as there is room":
        ([*THREE, said("worker"), *tasks("2", worker=3), BUSY], LISTED, {"n2": "worker-0 worker-1", "n3": "worker-2"}),
    "one node after the other": (
        [*THREE, said("worker"), *tasks(worker=6)], f"{LISTED}, {{name: nodeorder}}",
        {"n1": "worker-0 worker-1 worker-2 worker-3", "n2": "worker-4 worker-5"},
    ),
    "bucket by bucket where not all fit": (
        [node("n1", cpu="3"), said("ps,worker", "ps"), *tasks(ps=2, worker=4)], LISTED,
        {"n1": "ps-0 worker-0 worker-2"},
    ),
    "beside who runs": (
        [*THREE, said("ps,worker"), running("ps-0", "n2", "ps"), *tasks(worker=2)], LISTED, {"n2": "worker-0 worker-1"},
    ),
    "away from who runs": (
        [*THREE, said(anti_affinity="ps,worker"), running("ps-0", "n1", "ps"), *tasks(worker=2)], LISTED,
        {"n2": "worker-0 worker-1"},
    ),
    "both ways counts for nothing":
        ([*THREE, said("a,b", "b,a"), *tasks(a=1, b=1), BUSY], LISTED, {"n1": "a-0", "n2": "b-0"}),
    "a task that there is not": ([*THREE, said("a,nobody"), *tasks(a=1, c=1)], LISTED, {"n1": "a-0 c-0"}),
    "a taint weighs more": (
        [node("n0", taints=[{"key": "k", "effect": "PreferNoSchedule"}], cpu="8"), *THREE, said("a"), *tasks(a=5)],
        LISTED, {"n1": "a-0 a-1 a-2 a-3", "n2": "a-4"},
    ),
})  # fmt: skip
def test_who_is_on_one_node(objects, plugins, expected):
    assert placed(*objects, plugins=plugins) == expected


@pytest.mark.shows("scheduler 3.11 task-topology/task order")
@cases("order, plugins, expected", {
    "as it is written": ("worker,a", LISTED, "worker-0 worker-1"),
    "tasks that are not named come last": ("worker", LISTED, "worker-0 worker-1"),
    "nothing said": ("", LISTED, "a-0 a-1"),
    "switched off": ("worker", "{name: task-topology, enableTaskOrder: false}", "a-0 a-1"),
    "not listed": ("worker", "", "a-0 a-1"),
})  # fmt: skip
def test_which_task_comes_first(order, plugins, expected):
    objects = [node("n1", cpu="2"), said(order=order), *tasks(a=2, worker=2)]
    assert placed(*objects, plugins=plugins) == {"n1": expected}


def test_an_order_of_tasks_comes_after_their_priority():
    urgent = pod("a-0", role="a", priority=5)
    assert placed(node("n1", cpu="1"), said(order="worker,a"), urgent, *tasks(worker=1)) == {"n1": "a-0"}


def test_a_configuration_that_comes_later_holds_for_those_that_wait():
    world = World(queue(), said(order="worker"), *tasks(a=2, worker=2))
    schedule(world.snapshot, world.now)  # nothing of it is written, so neither the group nor a pod changes
    world.put(configuration(CONF % LISTED), node("n1", cpu="2"))
    world.cycle()
    assert set(world.where()) == {"worker-0", "worker-1"}


NAMES = ("a", "b", "c")
some_tasks = st.dictionaries(st.sampled_from(NAMES), st.integers(1, 4), min_size=1)
some_clauses = st.lists(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True), min_size=1, max_size=3)


def written(clauses):
    return ";".join(",".join(names) for names in clauses)


@pytest.mark.shows("scheduler 3.11 task-topology/affinity")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(some_tasks, some_clauses, st.booleans())
def test_those_that_draw_each_other_are_on_one_node_with_room_for_all(replicas, clauses, is_scored):
    plugins = LISTED + (", {name: nodeorder, arguments: {podaffinity.weight: 0}}" if is_scored else "")
    if is_scored:
        plugins = plugins.replace(
            "{name: task-topology}", "{name: task-topology, arguments: {task-topology.weight: 9}}"
        )
    nodes = [node(f"n{n}", cpu="20", pods=30) for n in range(4)]
    found = placed(*nodes, said(written(clauses)), *tasks(**replicas), plugins=plugins)
    drawn = {name for names in clauses for name in names}
    assert len([on for on, names in found.items() if any(each[0] in drawn for each in names.split())]) <= 1


@pytest.mark.shows("scheduler 3.11 task-topology/anti-affinity")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(some_tasks, some_clauses)
def test_those_that_part_are_on_no_node_together_while_there_are_others(replicas, clauses):
    nodes = [node(f"n{n:02}", cpu="20", pods=30) for n in range(12)]
    found = placed(*nodes, said(anti_affinity=written(clauses)), *tasks(**replicas))
    pairs = {frozenset((one, other)) for names in clauses for one in names for other in names if one != other}
    pairs |= {frozenset(names) for names in clauses if len(names) == 1}
    for names in found.values():
        here = Counter(each[0] for each in names.split())
        together = {frozenset((one, other)) for one in here for other in here if one != other}
        together |= {frozenset((task,)) for task, count in here.items() if count > 1}
        assert not together & pairs


@pytest.mark.shows("scheduler 3.11 task-topology/buckets")
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(1, 4), st.integers(1, 9), st.permutations(["", "n", "z"]))
def test_what_is_drawn_to_several_is_shared_among_them(hubs, others, prefixes):
    """Whichever name comes first: each node of a hub has as many of the others as any, or one more."""
    hub, other = f"{prefixes[0]}hub", f"{prefixes[1]}other"
    nodes = [node(f"n{n}", cpu="20", pods=30) for n in range(5)]
    found = placed(*nodes, said(f"{hub},{other}", hub), *tasks(**{hub: hubs, other: others}))
    shares = []
    for names in found.values():
        here = Counter(each.rpartition("-")[0] for each in names.split())
        assert here[hub] == 1
        shares.append(here[other])
    assert len(shares) == hubs
    assert max(shares) - min(shares) <= 1


@cases("text, expected", {
    "nothing": ("", []),
    "lists": ("a,b;c", [["a", "b"], ["c"]]),
    "blanks and what is empty": (" a , b ;; ,c", [["a", "b"], ["c"]]),
})  # fmt: skip
def test_annotations_are_lists_of_tasks(text, expected):
    assert task_topology.clauses(text) == expected
