"""What pods prefer: each gets the node that meets its wishes best by then, as Kubernetes' scores define it."""

from __future__ import annotations

import copy
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube import quantity
from scheduler.engine.kin import Following, Kin
from scheduler.engine.place import place
from scheduler.engine.wishes import Even, Near, Wishes, WishWeights
from tests.campaign import examples
from tests.tables import cases

from . import demanding, oracle
from .definitions import PREFERRED, REQUIRED, Judge, wishes
from .demanding import HOST, ZONE
from .test_other_pods import NODES, X, at, gang, running, standing, term, with_nodes
from .test_place import PODS, answer, some_weights
from .test_relations import MARKS, topologies, worlds
from .world import World, configuration, group, queue

CONF = "actions: enqueue, allocate\ntiers: [{plugins: [{name: nodeorder, arguments: {%s}}]}]"
NODEORDER = "leastrequested.weight: 0, balancedresource.weight: 0"
DEFAULTS = (2, 2, 3, 2)


def likes(*values, key=ZONE, weight=1):
    expression = {"key": key, "operator": "In", "values": list(values)}
    wish = {"weight": weight, "preference": {"matchExpressions": [expression]}}
    return {"affinity": {"nodeAffinity": {PREFERRED: [wish]}}}


def rather(kind, wanted, weight=1):
    return {"affinity": {kind: {PREFERRED: [{"weight": weight, "podAffinityTerm": wanted}]}}}


def near(wanted, weight=1):
    return rather("podAffinity", wanted, weight)


def apart(wanted, weight=1):
    return rather("podAntiAffinity", wanted, weight)


def evenly(key=ZONE, **more):
    rule = {"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}
    return {"topologySpreadConstraints": [rule | {"labelSelector": {"matchLabels": {"app": "x"}}} | more]}


RATHER_NOT = [{"key": "k", "effect": "PreferNoSchedule"}]


@pytest.mark.shows("scheduler 3.8/nodeaffinity.weight", "scheduler 3.8/podaffinity.weight")
@pytest.mark.shows("scheduler 3.8/podtopologyspread.weight", "scheduler 3.8/not listed, preferences")
@cases("objects, expected", {
    "a label": (gang(1, **likes("b")), "b1"),
    "as far as there is room": (gang(5, **likes("b")), "a1 b1 b1 b1 b1"),
    "a label that no node has": (gang(2, **likes("nowhere")), "a1 a1"),
    "the heavier of two wishes": (
        gang(1, affinity={"nodeAffinity": {PREFERRED: [
            *likes("a", weight=1)["affinity"]["nodeAffinity"][PREFERRED],
            *likes("b", weight=2)["affinity"]["nodeAffinity"][PREFERRED],
        ]}}),
        "b1",
    ),
    "near who runs": ([*gang(2, **near(term(ZONE, app="x"))), running("r", "b1", **X)], "b1 b1"),
    "near nobody": (gang(2, **near(term(ZONE, app="x"))), "a1 a1"),
    "near each other, then wherever there is room":
        ([*gang(6, **X, **near(term(ZONE, app="x"))), running("r", "b1", requests={"cpu": "2"})], "a1 a1 a1 a1 b1 b1"),
    "apart from each other": (gang(3, **X, **apart(term(HOST, app="x"))), "a1 a2 b1"),
    "apart as far as there are nodes": (gang(4, **X, **apart(term(HOST, app="x"))), "a1 a1 a2 b1"),
    "wanted by who runs": ([*gang(1, **X), running("r", "b1", **near(term(ZONE, app="x")))], "b1"),
    "not wanted by who runs": ([*gang(1, **X), running("r", "a1", **apart(term(ZONE, app="x")))], "b1"),
    "wanted by who came in the same cycle":
        ([*gang(1, "g", **near(term(ZONE, app="x"))), *gang(1, "h", **likes("b"), **X)], "a1 a1"),
    "spread over zones": (gang(3, **X, **evenly()), "a1 a1 b1"),
    "spread as far as there is room": (gang(9, **X, **evenly()), "a1 a1 a1 a1 a2 b1 b1 b1 b1"),
    "where fewer run": ([*gang(1, **X, **evenly()), running("r", "a1", **X)], "b1"),
    "spread over nodes": (gang(3, **X, **evenly(HOST)), "a1 a2 b1"),
    "nodes with a taint come last":
        ([*gang(1), at("a0", "a", taints=RATHER_NOT), running("r", "a0", requests={"cpu": "3"})], "a1"),
    "a taint weighs more than a label": ([*gang(1, **likes("c")), at("c1", "c", taints=RATHER_NOT)], "a1"),
    "a taint closes no node": (
        [*gang(1, **likes("c", weight=100)), at("c1", "c", taints=RATHER_NOT),
        *[running(f"r{n}", on, requests={"cpu": "4"}) for n, on in enumerate(["a1", "a2", "b1"])]],
        "c1",
    ),
    "a wish that cannot be read": (gang(1, affinity={"nodeAffinity": {PREFERRED: 7}}), "a1"),
    "a wish about nobody": (gang(1, affinity={"podAffinity": {PREFERRED: [{"weight": 1}]}}), "a1"),
})  # fmt: skip
def test_where_pods_would_rather_be(objects, expected):
    world = World(queue(), *NODES, *objects)
    before = world.where()
    world.cycle()
    assert sorted(on for name, on in world.where().items() if name not in before) == expected.split()


@pytest.mark.shows("scheduler 3.8/nodeaffinity.weight")
@cases("arguments, expected", {
    "nodeorder's defaults: free room weighs less": ("", "b1"),
    "no weight, no effect": ("nodeaffinity.weight: 0", "a1"),
    "outweighed": ("leastrequested.weight: 9", "a1"),
})  # fmt: skip
def test_with_nodeorder_wishes_are_weighed_against_the_rest(arguments, expected):
    full = running("r", "b1", requests={"cpu": "2"})
    world = World(queue(), *NODES, full, configuration(CONF % arguments), *gang(1, **likes("b")))
    world.cycle()
    assert world.where()["g-0"] == expected


@pytest.mark.shows("scheduler 3.8/tainttoleration.weight")
@cases("arguments, expected", {
    "by default": ("", "b1"),
    "of no weight": ("tainttoleration.weight: 0", "a1"),
})  # fmt: skip
def test_with_nodeorder_a_taint_weighs_what_is_configured(arguments, expected):
    world = World(queue(), at("a1", "a", taints=RATHER_NOT), NODES[2], running("r", "b1"), *gang(1))
    world.put(configuration(CONF % arguments))
    world.cycle()
    assert world.where()["g-0"] == expected


# By the definitions


def rooms(judge, names, cpu):
    """Return the nodes that have so much CPU left, and a place for a pod."""
    found = []
    for name in names:
        on_it = [each for each in judge.pods.values() if each["spec"]["nodeName"] == name]
        used = sum(asked(each) for each in on_it)
        whole = Fraction(judge.nodes[name]["status"]["allocatable"]["cpu"])
        if used + cpu <= whole and len(on_it) < 10:
            found.append(name)
    return found


def asked(pod):
    return quantity.parse(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"])


@st.composite
def one_waits(draw):
    nodes = with_nodes(draw, 5)
    more = draw(st.sampled_from([{}, {}, {"tolerations": [{"operator": "Exists"}]}]))
    waiting = draw(demanding.pods("g-0", "g", **more))
    return [*nodes, *draw(st.lists(demanding.namespaces, max_size=2)), *standing(draw, nodes), waiting]


@pytest.mark.shows("scheduler 3.8/nodeaffinity.weight", "scheduler 3.8/podaffinity.weight")
@pytest.mark.shows("scheduler 3.8/podtopologyspread.weight", "scheduler 3.8/among which nodes")
@examples(200)
@given(one_waits(), st.booleans())
def test_a_pod_gets_a_node_that_is_worth_most_as_kubernetes_defines_it(objects, is_added):
    world = World(queue(), group(), *objects)
    if is_added:
        world.put(configuration(CONF % NODEORDER))
    judge = Judge(world)
    waiting = copy.deepcopy(next(obj for _, obj in objects if obj["metadata"]["name"] == "g-0"))
    tolerates = waiting["spec"].get("tolerations")
    names = [
        name for name, each in sorted(judge.nodes.items())
        if tolerates or all(taint["effect"] == "PreferNoSchedule" for taint in each["spec"]["taints"])
    ]  # fmt: skip
    open_nodes = [name for name in rooms(judge, names, asked(waiting)) if not judge.broken(waiting, name)]
    world.cycle()
    chosen = world.where().get("g-0")
    assert (chosen is None) == (not open_nodes)
    if chosen is not None and not any(waiting["spec"].get("affinity", {}).get("podAffinity", {}).get(REQUIRED, ())):
        worth = wishes(judge, waiting, open_nodes, DEFAULTS)
        assert worth[chosen] == max(worth.values()), worth


# Pod after pod


@st.composite
def wished_worlds(draw):
    """A world of test_relations some of whose classes have wishes; what has the labels of a spread is in a domain of each."""
    world, gangs, accounts = draw(worlds())
    zoned = world.relations.ground.domains("zone").of_node >= 0
    world.classes = [wishing(each, draw(some_wishes(each, zoned))) for each in world.classes]
    return world, gangs, accounts


def wishing(pod_class, wishes):
    """A class with wishes, closed where its spreads count no pods: taints and selectors that do that close nodes as well."""
    verdicts = pod_class.verdicts.copy()
    for each in wishes.even if wishes else ():
        verdicts[each.labelled & ~each.eligible] = 1
    return replace(pod_class, wishes=wishes, verdicts=verdicts)


@st.composite
def some_wishes(draw, pod_class, zoned):
    nodes = len(zoned)
    if not draw(st.sampled_from([True, True, False])):
        return None

    def numbers(least, most):
        some = st.lists(st.integers(least, most), min_size=nodes, max_size=nodes)
        return np.array(draw(some), dtype=np.int64)

    weight = st.integers(0, 3)
    weights = WishWeights(*(draw(weight) for _ in range(4)), first=draw(st.booleans()))
    near = draw(st.lists(st.builds(Near, st.sampled_from(MARKS), topologies, st.sampled_from([-2, 1, 3])), max_size=2))
    labelled = zoned & (numbers(0, 3) > 0)
    even = [
        Even(draw(st.sampled_from(MARKS)), "" if by_node else draw(st.sampled_from(["zone", "rack"])),
             draw(st.integers(1, 2)), labelled, labelled if by_node else labelled & (numbers(0, 3) > 0),
             by_node, draw(st.sampled_from([False, False, True])))
        for by_node in draw(st.lists(st.booleans(), max_size=2))
    ]  # fmt: skip
    marks = pod_class.ties.marks if pod_class.ties else ()
    moves = any(each.mark in marks for each in (*near, *even))
    kin = draw(some_kin(pod_class)) if draw(st.booleans()) else None
    matched = numbers(0, 4) if draw(st.booleans()) else None
    avoided = numbers(0, 2) if draw(st.booleans()) else None
    return Wishes(weights, matched, avoided, tuple(near), tuple(even), moves or kin is not None, kin)


@st.composite
def some_kin(draw, pod_class):
    mark = st.sampled_from(MARKS)
    request = st.lists(st.integers(0, 3), min_size=len(pod_class.request), max_size=len(pod_class.request)).map(
        lambda some: np.array(some, dtype=np.int64)
    )
    following = draw(st.lists(st.builds(Following, mark, st.integers(0, 5), request), max_size=2))
    parted = draw(st.lists(mark, max_size=2, unique=True))
    return Kin(
        pod_class.request, draw(st.one_of(st.none(), mark)), tuple(parted), tuple(following), draw(st.integers(0, 3))
    )


@pytest.mark.shows("scheduler 3.8/among which nodes")
@examples(200)
@given(wished_worlds(), st.one_of(st.none(), some_weights()))
def test_each_pod_gets_the_node_that_meets_its_wishes_best_by_then(world, weights):
    fast, gangs, accounts = world
    slow = oracle.Slow(copy.deepcopy(fast), gangs, PODS, accounts, weights)
    expected = [nodes and [sorted(some) for some in nodes] for nodes in slow.run()]
    fast.weights = weights
    found = answer(place(fast, gangs, pods=PODS), gangs)
    assert [nodes and [sorted(some) for some in nodes] for nodes in found] == expected
    assert fast.free.tolist() == slow.cluster.free.tolist()


@pytest.mark.shows("scheduler 3.8/Services")
def test_pods_of_a_class_without_wishes_go_as_ever():
    """Where nobody prefers anything, nothing of it is made."""
    world = World(queue(), *NODES, *gang(2))
    world.cycle()
    shape = world.snapshot.pods["ns/g-0"].shape
    assert world.snapshot.nodes.pod_class(shape, WishWeights()).wishes is None
