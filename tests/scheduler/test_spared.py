"""CPU and memory that are kept for idle devices (`proportional` of resource-strategy-fit)."""

from __future__ import annotations

from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.engine.accounts import Account
from scheduler.engine.cluster import UNLIMITED, Cluster, PodClass
from scheduler.engine.evict import find_victims
from scheduler.engine.gang import Bin, Gang, GangStep
from scheduler.engine.place import Placer
from scheduler.engine.scoring import Weights
from scheduler.engine.spared import Spared
from scheduler.engine.units import Unit
from tests.campaign import examples

EACH = 2  # CPUs beside each idle device


def classes(nodes):
    """Pods of one CPU, of two, and of one CPU and a device."""
    spared = (Spared(0, 1, EACH),)
    verdicts = np.zeros(nodes, dtype=np.int16)
    return [
        PodClass(np.array([1, 0, 1]), verdicts, spared=spared),
        PodClass(np.array([2, 0, 1]), verdicts, spared=spared),
        PodClass(np.array([1, 1, 1]), verdicts),
    ]


def fits(row, request):
    """Tell by the rule itself whether a pod may come to a node with so many CPUs and devices free."""
    cpu, devices = row[0] - request[0], row[1] - request[1]
    if min(cpu, devices) < 0:
        return False
    return bool(request[1]) or cpu >= EACH * max(row[1], 0)


rows = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), min_size=1, max_size=4)
asked = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4)), min_size=1, max_size=5)


@pytest.mark.shows("scheduler 3.11 resource-strategy-fit/proportional")
@examples(300)
@given(rows, asked, st.booleans())
def test_pods_start_exactly_where_enough_is_left_for_idle_devices(free, gangs, weighs):
    """Each pod that is placed was allowed there by then, and for one that is not, no node is open."""
    whole = np.array([[12, 4, 99] for _ in free])
    cluster = Cluster(whole, np.array([[*row, 99] for row in free]), classes(len(free)))
    if weighs:
        cluster.weights = Weights(least=1, sized=(0,))
    placer, left = Placer(cluster), [list(row) for row in free]
    for some, count in gangs:
        request = cluster.classes[some].request.tolist()
        gang = Gang((Bin(some, count),), ())
        attempt = placer.place_minimum(gang)
        placer.take(attempt, 0, count)
        for number in attempt.nodes(0).tolist():
            assert fits(left[number], request)
            left[number] = [left[number][0] - request[0], left[number][1] - request[1]]
        assert attempt.taken[0] == count or not any(fits(row, request) for row in left)
    assert cluster.free[:, :2].tolist() == left


@st.composite
def scenes(draw):
    """Nodes that are full as far as pods of one CPU, with or without a device, fit."""
    free = draw(rows)
    units = []
    for number in range(len(free)):
        for cpu, device in draw(st.lists(st.tuples(st.integers(1, 2), st.integers(0, 1)), max_size=2)):
            units.append((number, cpu, device))
    return free, units, draw(st.integers(0, 2)), draw(st.integers(1, 3))


@examples(300)
@given(scenes())
def test_victims_are_found_where_any_set_of_them_helps_and_none_goes_in_vain(scene):
    free, units, some, count = scene

    def has_room(gone):
        left = [list(row) for row in free]
        for number in gone:
            node, cpu, device = units[number]
            left[node] = [left[node][0] + cpu, left[node][1] + device]
        room = 0
        for row in left:
            while fits(row, request):
                room, row[0], row[1] = room + 1, row[0] - request[0], row[1] - request[1]
        return room >= count

    account = Account("q", [UNLIMITED] * 3, [0] * 3, [0] * 3)
    whole = np.array([[20, 9, 99] for _ in free])
    cluster = Cluster(whole, np.array([[*row, 50] for row in free]), classes(len(free)))
    request = cluster.classes[some].request.tolist()
    made = [Unit({node: (cpu, device, 1)}, (cpu, device, 1), 1, account) for node, cpu, device in units]
    gang = Gang((Bin(some, count),), (GangStep(count, (0,)),), account)
    found = find_victims(cluster, gang, made, lambda *_: True)
    sets = chain.from_iterable(combinations(range(len(units)), n) for n in range(len(units) + 1))
    assert (found is not None) == any(has_room(each) for each in sets)
    if found is not None:
        victims = set(found[0])
        assert has_room(victims)
        assert not any(has_room(victims - {each}) for each in victims)
