"""The state of a queue: every row of the table, in words with numbers."""

from __future__ import annotations

import pytest

from queues import states
from queues.states import closed_above, standing

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
@pytest.mark.parametrize(
    ("wish", "above", "groups", "state", "reason"),
    [
        pytest.param("Open", "", NONE, "Open", "Opened", id="open and empty"),
        pytest.param("Open", "", SOME, "Open", "Opened", id="open with work"),
        pytest.param("", "", NONE, "Open", "Opened", id="no wish is Open"),
        pytest.param("Unheard", "", NONE, "Open", "Opened", id="unknown wish is Open"),
        pytest.param("Closed", "", SOME, "Closing", "Closing", id="closing with work"),
        pytest.param("Closed", "", ENDED, "Closed", "Closed", id="finished groups do not hold it"),
        pytest.param("Closed", "", NONE, "Closed", "Closed", id="closed"),
        pytest.param("Open", "team", SOME, "Closing", "ClosedByParent", id="closing with its parent"),
        pytest.param("Open", "team", NONE, "Closed", "ClosedByParent", id="closed with its parent"),
        pytest.param("Closed", "team", SOME, "Closing", "Closing", id="its own wish explains more"),
        pytest.param("Closed", "team", NONE, "Closed", "Closed", id="closed by itself and its parent"),
    ],
)
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


@pytest.mark.parametrize(
    ("parents", "closed", "expected"),
    [
        pytest.param({"a": "root"}, [], "", id="below root"),
        pytest.param({"a": "b", "b": "c", "c": "root"}, ["c"], "c", id="two levels up"),
        pytest.param({"a": "b", "b": "c", "c": "root"}, ["b", "c"], "b", id="the nearest"),
        pytest.param({"a": "b", "b": "root"}, ["a", "root"], "", id="neither itself nor root"),
        pytest.param({"a": "b", "b": "a"}, [], "", id="a circle ends"),
    ],
)
def test_nearest_closed_queue_above(parents, closed, expected):
    assert closed_above("a", parents, dict.fromkeys(closed, "Closed")) == expected
