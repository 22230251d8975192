"""Events name their object, and fit what the API accepts."""

from __future__ import annotations

import msgspec

from kube import definitions, events, names, resources, schema
from kube.kinds.core import Event
from tests.tables import cases

NOW = 1_767_225_600_000
QUEUE = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "team", "uid": "u"}}
JOB = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"namespace": "d", "name": "j" * 253, "uid": "v"},
}


def event(about=QUEUE, reason="Opened", message="It is open.", now=NOW):
    return events.event(about, reason, message, now, component="test")


@cases("about", {"of the cluster": QUEUE, "in a namespace, with the longest name": JOB})
def test_event_is_valid_and_about_its_object(about):
    made = event(about)
    assert schema.check(made, definitions.of(resources.EVENTS)) == []
    assert names.dns_subdomain(made["metadata"]["name"]) is None
    assert made["involvedObject"]["uid"] == about["metadata"]["uid"]
    assert made["metadata"]["namespace"] == about["metadata"].get("namespace", "default")


def test_same_news_at_the_same_moment_is_the_same_event():
    assert event() == event()
    others = [event(message="Other."), event(reason="Closed"), event(now=NOW + 1)]
    assert len({made["metadata"]["name"] for made in [event(), *others]}) == 4


def test_long_message_is_cut_between_characters():
    message = event(message="ü" * 2000)["message"]
    assert len(message.encode()) <= events.LONGEST_MESSAGE
    assert message.endswith("ü…")


MOMENT, LATER = "2026-01-01T00:00:00.000001Z", "2026-01-01T00:09:00.000001Z"


@cases("fields, times, seen", {
    "an older client's": ({"count": 4, "lastTimestamp": LATER}, 4, LATER),
    "a newer client's": ({"eventTime": MOMENT}, 1, MOMENT),
    "a series": ({"eventTime": MOMENT, "series": {"count": 3, "lastObservedTime": LATER}}, 3, LATER),
    "one that says nothing": ({}, 1, "2026-01-01T00:00:00Z"),
})  # fmt: skip
def test_how_often_an_event_happened_and_when_last(fields, times, seen):
    told = msgspec.convert({"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}, **fields}, Event)
    assert (told.times, told.seen) == (times, seen)
