"""What pods prefer: each gets the node that meets its wishes best by then, as Kubernetes' scores define it."""

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

from . import demanding, oracle
from .definitions import REQUIRED, Judge, wishes
from .test_other_pods import placed_pods, with_nodes
from .test_place import PODS, answer, some_weights
from .test_relations import MARKS, topologies, worlds
from .world import World, configuration, group, queue

CONF = "actions: enqueue, allocate\ntiers: [{plugins: [{name: nodeorder, arguments: {%s}}]}]"
NODEORDER = "leastrequested.weight: 0, balancedresource.weight: 0"
DEFAULTS = (2, 2, 3, 2)


# By the definitions


def rooms(judge, names, cpu):
    """Return the nodes that have so much CPU left, and a place for a pod."""
    found = []
    for name in names:
        on_it = [each for each in judge.pods.values() if each["spec"]["nodeName"] == name]
        used = sum(requested_cpu(each) for each in on_it)
        whole = Fraction(judge.nodes[name]["status"]["allocatable"]["cpu"])
        if used + cpu <= whole and len(on_it) < 10:
            found.append(name)
    return found


def requested_cpu(pod):
    return quantity.parse(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"])


@st.composite
def one_waits(draw):
    nodes = with_nodes(draw, 5)
    more = draw(st.sampled_from([{}, {}, {"tolerations": [{"operator": "Exists"}]}]))
    waiting = draw(demanding.pods("g-0", "g", **more))
    return [*nodes, *draw(st.lists(demanding.namespaces, max_size=2)), *placed_pods(draw, nodes), waiting]


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
    open_nodes = [name for name in rooms(judge, names, requested_cpu(waiting)) if not judge.broken(waiting, name)]
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
    world = World("node a1; node b1; group g 2x1")
    world.cycle()
    shape = world.snapshot.pods["ns/g-0"].shape
    assert world.snapshot.nodes.pod_class(shape, WishWeights()).wishes is None
