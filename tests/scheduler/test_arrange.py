"""Arranged gangs against a placer that tries everything, on trees of HyperNodes at random."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.engine import arrange
from scheduler.engine.gang import Arranged, Bin, Gang, GangStep, Part, PartStep
from scheduler.engine.hyper_nodes import HyperNodes, Named, Topology
from scheduler.engine.place import Placer
from tests.campaign import examples

from .arranged_oracle import Slow
from .test_place import cluster

PODS = 1
TIERS = st.integers(0, 3)


@st.composite
def networks(draw, nodes):
    """HyperNodes of any nodes: trees, and also what overlaps or is in no higher one."""
    found = draw(st.lists(st.tuples(TIERS, st.sets(st.integers(0, nodes - 1), min_size=1)), max_size=6))
    return [(tier, f"h{number}", f"t{tier}", members) for number, (tier, members) in enumerate(found)]


@st.composite
def trees(draw, nodes):
    """HyperNodes as they mostly are: neighbours by twos, by fours, and all."""
    width = draw(st.integers(1, 3))
    return [
        (tier, f"h{tier}-{first}", f"t{tier}", set(range(first, min(first + size, nodes))))
        for tier, size in ((1, width), (2, 2 * width), (3, nodes))
        for first in range(0, nodes, size)
    ]


def topologies(names):
    on = st.lists(st.sampled_from(names), max_size=2).map(tuple)
    return st.one_of(
        st.none(),
        st.builds(Topology, st.sampled_from([True, True, False]), st.one_of(st.none(), TIERS), st.just(""), on),
        st.builds(Topology, st.just(True), st.none(), st.sampled_from(["t1", "t2", "t9"])),
    )


@st.composite
def arranged(draw, classes, names):
    kinds = draw(st.lists(st.tuples(st.integers(0, classes - 1), st.integers(1, 5)), min_size=1, max_size=4))
    numbers = range(len(kinds))
    cuts = draw(st.lists(st.sampled_from([None, 0, 1, 2]), min_size=len(kinds), max_size=len(kinds)))
    labels = sorted({each for each in cuts if each is not None})
    of_label = {label: tuple(n for n in numbers if cuts[n] == label) for label in labels}
    parts = tuple(
        Part(f"p{label}", 0, some, draw(st.integers(0, 6)), draw(topologies(names))) for label, some in of_label.items()
    )
    places = [None if cut is None else labels.index(cut) for cut in cuts]
    bins = tuple(Bin(kind, count, place) for (kind, count), place in zip(kinds, places, strict=True))
    some = st.lists(st.sampled_from(numbers), min_size=1, unique=True).map(tuple)
    steps = tuple(draw(st.lists(st.builds(GangStep, st.integers(1, 6), some), max_size=2)))
    part_steps = ()
    waiting = tuple(n for n, part in enumerate(parts) if part.need > 0)
    if waiting and draw(st.booleans()):
        part_steps = (PartStep(draw(st.integers(1, len(waiting))), waiting),)
    topology = draw(topologies(names))
    if topology is None and not parts:
        topology = Topology(True, 2)
    return Gang(bins, steps, arranged=Arranged(topology, parts, part_steps))


@st.composite
def worlds(draw):
    nodes = draw(st.integers(1, 8))
    whole = [[draw(st.integers(1, 6)), 9, draw(st.integers(0, 4))] for _ in range(nodes)]
    free = [[draw(st.integers(0, row[0])), 9, draw(st.integers(0, row[2]))] for row in whole]
    requests = [[1, 1, 0], [2, 1, 1], [0, 1, 1]]
    world = cluster(free, requests, allocatable=whole)
    packed = st.lists(st.sampled_from([(0, 1), (2, 1), (0, 3)]), max_size=2, unique_by=lambda p: p[0])
    world.packed = tuple(draw(packed))
    names = [f"n{number}" for number in range(nodes)]
    network = draw(st.one_of(networks(nodes), trees(nodes)))
    world.hyper_nodes = HyperNodes((Named(n, t, tn, sorted(m)) for t, n, tn, m in network), names)
    gangs = draw(st.lists(arranged(len(requests), names), min_size=1, max_size=3))
    return world, network, names, gangs


def place_all(placer, gang):
    """Place a gang as in one turn after the other that nobody else gets."""
    attempt = placer.place_minimum(gang)
    if attempt.short is not None:
        return None
    while (some := attempt.rest()) is not None:
        arrange.place_more(placer, attempt, some, gang.bins[some].count - attempt.taken[some])
    return [attempt.nodes(some).tolist() for some in range(len(gang.bins))]


def is_within(topology, nodes, network, names):
    """Judge by what is asked for alone: which nodes a gang, or a part of it, got, and what HyperNodes are there."""
    if topology is None or not topology.is_hard or not nodes:
        return True
    highest = topology.highest
    if topology.name:
        highest = max((tier for tier, _, name, _ in network if name == topology.name), default=-1)
    if highest is None or highest > max((tier for tier, *_ in network), default=0):
        return True
    there = nodes | {names.index(name) for name in topology.on}
    return any(tier <= highest and there <= members for tier, _, _, members in network)


@pytest.mark.shows("scheduler 2.2/hard topology", "scheduler 3.12/hard")
@examples(500)
@given(worlds())
def test_the_answer_is_that_of_trying_each_hyper_node_and_breaks_nothing_that_is_asked_for(drawn):
    fast, network, names, gangs = drawn
    slow = copy.deepcopy(fast)
    placer = Placer(fast, pods=PODS)
    for gang in gangs:
        found = place_all(placer, gang)
        assert found == Slow(slow, gang, network, names, PODS).run()
        assert fast.free.tolist() == slow.free.tolist()
        if found is None:
            continue
        assert is_within(gang.topology, {node for some in found for node in some}, network, names)
        sizes = [sum(len(found[some]) for some in part.bins) for part in gang.parts]
        for part, size in zip(gang.parts, sizes, strict=True):
            assert not size or size >= part.need
            assert is_within(part.topology, {node for some in part.bins for node in found[some]}, network, names)
        assert all(sum(len(found[some]) for some in step.bins) >= step.need for step in gang.steps)
        for step in gang.part_steps:
            assert sum(sizes[n] >= gang.parts[n].need for n in step.parts) >= step.need


@examples(300)
@given(worlds(), st.integers(1, 3))
def test_equal_pods_that_some_hyper_node_has_room_for_are_placed(drawn, highest):
    """Whether there is any place at all, by counting."""
    world, network, _, _ = drawn
    request = world.classes[0].request
    fits = [min(int(f // q) for f, q in zip(row, request, strict=True) if q) for row in world.free]
    most = max((sum(fits[n] for n in members) for tier, _, _, members in network if tier <= highest), default=0)
    if highest > max((tier for tier, *_ in network), default=0):
        most = sum(fits)
    for size in range(1, sum(fits) + 2):
        for is_hard, room in ((True, most), (False, sum(fits))):
            arranged = Arranged(Topology(is_hard, highest))
            gang = Gang((Bin(0, size),), (GangStep(size, (0,)),), arranged=arranged)
            attempt = Placer(copy.deepcopy(world), pods=PODS).place_minimum(gang)
            assert (attempt.short is None) == (size <= room)
