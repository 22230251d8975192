"""Tasks of a job that are to be on one node, or not, and in which order they start (Volcano's plugin task-topology)."""

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kube.volcano import task_topology
from scheduler.cycle.cycle import schedule
from tests.tables import cases

from .world import World, situation


def asking(replicas, **says):
    """A group whose annotations say something of its tasks, and its pods."""
    ((kind, one),) = situation("group g 1/0x1")
    one["metadata"]["annotations"] = {f"volcano.sh/task-topology-{name.replace('_', '-')}": says[name] for name in says}
    yield kind, one
    yield from (f"pod {task}-0..{count - 1} group=g ~task-spec={task}" for task, count in replicas.items())


def placed(*objects, plugins="task-topology"):
    """Where the pods are that got a node: node → tasks."""
    world = World(f"queue default; conf enqueue, allocate: {plugins}", *objects)
    world.cycle()
    found = {}
    for name, on in world.where().items():
        found.setdefault(on, Counter())[name.rpartition("-")[0]] += 1
    return found


def test_a_configuration_that_comes_later_holds_for_those_that_wait():
    world = World("queue default", *asking({"a": 2, "worker": 2}, task_order="worker"))
    schedule(world.snapshot, world.now)  # nothing of it is written, so neither the group nor a pod changes
    world.put("conf enqueue, allocate: task-topology; node n1 2")
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
    plugins = "task-topology"
    if is_scored:
        plugins = "{name: task-topology, arguments: {task-topology.weight: 9}}, {name: nodeorder, arguments: {podaffinity.weight: 0}}"
    found = placed("node n0..3 20 pods:30", *asking(replicas, affinity=written(clauses)), plugins=plugins)
    drawn = {name for names in clauses for name in names}
    assert len([on for on, there in found.items() if drawn & there.keys()]) <= 1


@pytest.mark.shows("scheduler 3.11 task-topology/anti-affinity")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(some_tasks, some_clauses)
def test_those_that_part_are_on_no_node_together_while_there_are_others(replicas, clauses):
    found = placed("node n00..11 20 pods:30", *asking(replicas, anti_affinity=written(clauses)))
    pairs = {frozenset((one, other)) for names in clauses for one in names for other in names if one != other}
    pairs |= {frozenset(names) for names in clauses if len(names) == 1}
    for here in found.values():
        together = {frozenset((one, other)) for one in here for other in here if one != other}
        together |= {frozenset((task,)) for task, count in here.items() if count > 1}
        assert not together & pairs


@pytest.mark.shows("scheduler 3.11 task-topology/buckets")
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(1, 4), st.integers(1, 9), st.permutations(["", "n", "z"]))
def test_what_is_drawn_to_several_is_shared_among_them(hubs, others, prefixes):
    """Whichever name comes first: each node of a hub has as many of the others as any, or one more."""
    hub, other = f"{prefixes[0]}hub", f"{prefixes[1]}other"
    objects = asking({hub: hubs, other: others}, affinity=f"{hub},{other}", anti_affinity=hub)
    found = placed("node n0..4 20 pods:30", *objects)
    assert {here[hub] for here in found.values()} == {1}
    shares = [here[other] for here in found.values()]
    assert len(shares) == hubs
    assert max(shares) - min(shares) <= 1


@cases("text, expected", {
    "nothing": ("", []),
    "lists": ("a,b;c", [["a", "b"], ["c"]]),
    "blanks and what is empty": (" a , b ;; ,c", [["a", "b"], ["c"]]),
})  # fmt: skip
def test_annotations_are_lists_of_tasks(text, expected):
    assert task_topology.clauses(text) == expected
