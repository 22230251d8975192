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
from tests.tables import cases

from .world import World, configuration

GPU = "nvidia.com/gpu"
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


CONF = f"""actions: enqueue, allocate, preempt
tiers:
- plugins:
  - name: resource-strategy-fit
    arguments:
      proportional: {{enable: true, resources: {GPU}, resourceProportion: {{{GPU}.cpu: 8, {GPU}.memory: 1.5}}}}
"""


def world(*objects, text=CONF):
    """The example of Volcano's page: 74 CPUs and 8 devices, so 10 CPUs are left."""
    here = World(configuration(text), f"node n1 74 memory:128Gi {GPU}:8", *objects)
    here.cycle()
    return here


@pytest.mark.shows("scheduler 3.11 resource-strategy-fit/proportional")
def test_the_second_pod_waits_and_is_told_why():
    here = world("group a 1x8; group b 1x8")
    assert list(here.where()) == ["a-0"]
    told = here.condition("b")["message"]
    assert told.startswith(
        f"The pod does not fit yet: it needs 8 CPU, the most free on one node is 2 CPU (n1), beside what is kept for idle {GPU}."
    )
    assert f"1 proportional of resource {GPU} check failed" in told
    here.put(f"group c 1x8 {GPU}:1")
    here.cycle(seconds=1)
    assert "c-0" in here.where()


SWITCHED_OFF = ("  - name: resource", "  - enablePredicate: false\n    name: resource")


@cases("group, change, starts", {
    "enough memory: 8 devices keep 12 GB, that is 11.2 GiB, of 128": ("1x1 memory:107Gi", ("", ""), True),
    "too little memory": ("1x1 memory:117Gi", ("", ""), False),
    "nothing is kept where that is not enabled": ("1x70", ("enable: true", "enable: false"), True),
    "nothing is kept where the predicate is switched off": ("1x70", SWITCHED_OFF, True),
})  # fmt: skip
def test_who_starts_beside_idle_devices(group, change, starts):
    assert ("a-0" in world(f"group a {group}", text=CONF.replace(*change)).where()) == starts


def test_others_go_until_enough_is_left_beside_what_is_kept():
    here = world("queue default reclaimable=false; group low 1/12x1 low @n1; group g 1x8 high")
    assert len(here.going()) == 10
