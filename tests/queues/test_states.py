"""The state of a queue: every row of the table, in words with numbers."""

from __future__ import annotations

import pytest

from queues import states
from queues.states import closed_above, standing
from tests.tables import cases

NONE, SOME, ENDED = {}, {"Running": 2, "Pending": 1}, {"Completed": 5, "Running": 0}


@pytest.mark.shows(
    "queues 1.3/state",
    "queue state 2/spec.state",
    "queue state 2/status.state",
    "queue state 2/empty wish",
    "queue state 2/wish Open",
    "queue state 2/wish Closed, in use",
    "queue state 2/wish Closed, empty",
)
@cases("wish, above, groups, state, reason", {
    "open and empty": ("Open", "", NONE, "Open", "Opened"),
    "open with work": ("Open", "", SOME, "Open", "Opened"),
    "no wish is Open": ("", "", NONE, "Open", "Opened"),
    "unknown wish is Open": ("Unheard", "", NONE, "Open", "Opened"),
    "closing with work": ("Closed", "", SOME, "Closing", "Closing"),
    "finished groups do not hold it": ("Closed", "", ENDED, "Closed", "Closed"),
    "closed": ("Closed", "", NONE, "Closed", "Closed"),
    "closing with its parent": ("Open", "team", SOME, "Closing", "ClosedByParent"),
    "closed with its parent": ("Open", "team", NONE, "Closed", "ClosedByParent"),
    "its own wish explains more": ("Closed", "team", SOME, "Closing", "Closing"),
    "closed by itself and its parent": ("Closed", "team", NONE, "Closed", "Closed"),
})  # fmt: skip
def test_standing(wish, above, groups, state, reason):
    found = standing(wish, above, groups)
    assert (found.state, found.reason) == (state, reason)
    assert found.message.endswith(".")


def test_table_is_complete():
    assert {(case.wish, case.is_closed_above, case.has_work) for case in states.TABLE} == {
        (wish, above, work) for wish in ("Open", "Closed") for above in (True, False) for work in (True, False)
    }


def test_message_counts_what_is_left():
    assert "3 unfinished pod groups are left (1 pending, 2 running)" in standing("Closed", "", SOME).message
    assert "1 unfinished pod group is left (1 inqueue)" in standing("Closed", "", {"Inqueue": 1}).message


@cases("parents, closed, expected", {
    "below root": ({"a": "root"}, [], ""),
    "two levels up": ({"a": "b", "b": "c", "c": "root"}, ["c"], "c"),
    "the nearest": ({"a": "b", "b": "c", "c": "root"}, ["b", "c"], "b"),
    "neither itself nor root": ({"a": "b", "b": "root"}, ["a", "root"], ""),
    "a circle ends": ({"a": "b", "b": "a"}, [], ""),
})  # fmt: skip
def test_nearest_closed_queue_above(parents, closed, expected):
    assert closed_above("a", parents, dict.fromkeys(closed, "Closed")) == expected
