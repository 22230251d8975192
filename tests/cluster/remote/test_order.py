"""In which order the writes of a group go out."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from cluster.remote import order
from cluster.writes import Create, Delete, Patch, Update
from kube.resources import COMMANDS, EVENTS, JOBS, POD_GROUPS, PODS


def obj(name):
    return {"metadata": {"name": name, "namespace": "d"}}


def mark(name):
    return Patch(PODS, "d", name, {}, uid=name)


def drop(name):
    return Delete(PODS, "d", name, uid=name)


STATUS = Update(JOBS, obj("j"), "status")


def test_pods_are_marked_together_then_deleted_then_the_status_is_written():
    writes = [Delete(COMMANDS, "d", "c"), mark("a"), drop("a"), mark("b"), drop("b"), STATUS, Create(EVENTS, obj("e"))]
    assert order.runs(writes) == [[0], [1, 3], [2, 4], [5], [6]]


def test_bindings_of_a_gang_are_one_run():
    binds = [Patch(PODS, "d", name, {}, "binding") for name in "abc"]
    assert order.runs([*binds, Patch(POD_GROUPS, "d", "g", {}, "status")]) == [[0, 1, 2], [3]]


def test_changes_of_what_goes_are_doomed():
    assert order.doomed([mark("a"), drop("a"), mark("b"), STATUS, drop("c"), mark("c")]) == {0}


WRITES = st.lists(
    st.one_of(
        st.builds(mark, st.sampled_from("abc")),
        st.builds(drop, st.sampled_from("abc")),
        st.builds(lambda name: Create(PODS, obj(name)), st.sampled_from("abc")),
        st.just(STATUS),
    ),
    max_size=12,
)


@given(WRITES)
def test_each_write_goes_once_and_those_about_one_object_in_their_order(writes):
    runs = order.runs(writes)
    sequence = [number for run in runs for number in run]
    assert sorted(sequence) == list(range(len(writes)))
    for place in {order.place_of(write) for write in writes}:
        own = [number for number in sequence if order.place_of(writes[number]) == place]
        assert own == sorted(own)
    for run in runs:
        assert len({order.place_of(writes[number]) for number in run}) == len(run)
        assert len({(type(writes[number]), writes[number].resource) for number in run}) == 1
