"""Placing gangs: tables for the rules, properties for what must hold whatever the numbers."""

from __future__ import annotations

import copy
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.engine.cluster import UNLIMITED, Cluster, PodClass
from scheduler.engine.gang import Bin, Gang, GangStep
from scheduler.engine.place import Placer, place

from . import oracle

PODS = 1


def cluster(free, requests, *, allocatable=None, verdicts=None, rooms=()):
    free = np.array(free, dtype=np.int64)
    whole = free.copy() if allocatable is None else np.array(allocatable, dtype=np.int64)
    closed = verdicts or [[0] * len(free)] * len(requests)
    classes = [
        PodClass(np.array(request, dtype=np.int64), np.array(codes, dtype=np.int16))
        for request, codes in zip(requests, closed, strict=True)
    ]
    return Cluster(whole, free, classes, [None if r is None else np.array(r, dtype=np.int64) for r in rooms])


def answer(attempts, gangs):
    return [
        None if attempt.short else [attempt.nodes(b).tolist() for b in range(len(gang.bins))]
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


@pytest.mark.parametrize(
    ("free", "gangs", "expected"),
    [
        pytest.param([[4, 9]], [gang((0, 4))], [[[0, 0, 0, 0]]], id="a gang that just fits"),
        pytest.param([[3, 9]], [gang((0, 4))], [None], id="nobody starts when one is short"),
        pytest.param([[3, 9]], [gang((0, 4), minimum=2)], [[[0, 0, 0]]], id="the rest as far as it fits"),
        pytest.param([[3, 9]], [gang((0, 4)), gang((0, 3))], [None, [[0, 0, 0]]], id="skips one that waits"),
        pytest.param([[0, 9], [1, 9]], [gang((0, 1))], [[[1]]], id="skips a full node"),
        pytest.param([[2, 9], [2, 9]], [gang((0, 1))], [[[0]]], id="lowest index among equals"),
        pytest.param([[9, 1], [9, 1]], [gang((0, 2))], [[[0, 1]]], id="pods are a resource"),
        pytest.param([[-2, 9], [1, 9]], [gang((0, 1))], [[[1]]], id="an overfull node counts as full"),
        pytest.param([], [gang((0, 1))], [None], id="no nodes"),
        pytest.param([[1, 1]], [Gang(())], [[]], id="nothing to place"),
        pytest.param(
            [[4, 9]],
            [gang((0, 3), minimum=1), gang((0, 2))],
            [[[0, 0]], [[0, 0]]],
            id="minima of equals go before the rest",
        ),
        pytest.param(
            [[4, 9]],
            [gang((0, 3), minimum=1, level=0), gang((0, 2), level=1)],
            [[[0, 0, 0]], None],
            id="the rest of a higher priority goes before lower minima",
        ),
    ],
)
def test_place(free, gangs, expected):
    nodes = np.array(free, dtype=np.int64).reshape(-1, 2)
    assert answer(place(cluster(nodes, [[1, 1]]), gangs, pods=PODS), gangs) == expected


def test_the_fullest_node_is_filled_first():
    world = cluster([[8, 9], [3, 9], [5, 9]], [[1, 1]], allocatable=[[8, 9]] * 3)
    (found,) = place(world, [gang((0, 5))], pods=PODS)
    assert found.nodes(0).tolist() == [1, 1, 1, 2, 2]


@pytest.mark.parametrize(
    ("driver_fits", "expected"),
    [
        pytest.param(True, [[0], [1, 1]], id="the driver and two executors"),
        pytest.param(False, None, id="no executor without the driver"),
    ],
)
def test_the_minimum_is_made_in_priority_order(driver_fits, expected):
    world = cluster([[4, 9], [2, 9]], [[4, 1], [1, 1]], verdicts=[[0 if driver_fits else 1, 1], [1, 0]])
    spark = gang((0, 1), (1, 5), minimum=3)
    assert answer(place(world, [spark], pods=PODS), [spark]) == [expected]


def test_equal_tasks_make_the_minimum_together():
    world = cluster([[4, 9]], [[9, 1], [1, 1]])
    either = Gang((Bin(0, 2), Bin(1, 3)), (GangStep(3, (0, 1)),))
    assert answer(place(world, [either], pods=PODS), [either]) == [[[], [0, 0, 0]]]


@pytest.mark.parametrize(
    ("rooms", "queues", "expected"),
    [
        pytest.param([None], (0,), [[[0, 0, 0, 0]]], id="no ceiling"),
        pytest.param([[3, UNLIMITED]], (0,), [[[0, 0, 0]]], id="one resource limited"),
        pytest.param([[1, UNLIMITED]], (0,), [None], id="the minimum is above the ceiling"),
        pytest.param([[9, 9], [UNLIMITED, 2]], (0, 1), [[[0, 0]]], id="an ancestor's ceiling"),
        pytest.param([[-5, 9]], (0,), [None], id="a queue already above its ceiling"),
    ],
)
def test_queue_ceilings_hold(rooms, queues, expected):
    some = gang((0, 4), minimum=2, queues=queues)
    assert answer(place(cluster([[9, 9]], [[1, 1]], rooms=rooms), [some], pods=PODS), [some]) == expected


def test_a_ceiling_of_what_is_not_asked_for_is_no_obstacle():
    some = gang((0, 1), queues=(0,))
    (found,) = place(cluster([[1, 1]], [[0, 1]], rooms=[[-1, 5]]), [some], pods=PODS)
    assert found.placed() == 1


@st.composite
def worlds(draw):
    columns, nodes = 3, draw(st.integers(0, 6))
    amount = st.integers(0, 6)
    whole = [[draw(st.integers(1, 6)) for _ in range(columns)] for _ in range(nodes)]
    free = [[draw(st.integers(-1, size)) for size in row] for row in whole]
    requests = draw(st.lists(st.tuples(amount, st.just(1), amount), min_size=1, max_size=3))
    verdicts = [[draw(st.sampled_from([0, 0, 0, 1])) for _ in range(nodes)] for _ in requests]
    ceiling = st.one_of(st.none(), st.tuples(*[st.one_of(st.integers(-1, 12), st.just(UNLIMITED))] * columns))
    rooms = draw(st.lists(ceiling, min_size=2, max_size=2))
    world = cluster(
        np.array(free, dtype=np.int64).reshape(-1, columns),
        requests,
        allocatable=np.array(whole, dtype=np.int64).reshape(-1, columns),
        verdicts=verdicts,
        rooms=rooms,
    )
    gangs = draw(st.lists(gangs_of(len(requests)), max_size=6))
    return world, sorted(gangs, key=lambda some: some.level)


@st.composite
def gangs_of(draw, classes):
    bins = draw(
        st.lists(
            st.builds(Bin, st.integers(0, classes - 1), st.integers(0, 4)),
            min_size=1,
            max_size=3,
            unique=True,
        )
    )
    numbers = st.lists(st.integers(0, len(bins) - 1), min_size=1, unique=True).map(tuple)
    steps = draw(st.lists(st.builds(GangStep, st.integers(0, 5), numbers), max_size=2))
    queues = draw(st.sampled_from([(), (0,), (0, 1)]))
    return Gang(tuple(bins), tuple(steps), queues, draw(st.integers(0, 2)))


@settings(max_examples=300, deadline=None)
@given(worlds())
def test_the_answer_is_that_of_placing_pod_after_pod(world):
    fast, gangs = world
    slow = copy.deepcopy(fast)
    assert answer(place(fast, gangs, pods=PODS), gangs) == oracle.place(slow, gangs, PODS)
    assert fast.free.tolist() == slow.free.tolist()
    assert [None if r is None else r.tolist() for r in fast.rooms] == [
        None if r is None else r.tolist() for r in slow.rooms
    ]


@settings(max_examples=150, deadline=None)
@given(worlds())
def test_no_node_and_no_queue_is_ever_overcommitted(world):
    one, gangs = world
    before = one.free.copy()
    rooms = copy.deepcopy(list(one.rooms))
    place(one, gangs, pods=PODS)
    assert (one.free >= np.minimum(before, 0)).all()
    for had, has in zip(rooms, one.rooms, strict=True):
        assert had is None or (has >= np.minimum(had, 0)).all()


@settings(max_examples=150, deadline=None)
@given(worlds())
def test_every_gang_reaches_its_minimum_or_holds_nothing(world):
    one, gangs = world
    for some, attempt in zip(gangs, place(one, gangs, pods=PODS), strict=True):
        if attempt.short is not None:
            assert attempt.placed() == 0
        for step in some.steps:
            assert attempt.short or sum(attempt.taken[b] for b in step.bins) >= step.need


@settings(max_examples=50, deadline=None)
@given(worlds())
def test_the_same_input_gives_the_same_answer(world):
    one, gangs = world
    other = copy.deepcopy(one)
    assert answer(place(one, gangs, pods=PODS), gangs) == answer(place(other, gangs, pods=PODS), gangs)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_many_nodes_and_rankings_kept_for_long_give_the_same_answer(seed):
    random = np.random.default_rng(seed)
    nodes = 120
    whole = random.integers(4, 20, (nodes, 3))
    free = whole - random.integers(0, 5, (nodes, 3))
    requests = [[int(random.integers(0, 4)), 1, int(random.integers(0, 4))] for _ in range(4)]
    fast = cluster(free, requests, allocatable=whole)
    slow = copy.deepcopy(fast)
    gangs = [
        gang(*((int(c), int(random.integers(1, 8))) for c in random.permutation(4)[:2])) for _ in range(40)
    ]
    assert answer(place(fast, gangs, pods=PODS), gangs) == oracle.place(slow, gangs, PODS)


def test_undo_leaves_no_trace():
    world = cluster([[4, 9], [5, 9]], [[1, 1]], rooms=[[99, 99]])
    before, room = world.free.copy(), world.rooms[0].copy()
    placer, some = Placer(world, pods=PODS), gang((0, 7), queues=(0,))
    placer.undo(some, placer.place_part(some))
    assert (world.free == before).all()
    assert (world.rooms[0] == room).all()
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
