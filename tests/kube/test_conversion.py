"""The two forms of an event are one object."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kube import conversion
from kube.resources import CONFIGMAPS, EVENTS, EVENTS_VIEW

META = {"name": "e", "namespace": "d"}
# Of each field its name in the core form, and the one in the form of events.k8s.io where that is another.
NAMES = """involvedObject regarding, message note, source deprecatedSource, reportingComponent reportingController, reportingInstance,
    firstTimestamp deprecatedFirstTimestamp, lastTimestamp deprecatedLastTimestamp, count deprecatedCount, eventTime, series,
    action, related, type, reason"""
FIELDS = [(names.split()[0], names.split()[-1]) for names in NAMES.split(",")]


def core(**fields):
    return {"apiVersion": "v1", "kind": "Event", "metadata": META, **fields}


def view(**fields):
    return {**core(**fields), "apiVersion": "events.k8s.io/v1"}


def test_a_field_has_a_name_in_each_form():
    for name, other in FIELDS:
        assert conversion.shown(EVENTS_VIEW, core(**{name: {"a": 1}})) == view(**{other: {"a": 1}})
        assert conversion.stored(EVENTS_VIEW, view(**{other: {"a": 1}})) == core(**{name: {"a": 1}})


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


def of(number):
    return st.dictionaries(st.sampled_from([*(names[number] for names in FIELDS), "odd"]), ANYTHING)


@given(of(0), of(1))
def test_what_goes_to_the_other_form_and_back_is_the_same(fields, others):
    obj, seen = core(**fields), view(**others)
    assert conversion.stored(EVENTS_VIEW, conversion.shown(EVENTS_VIEW, obj)) == obj
    assert conversion.shown(EVENTS_VIEW, conversion.stored(EVENTS_VIEW, seen)) == seen


def test_what_is_in_the_right_form_stays_and_what_only_the_other_form_has_goes():
    assert conversion.stored(EVENTS_VIEW, view(message="core's", note="ours")) == core(message="ours")
    assert conversion.shown(EVENTS_VIEW, core(message="ours", note="the view's")) == view(note="ours")
    for resource, obj in ((EVENTS_VIEW, view(note="n")), (EVENTS, core(message="m")), (CONFIGMAPS, {"a": 1})):
        assert conversion.shown(resource, obj) is obj
    assert conversion.stored(EVENTS, core(message="m")) == core(message="m")
    ours, cores = ({"f:note": {}, "f:regarding": {"f:name": {}}}, {"f:message": {}, "f:involvedObject": {"f:name": {}}})
    assert conversion.fields(ours, EVENTS_VIEW, EVENTS) == cores
    assert conversion.fields(cores, EVENTS, EVENTS_VIEW) == ours
    assert conversion.fields(ours, EVENTS_VIEW, EVENTS_VIEW) is ours


def test_a_selected_field_is_found_where_it_is_stored():
    for path, stored in {
        "regarding.name": "involvedObject.name",
        "reportingController": "reportingComponent",
        "type": "type",
    }.items():
        assert conversion.stored_path(EVENTS_VIEW, path) == stored
        assert conversion.stored_path(EVENTS, path) == path
    assert {conversion.stored_path(EVENTS_VIEW, each) for each in EVENTS_VIEW.fields} <= set(EVENTS.fields)
