"""Placing pods that have rules about other pods: the engine gives what looking at the whole cluster before each pod gives."""

import copy
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from scheduler.engine.cause import Reason
from scheduler.engine.place import Placer, place
from scheduler.engine.relations import Apart, Domains, Relations, Spread, Ties, Together
from tests.campaign import examples

from . import oracle
from .test_place import PODS, answer, cluster, gang, gangs_of, trees

MARKS = ("a", "b", "c")
ZONE, RACK, OWN = "zone", "rack", ""


class Ground:
    """Topologies by the domain of each node, and pods by mark and node."""

    def __init__(self, topologies, pods=None):
        self.topologies, self.pods = topologies, pods or {}

    def domains(self, topology):
        numbers = self.topologies[topology]
        names = [f"{topology}{number}" for number in range(max(numbers, default=-1) + 1)]
        return Domains(np.array(numbers, dtype=np.int32), names)

    def pods_with(self, mark):
        return list(self.pods.get(mark, {}).items())


def apart(mark, topology=OWN):
    return Apart(mark, topology, Reason.POD_ANTI_AFFINITY, mark, "apart")


def together(mark, *topologies, starts=True):
    return Together(mark, topologies or (ZONE,), starts, Reason.POD_AFFINITY, mark, "together")


def spread(mark, eligible, *, topology=ZONE, skew=1, least=1, counts_itself=True, none_stands=False):
    nodes = np.array(eligible, dtype=bool)
    return Spread(
        mark, topology, skew, least, counts_itself, nodes, Reason.TOPOLOGY_SPREAD, topology, "spread", none_stands
    )


def tied(free, ties, *, zones=None, racks=None, pods=None, requests=None):
    """A cluster whose class i has ties[i]."""
    one = cluster(free, requests or [[1, 1]] * len(ties))
    one.classes = [
        replace(each, ties=Ties(*given_ties) if given_ties else None)
        for each, given_ties in zip(one.classes, ties, strict=True)
    ]
    zones = zones if zones is not None else [0] * len(free)
    topologies = {OWN: list(range(len(free))), ZONE: zones, RACK: racks if racks is not None else zones}
    one.relations = Relations(Ground(topologies, pods))
    return one


topologies = st.sampled_from([OWN, ZONE, ZONE, RACK])


@st.composite
def rules(draw, nodes):
    mark = draw(st.sampled_from(MARKS))
    kind = draw(st.sampled_from(["apart", "apart", "together", "spread"]))
    if kind == "apart":
        return apart(mark, draw(topologies))
    if kind == "together":
        return together(
            mark, *draw(st.lists(topologies, min_size=1, max_size=2, unique=True)), starts=draw(st.booleans())
        )
    return spread(
        mark,
        [draw(st.sampled_from([True, True, True, False])) for _ in range(nodes)],
        topology=draw(topologies),
        skew=draw(st.integers(1, 2)),
        least=draw(st.integers(1, 3)),
        counts_itself=draw(st.booleans()),
        none_stands=draw(st.sampled_from([False, False, False, True])),
    )


@st.composite
def ties(draw, nodes):
    """Marks and rules that agree: who may start has the mark, who counts itself as well."""
    found = draw(st.lists(rules(nodes), max_size=3))
    needs = [rule for rule in found if isinstance(rule, Together)]
    found = [rule for rule in found if rule not in needs[1:]]
    marks = set(draw(st.lists(st.sampled_from(MARKS), max_size=2)))
    agreed = []
    for rule in found:
        if isinstance(rule, Together):
            rule = replace(rule, starts=rule.mark in marks)
        elif isinstance(rule, Spread):
            rule = replace(rule, counts_itself=rule.mark in marks)
        agreed.append(rule)
    return tuple(sorted(marks)), tuple(agreed)


@st.composite
def needing(draw, nodes):
    """Pods that need each other, and perhaps something else."""
    rule = together("a", draw(st.sampled_from([ZONE, ZONE, RACK])))
    marks, more = draw(ties(nodes))
    others = [each for each in more if not isinstance(each, Together) and each.mark != "a"]
    return tuple(sorted({"a", *marks})), (rule, *(each for each in others if isinstance(each, Apart)))


def some_placed(nodes):
    return st.dictionaries(st.integers(0, nodes - 1), st.integers(1, 2), max_size=2)


@st.composite
def worlds(draw):
    nodes = draw(st.integers(0, 7))
    count = draw(st.integers(1, 4))
    free = np.array([[draw(st.integers(0, 5)) for _ in range(3)] for _ in range(nodes)], dtype=np.int64)
    zones = [draw(st.integers(-1, 2)) for _ in range(nodes)]
    racks = [draw(st.integers(0, 3)) for _ in range(nodes)]
    some_ties = st.one_of(st.none(), ties(nodes), ties(nodes))
    if draw(st.booleans()):
        some_ties = st.one_of(st.none(), needing(nodes), needing(nodes))
    world = tied(
        free.reshape(-1, 3),
        [draw(some_ties) for _ in range(count)],
        zones=zones,
        racks=racks,
        pods={mark: draw(some_placed(nodes)) for mark in MARKS if nodes},
        requests=[[draw(st.integers(0, 2)), 1, draw(st.integers(0, 2))] for _ in range(count)],
    )
    accounts, leaves = draw(trees())
    gangs = draw(st.lists(gangs_of(count, leaves), min_size=1, max_size=5))
    if draw(st.booleans()):
        gangs = [replace(each, account=None) for each in gangs]
    return world, gangs, accounts


@examples(600)
@given(worlds())
def test_the_answer_is_that_of_placing_pod_after_pod(world):
    fast, gangs, accounts = world
    slow = oracle.Slow(copy.deepcopy(fast), gangs, PODS, accounts)
    expected = slow.run()
    found = place(fast, gangs, pods=PODS)
    assert answer(found, gangs) == expected
    assert fast.free.tolist() == slow.cluster.free.tolist()
    for tally in fast.relations._tallies.values():
        assert (tally.counts >= 0).all()
        assert tally.counts[-1] == 0


@examples(200)
@given(worlds())
def test_a_gang_that_was_undone_leaves_no_trace(world):
    one, gangs, _ = world
    other = copy.deepcopy(one)
    placer = Placer(one, pods=PODS)
    for some in gangs:
        bare = replace(some, account=None)
        placer.undo(bare, placer.place_part(bare))
    assert (one.free == other.free).all()
    bare = [replace(each, account=None) for each in gangs]
    assert answer(place(one, bare, pods=PODS), bare) == answer(place(other, bare, pods=PODS), bare)


def test_classes_without_rules_are_placed_in_one_go():
    """A gang that nobody's rule is about is filled node by node, however many others have rules."""
    world = tied([[10_000, 10_000]] * 2, [None, (("a",), (apart("a"),))], pods={"a": {0: 1}})
    (found,) = place(world, [gang((0, 15_000))], pods=PODS)
    assert found.runs[0] == [([0, 1], [10_000, 5_000])]
