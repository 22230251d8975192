"""The graph of a flow: where jobs stand, and the lines between them."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from jobs.flows import graph
from kube.kinds.flow import JobFlow
from tests.jobs.flows.control import flow, step
from tests.tables import cases


def drawn(*steps, **status):
    return graph.of(msgspec.convert(flow(*steps), JobFlow), status)


def places(found):
    """Column and row of each job."""
    return {
        node.step: (
            (node.x - graph.MARGIN) // (graph.WIDTH + graph.GAP_X),
            (node.y - graph.MARGIN) // (graph.HEIGHT + graph.GAP_Y),
        )
        for node in found.nodes
    }


@cases("steps, expected, lines", {
    "nothing": ((), {}, 0),
    "beside each other": ((step("a"), step("b")), {"a": (0, 0), "b": (0, 1)}, 0),
    "one after the other": ((step("b", "a"), step("a")), {"a": (0, 0), "b": (1, 0)}, 1),
    "a diamond": ((step("a"), step("b", "a"), step("c", "a"), step("d", "b", "c")),
        {"a": (0, 0), "b": (1, 0), "c": (1, 1), "d": (2, 0)}, 4),
    "behind the last of its targets": ((step("a"), step("b", "a"), step("c", "a", "b")),
        {"a": (0, 0), "b": (1, 0), "c": (2, 0)}, 3),
    "a template that comes twice is one job": ((step("a"), step("b", "a"), step("c", "a"), step("c", "b", "b")),
        {"a": (0, 0), "b": (1, 0), "c": (2, 0)}, 3),
})  # fmt: skip
def test_places(steps, expected, lines):
    found = drawn(*steps)
    assert places(found) == expected
    assert len(found.lines) == lines
    assert all(node.x + graph.WIDTH <= found.width and node.y + graph.HEIGHT <= found.height for node in found.nodes)


def test_a_job_is_told_as_the_status_tells_it():
    told = [{"name": "f-a", "state": "Completed", "startTimestamp": "x", "endTimestamp": "y"}]
    made, waiting = drawn(step("a"), step("b", "a"), jobStatusList=told).nodes
    assert (made.phase, made.is_made, made.started, made.ended) == ("Completed", True, "x", "y")
    assert (waiting.phase, waiting.is_made, waiting.job) == (graph.WAITING, False, "f-b")


def test_a_stored_circle_is_drawn_in_one_column():
    assert places(drawn(step("a", "b"), step("b", "a"))) == {"a": (0, 0), "b": (0, 1)}


@given(st.lists(st.sets(st.integers(0, 11), max_size=3), max_size=12))
def test_nothing_stands_on_something_else_and_all_lines_lead_to_the_right(targets):
    steps = [
        step(f"s{number}", *(f"s{each}" for each in wanted if each < number)) for number, wanted in enumerate(targets)
    ]
    found = places(drawn(*steps))
    assert len(set(found.values())) == len(found)
    for each in steps:
        for target in each.get("dependsOn", {}).get("targets", ()):
            assert found[target][0] < found[each["name"]][0]
