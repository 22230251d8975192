"""Pod groups that people make: which queues take them, and what they may ask for (volcano-queue-podgroup-cli §3.7).

Jobs are asked the same of queues in tests/jobs/test_admission.py.
"""

from __future__ import annotations

import pytest

from cluster.rules import intake
from kube.kept_room import RELEASED
from kube.resources import POD_GROUPS
from kube.resources import QUEUES as QUEUES_KIND
from kube.usage import QUEUE_ANNOTATION
from tests import builders
from tests.tables import cases

from .known import admit, causes, messages, queue

QUEUES = [
    queue("default"),
    queue("open"),
    queue("closed", "Closed"),
    queue("closing", "Closing"),
    queue("team"),
    queue("sub", parent="team"),
    builders.of(QUEUES_KIND, "new", state="Closed"),
    queue("root", parent=""),
]


def group(name="", **spec):
    return builders.pod_group("x", queue=name or None, **spec)


def refusals(obj, old=None, queues=QUEUES):
    return messages(POD_GROUPS, obj, old, *queues)


@pytest.mark.shows(
    "groups 3.7/queue missing", "groups 3.7/queue not Open", "groups 3.7/root, with children", "groups 3.7/moved"
)
@cases("name, words", {
    "closed": ("closed", "can only submit PodGroup to queue with state `Open`, queue `closed` status is `Closed`"),
    "closing": ("closing", "queue `closing` status is `Closing`"),
    "made closed and not seen by its controller": ("new", "queue `new` status is `Closed`"),
    "missing": ("none", "unable to find PodGroup queue: queue none not found"),
    "root": ("root", "can not submit PodGroup to root queue"),
    "with queues below": ("team", "can only submit PodGroup to leaf queue, and `team` has 1 child queues"),
})  # fmt: skip
def test_a_group_is_refused_by_a_queue_that_takes_no_work(name, words):
    (message,) = refusals(group(name))
    assert message.startswith(f'spec.queue: Invalid value: "{name}": ')
    assert words in message
    assert refusals(group(name), group("open")) == [message]


@pytest.mark.parametrize("each", QUEUES, ids=lambda each: each["metadata"]["name"])
def test_a_queue_says_in_a_few_words_that_it_takes_no_work_exactly_where_it_refuses(each):
    name = each["metadata"]["name"]
    parents = {one["spec"].get("parent") for one in QUEUES}
    said = intake.refusal(name, intake.queue_state(each), has_children=name in parents)
    assert bool(said) == bool(refusals(group(name)))


@pytest.mark.parametrize("name", ["open", "sub", ""])
def test_a_group_comes_into_an_open_queue(name):
    assert refusals(group(name)) == refusals(group(name), group("closed")) == []


@pytest.mark.shows("scheduler 1.4/queue", "groups 3.1/queue")
def test_a_group_that_names_no_queue_comes_into_the_default_one():
    (message,) = refusals(group(), queues=[queue("default", "Closed")])
    assert "queue `default` status is `Closed`" in message


@pytest.mark.parametrize(("name", "before"), [("closing", "closing"), ("none", "none"), ("", "default")])
def test_a_group_that_is_in_a_queue_may_change(name, before):
    queues = [queue("closing", "Closing"), queue("default", "Closed")]
    assert refusals(group(name, minimum=2), group(before), queues) == []


@pytest.mark.shows("groups 3.5/queue-name of a namespace", "groups 3.7/namespace's queue")
@cases("new, old, named, expected", {
    "no queue": (group(), None, "open", "open"),
    "the default queue": (group("default"), None, "open", "open"),
    "another queue": (group("sub"), None, "open", "sub"),
    "a namespace that names none": (group(), None, "", None),
    "an old group is not moved": (group("default", minimum=2), group("default"), "open", "default"),
})  # fmt: skip
def test_a_new_group_comes_into_the_queue_that_its_namespace_names(new, old, named, expected):
    namespace = builders.namespace("default", annotations={QUEUE_ANNOTATION: named} if named else {})
    admitted = admit(POD_GROUPS, new, old, namespace, *QUEUES)
    assert not admitted.causes
    assert admitted.object["spec"].get("queue") == expected


BOTH = {"mode": "hard", "highestTierAllowed": 1, "highestTierName": "rack"}
NEAR = {"matchExpressions": [{"key": "a", "operator": "Near"}]}
FORBIDDEN, INVALID = "FieldValueForbidden", "FieldValueInvalid"


def released(written):
    return {"annotations": {RELEASED: written}}


@pytest.mark.shows("groups 3.7/two tiers")
@cases("fields, path, reason", {
    "two highest tiers": ({"networkTopology": BOTH}, "spec.networkTopology", FORBIDDEN),
    "two highest tiers of sub-groups": ({"subGroupPolicy": [{"name": "a"}, {"name": "b", "networkTopology": BOTH}]},
        "spec.subGroupPolicy[1].networkTopology", FORBIDDEN),
    "a selector that cannot be read": ({"subGroupPolicy": [{"labelSelector": NEAR}]},
        "spec.subGroupPolicy[0].labelSelector", INVALID),
    "one highest tier": ({"networkTopology": {"highestTierAllowed": 0}}, None, None),
    "sub-groups by a label": ({"subGroupPolicy": [{"name": "a", "matchLabelKeys": ["b"]}]}, None, None),
    "room given back in whole seconds": (released("2026-01-01T12:00:00Z"), None, None),
    "in parts of a second": (released("2026-01-01T12:00:00.123456Z"), None, None),
    "in another zone": (released("2026-01-01T14:00:00+02:00"), None, None),
    "a word for a time": (released("now"), f"metadata.annotations[{RELEASED}]", INVALID),
    "nothing for a time": (released(""), f"metadata.annotations[{RELEASED}]", INVALID),
    "a number for a time": (released("1767225600"), f"metadata.annotations[{RELEASED}]", INVALID),
})  # fmt: skip
def test_an_arrangement_is_judged_at_its_fields(fields, path, reason):
    assert causes(POD_GROUPS, group(**fields), None, queue("default")) == ([(path, reason)] if path else [])
