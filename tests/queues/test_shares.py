"""Fair shares as people see them: what each queue gets when every queue wants more."""

from __future__ import annotations

import pytest

from queues import share_table
from queues.shares import FairShare, fair_shares
from scheduler.snapshot.records import Queue
from tests.tables import cases

NODES = {"gpu": 4, "cpu": 12}


def shares(*queues, used=None, foreign=None):
    return fair_shares({queue.name: queue for queue in queues}, NODES, foreign or {}, used or {})


def queue(name, parent="root", capability=None, **fields):
    return Queue(name, "Open", capability or {}, parent, **fields)


@cases("queues, more, deserved", {
    "by weight": ([queue("a"), queue("b", weight=3)], {}, {"a": 3, "b": 9}),
    "no more than it may take": ([queue("a", capability={"cpu": 2}), queue("b")], {}, {"a": 2, "b": 10}),
    "as stated": ([queue("a", deserved={"cpu": 4}), queue("b")], {}, {"a": 4, "b": 8}),
    "it is shared out below a queue": ([queue("a"), queue("b"), queue("c", "b")], {}, {"a": 6, "b": 6, "c": 6}),
    "less what uses no queue": ([queue("a")], {"foreign": {"cpu": 5}}, {"a": 7}),
})  # fmt: skip
def test_what_queues_deserve(queues, more, deserved):
    found = shares(*queues, **more)
    assert {name: found[name].deserved["cpu"] for name in deserved} == deserved


NOTHING = queue("a", deserved={"cpu": 0, "gpu": 0})


@pytest.mark.shows("scheduler 3.6/share")
@cases("queues, used, part, resource, borrowed", {
    "nothing": ([queue("a"), queue("b")], {"a": {}}, 0.0, "cpu", 0),
    "of resources with equal parts the first by name decides": ([queue("a"), queue("b")], {"a": {"cpu": 3, "gpu": 1}}, 0.5, "cpu", 0),
    "the resource of which it uses most decides": ([queue("a"), queue("b")], {"a": {"cpu": 3, "gpu": 3}}, 1.5, "gpu", 1),
    "what pods below it use": ([queue("a"), queue("b", "a")], {"b": {"cpu": 6}}, 0.5, "cpu", 0),
    "who deserves nothing has no part": ([NOTHING], {"a": {"cpu": 2}}, None, "", 0),
})  # fmt: skip
def test_how_much_of_it_is_used(queues, used, part, resource, borrowed):
    found = shares(*queues, used=used)["a"]
    assert (found.part, found.resource, found.borrowed(resource)) == (part, resource, borrowed)


def test_a_queue_that_deserves_nothing_borrows_all_that_it_uses():
    assert shares(NOTHING, used={"a": {"cpu": 2}})["a"].borrowed("cpu") == 2


def test_only_what_was_reckoned_is_rounded():
    """So that what pods use reads as in every other place."""
    share = FairShare({"cpu": 44_444}, {"cpu": 10_250}, {"cpu": 60_125}, 1.3, "cpu")
    (row,) = share_table.rows(share, {"cpu": 12_345}, {"cpu": 98_765})
    assert row[2:] == ("10.25", "44.4", "60.125", "15.7", "12.345", "98.765")
    told = share_table.said(share, {"cpu": 12_345}, 1)
    assert told == "It uses 60.125 CPU, 15.7 CPU more than it deserves; jobs that wait ask for 12.345 CPU."
