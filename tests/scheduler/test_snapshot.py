"""The snapshot follows the log: whatever happened, it equals one built from the objects."""

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kube import resources
from scheduler.cycle.cycle import schedule
from scheduler.engine.cause import Exclusion, ExclusionKind
from scheduler.engine.relations import Relations
from scheduler.engine.wishes import DEFAULT
from scheduler.records.records import TaskStatus
from scheduler.snapshot.nodes import MAX_EXCLUSIONS
from scheduler.writes import groups_of
from tests.campaign import examples
from tests.tables import cases

from . import demanding
from .definitions import REQUIRED
from .world import World, group, node, pod, priority_class, queue

NODES = ("n1", "n2", "n3")
GROUPS = ("a", "b")


def facts(snapshot):
    """Everything that decisions depend on, by name."""
    names = snapshot.nodes.names()
    allocatable, free = snapshot.nodes.matrices()
    return {
        "nodes": names,
        "columns": list(snapshot.nodes.columns),
        "allocatable": allocatable.tolist(),
        "free": free.tolist(),
        "used": snapshot.nodes.used_by_node(),
        "pods": {key: (p.status, p.node, p.group, p.role, p.shape.request) for key, p in snapshot.pods.items()},
        "groups": {
            key: (g.exists, g.phase, g.counts, g.ready_roles, set(g.pending), shapes(g.shapes))
            for key, g in snapshot.groups.items()
        },
        "usage": {key: shapes(used) for key, used in snapshot.usage.items()},
        "waiting": snapshot.groups.waiting,
        "orphans": {key: o.pod is snapshot.pods[key] for key, o in snapshot.orphans.items()},
        "queues": {name: (q.state, q.capability, q.parent) for name, q in snapshot.queues.items()},
        "priorities": [snapshot.priority_classes.find(name) for name in ("", "high", "low")],
        "namespaces": snapshot.usage.namespace_queues,
        "verdicts": {key: snapshot.nodes.verdicts(p.shape).astype(bool).tolist() for key, p in snapshot.pods.items()},
        "profiles": {key: p.shape.profile for key, p in snapshot.pods.items()},
        "open": {key: open_nodes(snapshot, p.shape) for key, p in snapshot.pods.items()},
    }


def open_nodes(snapshot, shape):
    ties = snapshot.nodes.pod_class(shape, DEFAULT).ties
    return ties and ties.rules and Relations(snapshot.nodes.ground()).open_nodes(ties).tolist()


def shapes(counter):
    return sorted((repr(sorted(shape.request.items())), shape.rule_key, n) for shape, n in counter.items())


some_nodes = st.builds(
    node, st.sampled_from(NODES), st.sampled_from(["1", "2", "4"]), pods=st.integers(1, 4),
    labels=st.sampled_from([{}, {"disk": "ssd"}, {"zone": "a"}, {"zone": "b", "kubernetes.io/hostname": "n"}]),
    taints=st.sampled_from([[], [{"key": "k", "value": "v", "effect": "NoSchedule"}]]),
    ready=st.sampled_from([True, True, False]), unschedulable=st.sampled_from([False, False, True]),
).flatmap(
    lambda made: st.sampled_from([None, "1", "2"]).map(
        lambda gpus: (gpus and made[1]["status"]["allocatable"].update({"example.com/gpu": gpus})) or made
    )
)  # fmt: skip
some_pods = st.builds(
    pod, st.sampled_from([f"p-{i}" for i in range(6)]), st.sampled_from([*GROUPS, ""]), st.sampled_from(["1", "2", "500m"]),
    phase=st.sampled_from(["Pending", "Pending", "Running", "Succeeded", "Failed", "Unknown", ""]),
    node=st.sampled_from(["", "", *NODES]), role=st.sampled_from(["", "w"]),
    requests=st.sampled_from([None, {"example.com/gpu": "1"}]), scheduler=st.sampled_from(["volcano", "", "other"]),
    deleted=st.sampled_from(["", "", "2026-01-01T00:00:00Z"]), priorityClassName=st.sampled_from(["", "high"]),
    nodeSelector=st.sampled_from([{}, {"disk": "ssd"}]), tolerations=st.sampled_from([[], [{"operator": "Exists"}]]),
)  # fmt: skip


def with_demands(made, labels, spec, namespace):
    """The same pod with something to do with others."""
    kind, obj = made
    ports = spec.pop("ports", [])
    obj["metadata"] |= {"labels": labels, "namespace": namespace}
    obj["spec"] |= spec
    obj["spec"]["containers"][0]["ports"] = ports
    return kind, obj


tied_pods = st.builds(
    with_demands, some_pods, demanding.labels, demanding.demands(), st.sampled_from(["ns", "ns", "other"])
)
some_groups = st.builds(
    group, st.sampled_from(GROUPS), st.integers(0, 4), queue=st.sampled_from(["default", "team", "gone"]),
    phase=st.sampled_from(["", "Pending", "Inqueue", "Running", "Unknown", "Completed"]),
    priorityClassName=st.sampled_from(["", "high"]), minResources=st.sampled_from([{}, {"cpu": "2"}, {"cpu": "20"}]),
    minTaskMember=st.sampled_from([{}, {"w": 1}, {"w": 9}]),
)  # fmt: skip


def queue_of_namespace(name):
    metadata = {"name": "ns", "annotations": {"scheduling.volcano.sh/queue-name": name}}
    return resources.NAMESPACES, {"metadata": metadata}


some_others = st.one_of(
    st.builds(queue, st.sampled_from(["default", "team"]), st.sampled_from([None, {"cpu": "3"}])),
    st.builds(priority_class, st.just("high"), st.integers(-3, 9), globalDefault=st.booleans()),
    st.builds(queue_of_namespace, st.sampled_from(["default", "team"])),
    demanding.namespaces,
)
puts = st.one_of(some_pods, tied_pods, some_groups, some_nodes, some_others)
steps = st.one_of(puts, puts, puts, st.just("cycle"), st.integers(0, 30))


def play(world, script):
    for step in script:
        if step == "cycle":
            world.cycle(seconds=3)
        elif isinstance(step, int):
            if world.objects:
                resource, namespace, name = list(world.objects)[step % len(world.objects)]
                world.remove(resources.by_id(resource), name, namespace)
        else:
            world.put(step)


@examples(250)
@given(st.lists(steps, max_size=40))
def test_a_snapshot_that_followed_equals_one_built_from_the_objects(script):
    world = World(queue(), node("n1"))
    play(world, script)
    assert facts(world.snapshot) == facts(world.rebuilt())


@examples(150)
@given(st.lists(steps, max_size=30))
def test_history_has_no_influence_on_decisions(script):
    world = World(queue(), node("n1"))
    play(world, script)
    world.cycle(seconds=3600)
    world.cycle(seconds=3600)
    later = world.now + 3_600_000
    assert groups_of(schedule(world.rebuilt(), later), later) == groups_of(schedule(world.snapshot, later), later)


@examples(150)
@given(st.lists(puts, max_size=30), st.lists(puts, max_size=10))
def test_no_cycle_overcommits_a_node_or_starts_a_gang_below_its_minimum(script, more):
    world = World(queue(), node("n1"))
    play(world, script)
    for late in more:
        world.put(late)
        free = world.snapshot.nodes.matrices()[1]
        decisions = world.cycle(seconds=3)
        assert (world.snapshot.nodes.matrices()[1] >= free.clip(max=0)).all()
        for decision in decisions.groups:
            pod_group = world.snapshot.groups[decision.key]
            failed = pod_group.counts[TaskStatus.FAILED]  # they count where nobody else of the gang ran any more
            assert not decision.binds or pod_group.ready() + failed >= pod_group.min_member


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(steps, max_size=30))
def test_a_world_at_rest_is_not_written_to(script):
    world = World(queue(), node("n1"))
    play(world, script)
    for _ in range(4):
        world.cycle(seconds=3600)
    written = world.writes
    world.cycle(seconds=3600)
    assert world.writes == written


def test_a_pod_without_a_group_that_changes_what_it_demands_is_known_as_it_is():
    """The new demand is about the pod as it was, which is looked at again before it goes."""

    def apart(app):
        term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": app}}}
        return {"podAntiAffinity": {REQUIRED: [term]}}

    world = World(pod("p", "", labels={"app": "x"}, affinity=apart("y")))
    world.put(pod("p", "", "2", labels={"app": "x"}, affinity=apart("x")))
    assert world.snapshot.orphans["ns/p"].pod is world.snapshot.pods["ns/p"]
    assert facts(world.snapshot) == facts(world.rebuilt())


def _seconds_per_change(pods):
    world = World(queue(), *(node(f"n{i}", cpu="1000", pods=10_000) for i in range(50)))
    world.put(*(pod(f"p-{i}", node=f"n{i % 50}", phase="Running") for i in range(pods)))
    best = float("inf")
    for _ in range(5):
        start = time.thread_time()
        for i in range(50):
            world.put(pod(f"q-{i}", node=f"n{i}", phase="Running"))
        best = min(best, time.thread_time() - start)
    return best


def test_why_nodes_were_closed_once_is_forgotten():
    world = World(pod("p", "g", "1"))
    nodes = world.snapshot.nodes
    for number in range(MAX_EXCLUSIONS):  # a taint's value is a part of it, and some write times into it
        nodes.code(Exclusion(ExclusionKind.TAINT, display=str(number)))
    world.put(node("n1", "4", taints=[{"key": "seen", "value": "last", "effect": "NoSchedule"}]))
    (closed,) = nodes.verdicts(next(iter(world.snapshot.pods.values())).shape)
    assert [each.display for each in nodes.exclusions[1:]] == [nodes.exclusions[closed].display]
    assert "last" in nodes.exclusions[closed].display


def test_a_change_costs_the_same_however_many_pods_there_are():
    assert _seconds_per_change(4000) < 5 * _seconds_per_change(100)


@pytest.mark.parametrize("count", [1, 40])
def test_rows_are_found_again_after_nodes_came_and_went(count):
    world = World(queue(), group(minimum=1), pod("g-0"))
    for i in range(count):
        world.put(node(f"n{i:03}"))
    for i in range(count - 1):
        world.remove(resources.NODES, f"n{i:03}")
    world.cycle()
    assert world.where() == {"g-0": f"n{count - 1:03}"}


@pytest.mark.shows("scheduler 1.3/task-spec", "scheduler 1.3/preemptable")
@cases("labels, role, preemptable", {
    "null is none": (None, "", None),
    "a value that is null is none": ({"volcano.sh/task-spec": None}, "", None),
    "both": ({"volcano.sh/task-spec": "w", "volcano.sh/preemptable": "false"}, "w", False),
})  # fmt: skip
def test_labels_that_stand_for_annotations_are_read(labels, role, preemptable):
    kind, obj = pod("one")
    obj["metadata"]["labels"] = labels
    read = World((kind, obj)).snapshot.pods["ns/one"]
    assert (read.role, read.preemptable) == (role, preemptable)
