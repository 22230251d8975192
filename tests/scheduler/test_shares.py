"""What queues deserve: sharing by weight within bounds, the tree of queues, and its faults."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.engine.arrays import UNLIMITED
from scheduler.records.records import Queue
from scheduler.shares.deserved import open_accounts
from scheduler.shares.filling import fill
from scheduler.shares.tree import QueueTree
from tests.campaign import examples
from tests.tables import cases


def amounts(*numbers):
    return np.array(numbers, dtype=np.int64)


@cases("amount, weights, least, most, expected", {
    "what one does not ask for goes to the others": (12, (1, 3), (0, 0), (99, 5), (7, 5)),
    "what does not divide goes to the first": (8, (1, 1, 1), (0, 0, 0), (9, 9, 9), (3, 3, 2)),
    "a lot": (1 << 53, (1, 2), (0, 0), (UNLIMITED, UNLIMITED), (3002399751580331, 6004799503160661)),
})  # fmt: skip
def test_fill(amount, weights, least, most, expected):
    assert tuple(fill(amount, amounts(*weights), amounts(*least), amounts(*most)).tolist()) == expected


parties = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 20), st.integers(0, 60)), min_size=1, max_size=6)


@pytest.mark.shows("scheduler 3.5/demand")
@examples(300)
@given(st.integers(0, 120), parties)
def test_fill_is_fair_and_leaves_nothing(amount, some):
    weights, least, more = (amounts(*each) for each in zip(*some, strict=True))
    most = least + more
    parts = fill(amount, weights, least, most)
    assert (parts >= least).all()
    assert (parts <= most).all()
    assert parts.sum() == max(min(amount, most.sum()), least.sum())
    # Nobody who could have more has less for his weight than somebody who could do with less.
    for i, j in product(range(len(some)), repeat=2):
        if parts[i] < most[i] and parts[j] > least[j]:
            assert parts[i] / weights[i] >= (parts[j] - 1) / weights[j] - 1 / weights[i]


def queue(name, parent="", **more):
    cpu = {key: {"cpu": value} for key, value in more.items() if key in ("capability", "guarantee", "deserved")}
    rest = {key: value for key, value in more.items() if key not in cpu}
    return Queue(name, "Open", cpu.pop("capability", {}), parent, **cpu, **rest)


def opened(*queues, total=12, demand=None):
    queues_by_name = {each.name: each for each in queues}
    wanted = {name: amounts(cpu) for name, cpu in (demand or dict.fromkeys(queues_by_name, 99)).items()}
    return open_accounts(
        QueueTree(queues_by_name),
        queues_by_name,
        amounts(total),
        amounts(total),
        wanted,
        lambda some: amounts(some.get("cpu", 0)),
    )


def deserved(accounts):
    return {name: account.deserved[0] for name, account in accounts.items() if name != "root"}


@pytest.mark.shows("scheduler 3.5/weights", "scheduler 3.5/demand", "scheduler 3.5/guarantee")
@pytest.mark.shows("scheduler 3.5/capability", "scheduler 3.5/levels", "scheduler 3.6/deserved")
@pytest.mark.shows("scheduler 3.6/deserved, not below", "scheduler 3.6/wrong tree", "queues 1.2/deserved")
@cases("queues, more, expected", {
    "weights": ([queue("a", weight=1), queue("b", weight=3)], {}, {"a": 3, "b": 9}),
    "demand": ([queue("a"), queue("b")], {"demand": {"a": 2, "b": 99}}, {"a": 2, "b": 10}),
    "a ceiling": ([queue("a"), queue("b", capability=4)], {}, {"a": 8, "b": 4}),
    "a guarantee": ([queue("a"), queue("b", guarantee=8)], {}, {"a": 4, "b": 8}),
    "levels": (
        [queue("a"), queue("b"), queue("c", "b"), queue("d", "b", weight=2)], {"demand": {"a": 99, "c": 99, "d": 99}},
        {"a": 6, "b": 6, "c": 2, "d": 4},
    ),
    "a guarantee further down": (
        [queue("a"), queue("b"), queue("c", "b", guarantee=8)], {"demand": {"a": 99, "c": 99}},
        {"a": 4, "b": 8, "c": 8},
    ),
    "as stated": ([queue("a", deserved=5), queue("b", deserved=2, guarantee=3)], {}, {"a": 5, "b": 3}),
    "the rest of what is stated goes by weight":
        ([queue("a", deserved=6), queue("b"), queue("c", weight=2)], {}, {"a": 6, "b": 2, "c": 4}),
    "what is stated and not asked for goes to the others":
        ([queue("a", deserved=6), queue("b")], {"demand": {"a": 2, "b": 99}}, {"a": 6, "b": 10}),
    "more is stated than there is": ([queue("a", deserved=20), queue("b", guarantee=1)], {}, {"a": 20, "b": 1}),
    "a parent that is missing": ([queue("a", "gone"), queue("b")], {}, {"a": 6, "b": 6}),
    "a circle of parents": ([queue("a", "b"), queue("b", "a"), queue("c")], {}, {"a": 6, "b": 6, "c": 6}),
    "its own parent": ([queue("a", "a"), queue("b")], {}, {"a": 6, "b": 6}),
})  # fmt: skip
def test_what_queues_deserve(queues, more, expected):
    assert deserved(opened(*queues, **more)) == expected


@pytest.mark.shows("scheduler 3.6/wrong tree")
def test_a_circle_of_parents_leaves_each_queue_below_root_once():
    accounts = opened(queue("a", "b"), queue("b", "c"), queue("c", "a"))
    assert {name: [above.name for above in each.line] for name, each in accounts.items()} == {
        "root": ["root"],
        "a": ["a", "root"],
        "c": ["c", "a", "root"],
        "b": ["b", "c", "a", "root"],
    }


def test_the_cluster_is_a_ceiling_only_where_something_is_kept_of_it():
    assert opened(queue("a"))["root"].ceiling == [UNLIMITED]
    accounts = opened(queue("a"), queue("b", guarantee=5))
    assert (accounts["root"].ceiling, accounts["root"].held, accounts["a"].room(0), accounts["b"].room(0)) == (
        [12],
        [5],
        7,
        12,
    )
