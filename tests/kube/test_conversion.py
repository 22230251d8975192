"""The two forms of an event are one object."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube import conversion, resources
from kube.resources import CONFIGMAPS, EVENTS, EVENTS_VIEW

META = {"name": "e", "namespace": "d"}
POD = {"kind": "Pod", "name": "web-0", "namespace": "d"}
# Of each field: its name in the core form, the one in the form of events.k8s.io, and a value.
FIELDS = {
    "what it is about": ("involvedObject", "regarding", POD),
    "the text": ("message", "note", "It began."),
    "who told it, as older clients say": ("source", "deprecatedSource", {"component": "agent", "host": "n"}),
    "who told it": ("reportingComponent", "reportingController", "agent"),
    "which one of those": ("reportingInstance", "reportingInstance", "agent-1"),
    "when first": ("firstTimestamp", "deprecatedFirstTimestamp", "2026-01-01T00:00:00Z"),
    "when last": ("lastTimestamp", "deprecatedLastTimestamp", "2026-01-01T00:00:00Z"),
    "how often": ("count", "deprecatedCount", 3),
    "when": ("eventTime", "eventTime", "2026-01-01T00:00:00.000001Z"),
    "the series": ("series", "series", {"count": 2, "lastObservedTime": "2026-01-01T00:00:00.000001Z"}),
    "what was done": ("action", "action", "Look"),
    "what else it is about": ("related", "related", POD),
    "the type": ("type", "type", "Normal"),
    "the reason": ("reason", "reason", "New"),
}


def core(**fields):
    return {"apiVersion": "v1", "kind": "Event", "metadata": META, **fields}


def view(**fields):
    return {**core(**fields), "apiVersion": "events.k8s.io/v1"}


@pytest.mark.parametrize(("name", "other", "value"), FIELDS.values(), ids=FIELDS.keys())
def test_a_field_has_a_name_in_each_form(name, other, value):
    assert conversion.shown(EVENTS_VIEW, core(**{name: value})) == view(**{other: value})
    assert conversion.stored(EVENTS_VIEW, view(**{other: value})) == core(**{name: value})


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


def of(number):
    names = [names[number] for names in FIELDS.values()]
    return st.dictionaries(st.sampled_from([*names, "odd"]), ANYTHING)


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


@pytest.mark.parametrize(
    ("path", "stored"),
    [
        ("regarding.name", "involvedObject.name"), ("reportingController", "reportingComponent"),
        ("metadata.name", "metadata.name"), ("type", "type"),
    ],
)  # fmt: skip
def test_a_selected_field_is_found_where_it_is_stored(path, stored):
    assert conversion.stored_path(EVENTS_VIEW, path) == stored
    assert conversion.stored_path(EVENTS, path) == path
    assert {conversion.stored_path(EVENTS_VIEW, each) for each in EVENTS_VIEW.fields} <= set(EVENTS.fields)


def test_a_view_is_known_by_its_own_names_and_by_the_id_of_what_it_views():
    assert resources.by_path("events.k8s.io", "v1", "events") is EVENTS_VIEW
    assert resources.by_kind("events.k8s.io/v1", "Event") is EVENTS_VIEW
    assert (EVENTS_VIEW.id, EVENTS_VIEW.full_name) == ("events", "events.events.k8s.io")
    assert resources.by_id("events") is EVENTS
    assert resources.is_built_in("events.events.k8s.io")
