"""Victims for groups whose pods have rules about other pods, compared with trying all sets of them."""

from __future__ import annotations

import copy
from itertools import chain, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube import resources
from tests.campaign import examples
from tests.tables import cases

from . import demanding
from .definitions import Judge
from .demanding import HOST, ZONE
from .test_other_pods import X, apart, at, near, port, spread, term
from .test_preempt import CLASSES, HIGH, OWN, low, waiting
from .world import World, configuration, group, pod

PLACES_ONLY = configuration("actions: enqueue, allocate\ntiers:\n- plugins:\n  - name: gang\n")
Y = {"labels": {"app": "y"}}
relaxed = examples(150)


def world(*objects, nodes=(("a1", "a"), ("a2", "a"), ("b1", "b")), cpu="4"):
    return World(*(at(name, zone, cpu=cpu) for name, zone in nodes), OWN, *CLASSES, *objects)


def alone(name, node, cpu="1", priority="low", **spec):
    """A pod that runs and may go by itself."""
    return [
        group(name, 1, phase="Running", priorityClassName=priority),
        pod(f"{name}-0", name, cpu, phase="Running", node=node, **spec),
    ]


def asking(count=1, cpu="1", **spec):
    return [group("g", count, **HIGH), *(pod(f"g-{n}", "g", cpu, **copy.deepcopy(spec)) for n in range(count))]


def with_cpu(spec, cpu="1"):
    """A pod's spec with a host port keeps what it asks for."""
    for container in spec["containers"]:
        container["resources"] = {"requests": {"cpu": cpu}}
    return spec


@pytest.mark.shows("scheduler 2.4/ports and affinity")
@cases("objects, victims", {
    "who is to be avoided on the only node":
        ([*alone("x", "a1", **X), *alone("y", "a1", **Y), *asking(**apart(term(HOST, app="x")))], ["x-0"]),
    "who has the port":
        ([*alone("h", "a1", **with_cpu(port())), *alone("o", "a1"), *asking(**with_cpu(port()))], ["h-0"]),
    "who keeps it away": ([*alone("h", "a1", **apart(term(HOST, app="x"))), *alone("o", "a1"), *asking(**X)], ["h-0"]),
    "room beside whom it needs": ([*alone("x", "a1", **X), *alone("o", "a1", "2"), *alone("p", "a1"), *asking(1, "2", **near(term(HOST, app="x")))],
        ["o-0"]),
    "who is avoided leaves room as well":
        ([*alone("x", "a1", **X), *alone("o", "a1", "1"), *asking(1, "3", **apart(term(HOST, app="x")))], ["x-0"]),
    "who may not go keeps the node closed":
        ([*alone("x", "a1", priority="high", **X), *asking(**apart(term(HOST, app="x")))], []),
})  # fmt: skip
def test_who_goes_on_one_node(objects, victims):
    here = world(*objects, nodes=(("a1", "a"),))
    here.cycle()
    assert here.going() == victims
    here.gone()
    here.cycle()
    assert ("g-0" in here.where()) == bool(victims)


def test_of_two_nodes_the_one_that_costs_less():
    """One pod has to go on a2, two on a1 and in zone b."""
    here = world(
        *alone("x1", "a1", **X), *alone("x2", "a1", **X), *alone("y", "a2", **X),
        *alone("z1", "b1", **X), *alone("z2", "b1", **X), *asking(**apart(term(HOST, app="x"))),
    )  # fmt: skip
    here.cycle()
    assert here.going() == ["y-0"]


def test_all_of_a_zone_go_where_the_zone_is_to_be_free_of_them():
    here = world(
        *alone("x1", "a1", **X), *alone("x2", "a2", **X),
        *alone("x3", "b1", **X), *alone("x4", "b1", **X), *alone("x5", "b1", **X),
        *asking(**apart(term(ZONE, app="x"))),
    )  # fmt: skip
    here.cycle()
    assert here.going() == ["x1-0", "x2-0"]


def test_gang_that_is_spread_has_others_go_where_its_next_pod_is_due():
    full = [*low(4, name="p", node="b1")]
    here = world(*full, *asking(2, **{**spread(), **X}))
    here.cycle()
    assert here.going() == ["p-3"]
    here.gone()
    here.cycle()
    assert sorted(node[0] for name, node in here.where().items() if name.startswith("g")) == ["a", "b"]


def test_room_is_kept_for_who_waits_until_others_that_are_in_the_way_are_gone():
    here = world(*alone("x", "a1", **X), *asking(**apart(term(HOST, app="x"))), nodes=(("a1", "a"),), cpu="2")
    here.cycle()
    assert here.going() == ["x-0"]
    for _ in range(3):
        assert here.cycle(seconds=20).evictions == []
        assert here.condition()["reason"] == "WaitingForVictims"
    here.put(*waiting(2, name="other", queue="default", priorityClassName="low"))
    here.gone()
    here.cycle()
    assert "g-0" in here.where()
    assert not {"other-0", "other-1"} & here.where().keys()


@st.composite
def scenes(draw):
    """Nodes, pods that may go one by one, and a gang; all of them may demand things because of others."""
    nodes = [draw(demanding.nodes(f"n{number}")) for number in range(draw(st.integers(1, 3)))]
    names = [each[1]["metadata"]["name"] for each in nodes]
    running = []
    for number in range(draw(st.integers(1, 5))):
        name = f"r{number}"
        kind, one = draw(demanding.pods(f"{name}-0", name))
        one["spec"]["nodeName"] = draw(st.sampled_from(names))
        one["status"] = {"phase": "Running"}
        running += [group(name, 1, phase="Running", priorityClassName="low"), (kind, one)]
    count = draw(st.integers(1, 3))
    _, model = draw(demanding.pods("g", "g"))
    wanted = []
    for number in range(count):
        one = copy.deepcopy(model)
        one["metadata"] |= {"name": f"g-{number}", "uid": f"uid-g-{number}"}
        one["metadata"]["namespace"] = "ns"
        wanted.append((resources.PODS, one))
    return [*nodes, draw(demanding.namespaces)], running, [group("g", count, **HIGH), *wanted]


def starts(ground, running, wanted, without=()):
    """Tell whether the gang starts at once when some pods are not there."""
    stay = [each for each in running if each[1]["metadata"]["name"] not in without]
    here = World(OWN, *CLASSES, PLACES_ONLY, *copy.deepcopy([*ground, *stay, *wanted]))
    here.cycle()
    return {obj["metadata"]["name"] for kind, obj in wanted if kind is resources.PODS} <= here.where().keys()


def subsets(names):
    return chain.from_iterable(combinations(names, size) for size in range(1, len(names) + 1))


@pytest.mark.shows("scheduler 2.4/ports and affinity")
@relaxed
@given(scenes())
def test_victims_help_and_none_of_them_goes_in_vain(scene):
    ground, running, wanted = scene
    here = World(OWN, *CLASSES, *copy.deepcopy([*ground, *running, *wanted]))
    here.cycle()
    victims = here.going()
    if not victims:
        return
    assert not starts(ground, running, wanted)
    assert starts(ground, running, wanted, victims)
    assert not any(starts(ground, running, wanted, set(victims) - {each}) for each in victims)
    here.gone()
    judge = Judge(here)
    here.cycle()
    for name, node in sorted(here.where().items()):
        if name.startswith("g"):
            assert judge.broken(here.get(resources.PODS, name), node) <= {"affinity"}


@pytest.mark.shows("scheduler 2.4/ports and affinity")
@relaxed
@given(scenes())
def test_victims_are_found_where_any_set_of_them_helps(scene):
    ground, running, wanted = scene
    here = World(OWN, *CLASSES, *copy.deepcopy([*ground, *running, *wanted]))
    here.cycle()
    if here.going() or "g-0" in here.where():
        return
    names = [obj["metadata"]["name"] for kind, obj in running if kind is resources.PODS]
    assert not [each for each in subsets(names) if starts(ground, running, wanted, each)]
