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
from .demanding import HOST
from .test_other_pods import APART, X, apart, at, near, port, spread, term
from .world import World, configuration, group, pod, priority_class, situation

PLACES_ONLY = configuration("actions: enqueue, allocate\ntiers:\n- plugins:\n  - name: gang\n")
OWN = [*situation("queue default reclaimable=false"), priority_class("high", 100), priority_class("low", 1)]
Y = {"labels": {"app": "y"}}
AVOIDS, NEEDS = apart(term(HOST, app="x")), near(term(HOST, app="x"))


def alone(names, place, cpu="1", priority="low", **spec):
    """Pods that run and may go one by one."""
    for name in names:
        yield group(name, 1, phase="Running", priorityClassName=priority)
        yield pod(f"{name}-0", name, cpu, phase="Running", node=place, **copy.deepcopy(spec))


def asking(count=1, cpu="1", **spec):
    yield group("g", count, priorityClassName="high")
    yield from (pod(f"g-{n}", "g", cpu, **copy.deepcopy(spec)) for n in range(count))


def with_port():
    """A host port, of a container that asks for a CPU."""
    spec = port()
    spec["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    return spec


THREE = [at("a1", "a"), at("a2", "a"), at("b1", "b")]


@pytest.mark.shows("scheduler 2.4/ports and affinity")
@cases("nodes, objects, victims", {
    "who is to be avoided on the only node":
        (THREE[:1], [*alone("x", "a1", **X), *alone("y", "a1", **Y), *asking(**AVOIDS)], "x-0"),
    "who has the port":
        (THREE[:1], [*alone("h", "a1", **with_port()), *alone("o", "a1"), *asking(**with_port())], "h-0"),
    "who keeps it away": (THREE[:1], [*alone("h", "a1", **AVOIDS), *alone("o", "a1"), *asking(**X)], "h-0"),
    "room beside whom it needs": (THREE[:1],
        [*alone("x", "a1", **X), *alone("o", "a1", "2"), *alone("p", "a1"), *asking(1, "2", **NEEDS)], "o-0"),
    "who is avoided leaves room as well":
        (THREE[:1], [*alone("x", "a1", **X), *alone("o", "a1", "1"), *asking(1, "3", **AVOIDS)], "x-0"),
    "who may not go keeps the node closed":
        (THREE[:1], [*alone("x", "a1", priority="high", **X), *asking(**AVOIDS)], ""),
    "of three nodes the one that costs least":
        (THREE, [*alone("xw", "a1", **X), *alone("y", "a2", **X), *alone("zv", "b1", **X), *asking(**AVOIDS)], "y-0"),
    "all of a zone where the zone is to be free of them": (THREE,
        [*alone("x", "a1", **X), *alone("y", "a2", **X), *alone("uvw", "b1", **X), *asking(**APART)], "x-0 y-0"),
    "where the next pod of a gang that is spread is due":
        (THREE, [*situation("group p 1/4x1 low @b1"), *asking(2, **spread(), **X)], "p-3"),
})  # fmt: skip
def test_who_goes(nodes, objects, victims):
    here = World(*nodes, *OWN, *objects)
    here.cycle()
    assert here.going() == victims.split()
    here.gone()
    here.cycle()
    assert bool(here.placed()) == bool(victims)


def test_room_is_kept_for_who_waits_until_others_that_are_in_the_way_are_gone():
    here = World(at("a1", "a", cpu="2"), *OWN, *alone("x", "a1", **X), *asking(**AVOIDS))
    here.cycle()
    assert here.going() == ["x-0"]
    for _ in range(3):
        assert here.cycle(seconds=20).evictions == []
        assert here.condition()["reason"] == "WaitingForVictims"
    here.put("group other 2x1 low")
    here.gone()
    here.cycle()
    assert here.placed() == "g a1"


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
    return [*nodes, draw(demanding.namespaces)], running, [group("g", count, priorityClassName="high"), *wanted]


def starts(ground, running, wanted, without=()):
    """Tell whether the gang starts at once when some pods are not there."""
    stay = [each for each in running if each[1]["metadata"]["name"] not in without]
    here = World(*OWN, PLACES_ONLY, *copy.deepcopy([*ground, *stay, *wanted]))
    here.cycle()
    return {obj["metadata"]["name"] for kind, obj in wanted if kind is resources.PODS} <= here.where().keys()


def subsets(names):
    return chain.from_iterable(combinations(names, size) for size in range(1, len(names) + 1))


@pytest.mark.shows("scheduler 2.4/ports and affinity")
@examples(150)
@given(scenes())
def test_victims_are_found_where_any_set_of_them_helps_and_none_of_them_goes_in_vain(scene):
    ground, running, wanted = scene
    here = World(*OWN, *copy.deepcopy([*ground, *running, *wanted]))
    here.cycle()
    victims = here.going()
    if not victims and "g-0" not in here.where():
        names = [obj["metadata"]["name"] for kind, obj in running if kind is resources.PODS]
        assert not [each for each in subsets(names) if starts(ground, running, wanted, each)]
    if victims:
        assert not starts(ground, running, wanted)
        assert starts(ground, running, wanted, victims)
        assert not any(starts(ground, running, wanted, set(victims) - {each}) for each in victims)
        here.gone()
        judge = Judge(here)
        here.cycle()
        for name, node in sorted(here.where().items()):
            if name.startswith("g"):
                assert judge.broken(here.get(resources.PODS, name), node) <= {"affinity"}
