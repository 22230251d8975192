"""Placing gangs: tables for the rules, properties for what must hold whatever the numbers."""

import copy
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.engine.accounts import Account
from scheduler.engine.arrays import UNLIMITED
from scheduler.engine.cluster import Cluster
from scheduler.engine.gang import Bin, Gang, GangStep
from scheduler.engine.place import Placer, place
from scheduler.engine.pod_class import PodClass
from scheduler.engine.scoring import Weights
from tests.campaign import examples
from tests.tables import cases

from . import oracle

PODS = 1


def cluster(free, requests, *, allocatable=None, verdicts=None):
    free = np.array(free, dtype=np.int64)
    whole = free.copy() if allocatable is None else np.array(allocatable, dtype=np.int64)
    closed = verdicts or [[0] * len(free)] * len(requests)
    classes = [
        PodClass(np.array(request, dtype=np.int64), np.array(codes, dtype=np.int32))
        for request, codes in zip(requests, closed, strict=True)
    ]
    return Cluster(whole, free, classes)


def account(name, ceiling, above=None, *, guarantee=None, deserved=None, **more):
    nothing = [0] * len(ceiling)
    return Account(name, ceiling, guarantee or nothing, deserved or nothing, above, **more)


def answer(attempts, gangs):
    return [
        None if not attempt.has_minimum() else [attempt.nodes(b).tolist() for b in range(len(gang.bins))]
        for attempt, gang in zip(attempts, gangs, strict=True)
    ]


def gang(*counts, minimum=None, **other):
    """One bin for each (class, count); the minimum is all of them, or pods in task order."""
    left = sum(count for _, count in counts) if minimum is None else minimum
    steps = []
    for number, (_, count) in enumerate(counts):
        if left > 0:
            steps.append(GangStep(min(count, left), (number,)))
            left -= count
    return Gang(tuple(Bin(*count) for count in counts), tuple(steps), **other)


@pytest.mark.shows("scheduler 1.4/which pods", "scheduler 10.2/5")
@cases("driver_fits, expected", {
    "the driver and two executors": (True, [[0], [1, 1]]),
    "no executor without the driver": (False, None),
})  # fmt: skip
def test_the_minimum_is_made_in_priority_order(driver_fits, expected):
    world = cluster([[4, 9], [2, 9]], [[4, 1], [1, 1]], verdicts=[[0 if driver_fits else 1, 1], [1, 0]])
    spark = gang((0, 1), (1, 5), minimum=3)
    assert answer(place(world, [spark], pods=PODS), [spark]) == [expected]


FREE = [UNLIMITED, UNLIMITED]


@pytest.mark.shows("scheduler 3.5/guarantees of others", "scheduler 11/11", "queues 1.2/guarantee")
def test_what_is_guaranteed_to_a_queue_is_lent_to_nobody():
    root = account("root", [10, 99])
    guaranteed = account("kept", FREE, root, guarantee=[4, 0])
    gangs = [gang((0, 9), minimum=1, account=account(name, FREE, root)) for name in ("a", "b")]
    found = place(cluster([[10, 99]], [[1, 1]]), gangs, pods=PODS)
    assert sum(attempt.placed() for attempt in found) == 6
    (late,) = place(cluster([[4, 99]], [[1, 1]]), [gang((0, 9), minimum=1, account=guaranteed)], pods=PODS)
    assert late.placed() == 4


@pytest.mark.shows("scheduler 1.10/queues", "scheduler 2.2/beyond", "scheduler 3.5/order", "scheduler 3.6/borrowing")
@pytest.mark.shows("scheduler 3.6/nothing deserved")
@cases("deserved, expected", {
    "equal parts": ([[6, 0], [6, 0]], [6, 6]),
    "parts by what they deserve": ([[9, 0], [3, 0]], [9, 3]),
    "who deserves nothing comes after what others deserve": ([[8, 0], [0, 0]], [10, 2]),
})  # fmt: skip
def test_queues_are_served_by_their_shares(deserved, expected):
    root = account("root", FREE, deserved=[12, 99])
    queues = [account(name, FREE, root, deserved=due) for name, due in zip("ab", deserved, strict=True)]
    gangs = [gang((0, 12), minimum=0, account=each) for each in queues]
    found = place(cluster([[12, 99]], [[1, 1]]), gangs, pods=PODS)
    assert [attempt.placed() for attempt in found] == expected


@pytest.mark.shows("scheduler 2.2/dequeueStrategy")
def test_a_queue_that_is_first_in_first_out_waits_for_its_first():
    queues = [account(name, FREE, deserved=[9, 0], fifo=name == "strict") for name in ("strict", "loose")]
    gangs = [gang((0, count), account=each) for each in queues for count in (9, 2)]
    found = place(cluster([[4, 99]], [[1, 1]]), gangs, pods=PODS)
    assert [attempt.placed() for attempt in found] == [0, 0, 0, 2]
    assert [attempt.behind for attempt in found] == [None, 0, None, None]


COLUMNS = 3
some_amounts = st.tuples(*[st.integers(0, 8)] * COLUMNS).map(list)
some_ceilings = st.tuples(*[st.one_of(st.integers(-1, 12), st.just(UNLIMITED))] * COLUMNS).map(list)


@st.composite
def trees(draw):
    """Return root, two queues below it, and two below the first of them, some of which use something already."""

    def one(name, above):
        rank = draw(st.tuples(st.integers(0, 1), st.integers(0, 1)))
        guarantee = draw(st.one_of(st.just([0] * COLUMNS), some_amounts))
        fifo = draw(st.booleans())
        return Account(name, draw(some_ceilings), guarantee, draw(some_amounts), above, rank=rank, fifo=fifo)

    root = one("root", None)
    first, second = one("a", root), one("b", root)
    leaves = [second, one("aa", first), one("ab", first)]
    for leaf in leaves:
        leaf.charge(list(enumerate(draw(some_amounts))), draw(st.integers(0, 1)))
    return [root, first, *leaves], leaves


@st.composite
def worlds(draw):
    amount = st.integers(0, 6)
    nodes = draw(st.integers(0, 6))
    whole = [[draw(st.integers(1, 6)) for _ in range(COLUMNS)] for _ in range(nodes)]
    free = [[draw(st.integers(-1, size)) for size in row] for row in whole]
    requests = draw(st.lists(st.tuples(amount, st.just(1), amount), min_size=1, max_size=3))
    verdicts = [[draw(st.sampled_from([0, 0, 0, 1])) for _ in range(nodes)] for _ in requests]
    free, whole = (np.array(some, dtype=np.int64).reshape(-1, COLUMNS) for some in (free, whole))
    world = cluster(free, requests, allocatable=whole, verdicts=verdicts)
    if draw(st.booleans()):
        avoided = st.lists(st.integers(0, 2), min_size=nodes, max_size=nodes)
        world.classes = [replace(each, avoided=np.array(draw(avoided), dtype=np.int64)) for each in world.classes]
    if draw(st.booleans()):
        worth = st.lists(st.sampled_from([0.0, -1.0, 0.5, 50.0, 1e6]), min_size=nodes, max_size=nodes)
        world.classes = [replace(each, worth=np.array(draw(worth))) for each in world.classes]
    accounts, leaves = draw(trees())
    gangs = draw(st.lists(gangs_of(len(requests), leaves), max_size=6))
    return world, gangs, accounts


@st.composite
def gangs_of(draw, classes, leaves):
    bins = draw(
        st.lists(st.builds(Bin, st.integers(0, classes - 1), st.integers(0, 4)), min_size=1, max_size=3, unique=True)
    )
    numbers = st.lists(st.integers(0, len(bins) - 1), min_size=1, unique=True).map(tuple)
    steps = draw(st.lists(st.builds(GangStep, st.integers(0, 5), numbers), max_size=2))
    held = draw(st.one_of(st.just(()), some_amounts.map(tuple)))
    return Gang(tuple(bins), tuple(steps), draw(st.sampled_from(leaves)), draw(st.integers(0, 2)), held)


@pytest.mark.shows("scheduler 3.6/ancestors' order", "scheduler 3.6/ancestors", "scheduler 3.5/what is not named")
@pytest.mark.shows("scheduler 1.1/left out", "scheduler 1.5/overfull", "scheduler 1.10/jobs", "scheduler 2.2/beyond")
@pytest.mark.shows("scheduler 2.2/minimum first", "scheduler 2.2/who does not fit", "scheduler 3.1/order")
@pytest.mark.shows("scheduler 3.4/share", "scheduler 3.4/order", "scheduler 3.8/not listed", "scheduler 10.2/7")
@pytest.mark.shows("scheduler 3.5/capability holds", "queues 1.2/capability", "scheduler 1.11/equal scores")
@examples(400)
@given(worlds())
def test_the_answer_is_that_of_placing_pod_after_pod(world):
    fast, gangs, accounts = world
    slow = oracle.Slow(copy.deepcopy(fast), gangs, PODS, accounts)
    expected = slow.run()
    assert answer(place(fast, gangs, pods=PODS), gangs) == expected
    assert fast.free.tolist() == slow.cluster.free.tolist()
    for each in accounts:
        assert each.used == slow.ledger.used[each]
        assert each.held == [slow.ledger.held(each, column) for column in range(COLUMNS)]


def some_weights():
    """Weights over the columns of `worlds`: CPU and memory around pods, or CPU alone and a rare one."""
    number = st.integers(0, 3)
    columns = st.sampled_from([((0, 2), ()), ((0,), (2,)), ((0, 1), (2,)), ((), ())])
    packed = st.lists(st.tuples(st.sampled_from([0, 2]), number), max_size=2, unique_by=lambda each: each[0])
    fitted = st.lists(
        st.tuples(st.integers(0, 2), st.integers(1, 3), st.booleans()), max_size=2, unique_by=lambda each: each[0]
    )
    scarce = st.sampled_from([(), ((2, 1),), ((0, 2), (2, 1))])
    return st.builds(
        lambda binpack, packed, least, most, balanced, columns, fit, fitted, spare, scarce, more: Weights(
            binpack, tuple(packed), least, most, balanced, *columns,
            fit, tuple(fitted), spare, scarce, sum(weight for _, weight in scarce) + more,
        ),
        number, packed, number, number, number, columns, number, fitted, number, scarce, st.integers(0, 1),
    )  # fmt: skip


@pytest.mark.shows("scheduler 1.11/equal scores")
@examples(400)
@given(worlds(), some_weights())
def test_by_weights_each_pod_gets_the_node_that_is_best_for_it(world, weights):
    fast, gangs, accounts = world
    slow = oracle.Slow(copy.deepcopy(fast), gangs, PODS, accounts, weights)
    expected = [nodes and [sorted(some) for some in nodes] for nodes in slow.run()]
    fast.weights = weights
    found = answer(place(fast, gangs, pods=PODS), gangs)
    assert [nodes and [sorted(some) for some in nodes] for nodes in found] == expected
    assert fast.free.tolist() == slow.cluster.free.tolist()


@pytest.mark.shows("scheduler 3.5/capability holds", "scheduler 1.8/minimum", "scheduler 3.1/minimum")
@pytest.mark.shows("scheduler 2.2/overused", "scheduler 3.5/borrowing", "coscheduling 3/does not fit", "scheduler 11/6")
@pytest.mark.shows("scheduler 11/13")
@examples(300)
@given(worlds())
def test_nothing_is_overcommitted_no_gang_is_in_part_there_and_nothing_stays_idle_that_somebody_may_use(world):
    """What waits after a cycle would not fit by itself either, but behind the first of a queue that waits for it."""
    one, gangs, accounts = world
    before, held = one.free.copy(), {each: list(each.held) for each in accounts}
    attempts = place(one, gangs, pods=PODS)
    assert (one.free >= np.minimum(before, 0)).all()
    for each, had in held.items():
        for now, then, ceiling in zip(each.held, had, each.ceiling, strict=True):
            assert now <= max(then, ceiling)
    placer = Placer(one, pods=PODS)
    for some, attempt in zip(gangs, attempts, strict=True):
        if not attempt.has_minimum():
            assert attempt.placed() == 0
        for step in some.steps:
            assert not attempt.has_minimum() or sum(attempt.taken[b] for b in step.bins) >= step.need
        if attempt.short is not None:
            assert placer.place_minimum(some).short is not None
        elif attempt.behind is None:
            for number in range(len(some.bins)):
                assert not placer.take(attempt, number, 1)


@examples(300, here=15)
@given(st.integers(0, 2**32 - 1), st.none() | some_weights())
def test_many_nodes_and_rankings_kept_for_long_give_the_same_answer(seed, weights):
    random = np.random.default_rng(seed)
    whole = random.integers(4, 20, (120, 3))
    free = whole - random.integers(0, 5, (120, 3))
    requests = [[int(random.integers(0, 4)), 1, int(random.integers(0, 4))] for _ in range(4)]
    gangs = [gang(*((int(c), int(random.integers(1, 8))) for c in random.permutation(4)[:2])) for _ in range(25)]
    fast = cluster(free, requests, allocatable=whole)
    slow = oracle.Slow(copy.deepcopy(fast), gangs, PODS, (), weights)
    expected = slow.run()
    fast.weights = weights
    found = answer(place(fast, gangs, pods=PODS), gangs)
    assert fast.free.tolist() == slow.cluster.free.tolist()
    assert weights or found == expected


def test_undo_leaves_no_trace():
    world = cluster([[4, 9], [5, 9]], [[1, 1]])
    root = account("root", [99, 99])
    queue = account("a", FREE, root, guarantee=[3, 0])
    before = world.free.copy()
    placer, some = Placer(world, pods=PODS), gang((0, 7), account=queue)
    placer.undo(some, placer.place_part(some))
    assert (world.free == before).all()
    assert (queue.used, queue.held, root.held) == ([0, 0], [0, 0], [3, 0])
    assert placer.place_minimum(some).nodes(0).tolist() == [0] * 4 + [1] * 3


def _seconds(nodes, gangs, classes=1):
    best = float("inf")
    for _ in range(3):
        world = cluster([[320, 99]] * nodes, [[1 + c, 1] for c in range(classes)])
        start = time.thread_time()
        place(world, gangs, pods=PODS)
        best = min(best, time.thread_time() - start)
    return best


def test_the_cost_of_a_gang_does_not_grow_with_the_cluster():
    gangs = [gang((0, 1)) for _ in range(2000)]
    assert _seconds(8000, gangs) < 6 * _seconds(500, gangs)


def test_the_cost_of_a_large_gang_does_not_grow_with_its_pods():
    assert _seconds(1000, [gang((0, 20_000))]) < 20 * _seconds(1000, [gang((0, 200))])
