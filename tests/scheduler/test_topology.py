"""Gangs that are to be close together in the network (docs/design/topology.md): against a placer that tries everything."""

import copy
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube import resources
from scheduler.engine import arrange
from scheduler.engine.gang import Arranged, Bin, Gang, GangStep, Part, PartStep
from scheduler.engine.hyper_nodes import HyperNodes, Named, Topology
from scheduler.engine.place import Placer
from tests.campaign import examples

from .arranged_oracle import Slow
from .test_place import cluster
from .world import World

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
    bins = tuple(Bin(kind, count, part_number) for (kind, count), part_number in zip(kinds, places, strict=True))
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


RACKS = "; ".join(f"node {rack}0..1 rack={rack}; hypernode rack-{rack} 1 rack={rack}" for rack in "abc")
ROW = f"{RACKS}; node z0; hypernode row 2 of=rack-a,rack-b,rack-c"


def fullness(world, name, fading):
    """Return what a node is worth by the definition: how full the CPUs of its rack and its row are, 1 where it is in none."""

    def full(members):
        whole = sum(int(world.get(resources.NODES, each)["status"]["allocatable"]["cpu"]) for each in members)
        used = sum(at in members for at in world.where().values())
        return used / whole if used <= whole else 0  # holding more than there is, it is worth nothing

    nodes = [key[2] for key in world.objects if key[0] == "nodes"]
    rack = [each for each in nodes if each[0] == name[0] and each[0] != "z"]
    row = [each for each in nodes if each[0] != "z"] if rack else []
    return (full(rack) if rack else 1) + fading * (full(row) if row else 1)


@pytest.mark.shows("scheduler 3.12/hypernode.binpack.normal-pod", "scheduler 3.12/weight")
@given(
    st.lists(st.sampled_from(["a0", "a1", "b0", "b1", "c0", "c1"]), max_size=8),
    st.sampled_from([0, 0.5, 1]),
    st.integers(1, 3),
)
@examples(40)
def test_ordinary_pods_fill_one_hyper_node_after_the_other(there, fading, weight):
    """One pod of each cycle goes to a node that is worth most, of those with room; of equals by the usual order."""
    arguments = f"hypernode.binpack.memory: 0, weight: {weight}, hypernode.binpack.normal-pod.fading: {fading}"
    configured = f"conf enqueue, allocate: {{name: network-topology-aware, arguments: {{{arguments}}}}}"
    world = World(
        ROW, configured, "group o 1/0x1 phase=Running", *(f"pod o-{n} group=o @{at}" for n, at in enumerate(there))
    )
    for number in range(4):
        used = Counter(world.where().values())
        open_nodes = [key[2] for key in world.objects if key[0] == "nodes" and used[key[2]] < 4]
        best = max(fullness(world, name, fading) for name in open_nodes)
        worth = {name: fullness(world, name, fading) for name in open_nodes}
        world.put(f"group n{number} 1x1")
        world.cycle(seconds=1)
        assert worth[world.where()[f"n{number}-0"]] == pytest.approx(best)
