"""Events: what each form asks of them, for a new one and for a change."""

from __future__ import annotations

import pytest

from kube import conversion
from kube.resources import EVENTS, EVENTS_VIEW
from tests import builders
from tests.tables import cases

from .known import DROP, causes, changed

MOMENT, EARLIER = "2026-01-01T00:00:00.000001Z", "2026-01-01T00:00:00Z"
FIELDS = {
    "eventTime": MOMENT, "reportingController": "example.com/agent", "reportingInstance": "agent-1", "action": "Look",
    "reason": "New", "regarding": {"kind": "Pod", "name": "web-0", "namespace": "default"}, "note": "It was looked at.",
    "type": "Normal",
}  # fmt: skip
NEW = builders.of(EVENTS_VIEW, "web-0.1", FIELDS)
SERIES, SHORT = {"count": 2, "lastObservedTime": MOMENT}, {"count": 1}
OLD = conversion.stored(EVENTS_VIEW, NEW)


@pytest.mark.parametrize("fields", [{}, {"series": SERIES}, {"deprecatedSource": {}}, {"note": "ü" * 512}], ids=str)
def test_a_new_event_is_complete(fields):
    assert causes(EVENTS_VIEW, {**NEW, **fields}) == []


@cases("path, value, field", {
    "no time": ("eventTime", DROP, "eventTime"),
    "no reporter": ("reportingController", DROP, "reportingComponent"),
    "a reporter that is no name": ("reportingController", "a b", "reportingComponent"),
    "no instance": ("reportingInstance", "", "reportingInstance"),
    "a long instance": ("reportingInstance", "x" * 129, "reportingInstance"),
    "no action": ("action", DROP, "action"),
    "a long action": ("action", "x" * 129, "action"),
    "no reason": ("reason", DROP, "reason"),
    "a long reason": ("reason", "x" * 129, "reason"),
    "a long note": ("note", "ü" * 513, "message"),
    "no type": ("type", DROP, "type"),
    "another type": ("type", "Odd", "type"),
    "another namespace": ("regarding.namespace", "other", "involvedObject.namespace"),
    "a series of one": ("series", {**SERIES, **SHORT}, "series.count"),
    "a series without a time": ("series", {"count": 2}, "series.lastObservedTime"),
    "an old client's source": ("deprecatedSource", {"component": "x"}, "source"),
    "an old client's count": ("deprecatedCount", 1, "count"),
    "an old client's first time": ("deprecatedFirstTimestamp", EARLIER, "firstTimestamp"),
    "an old client's last time": ("deprecatedLastTimestamp", EARLIER, "lastTimestamp"),
})  # fmt: skip
def test_a_new_event_that_is_not_complete_is_refused(path, value, field):
    assert [where for where, _ in causes(EVENTS_VIEW, changed(NEW, path, value))] == [field]


def test_old_clients_write_what_they_always_wrote():
    old = {**OLD, "source": {"component": "x"}, "count": 1, "firstTimestamp": EARLIER}
    assert causes(EVENTS, changed(old, "type", DROP)) == []
    assert causes(EVENTS, changed(old, "message", "another"), old) == []


@pytest.mark.parametrize(
    ("path", "value"),
    {
        "eventTime": "2027-01-01T00:00:00.000001Z", "reportingController": "other", "reportingInstance": "other",
        "action": "Other", "reason": "Other", "regarding.name": "other", "related": {"kind": "Pod", "name": "other"},
        "note": "Other.", "type": "Warning", "deprecatedSource": {"component": "x"}, "deprecatedCount": 1,
        "deprecatedFirstTimestamp": EARLIER, "deprecatedLastTimestamp": EARLIER,
    }.items(),
)  # fmt: skip
def test_only_the_series_of_an_event_changes(path, value):
    field = conversion.stored_path(EVENTS_VIEW, path).partition(".")[0]
    assert causes(EVENTS_VIEW, changed(NEW, path, value), NEW) == [(field, "FieldValueInvalid")]


@cases("fields, fields_refused", {
    "the series": ({"series": SERIES}, []),
    "what is empty is absent": ({"deprecatedSource": {}, "deprecatedCount": 0}, []),
    "another way to write a time": ({"eventTime": "2026-01-01T00:00:00.000001+00:00"}, []),
    "labels": ({"metadata": {**NEW["metadata"], "labels": {"a": "b"}}}, []),
    "a series that is short": ({"series": SHORT}, ["series.count", "series.lastObservedTime"]),
})  # fmt: skip
def test_what_may_change(fields, fields_refused):
    change = {**NEW, **fields}
    assert [where for where, _ in causes(EVENTS_VIEW, change, NEW)] == fields_refused
    assert causes(EVENTS_VIEW, change, change) == []
