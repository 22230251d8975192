"""Victims for groups whose pods have rules about other pods, compared with trying all sets of them."""

from __future__ import annotations

import copy
from itertools import chain, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube import resources
from tests.campaign import examples

from . import demanding
from .definitions import Judge
from .world import World, configuration, group, priority_class, situation

PLACES_ONLY = configuration("actions: enqueue, allocate\ntiers:\n- plugins:\n  - name: gang\n")
OWN = [*situation("queue default reclaimable=false"), priority_class("high", 100), priority_class("low", 1)]


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
@examples(150, here=25)
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
