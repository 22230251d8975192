"""Which queues take pod groups that people make; jobs are asked the same in tests/jobs/test_admission.py."""

from __future__ import annotations

import pytest

from cluster.rules import intake
from kube.resources import POD_GROUPS
from kube.usage import QUEUE_ANNOTATION
from tests.tables import cases

from .known import admit, messages, of, queue

QUEUES = [
    queue("default"),
    queue("open"),
    queue("closed", "Closed"),
    queue("closing", "Closing"),
    queue("team"),
    queue("sub", parent="team"),
    {"kind": "Queue", "metadata": {"name": "new"}, "spec": {"state": "Closed"}},
    queue("root", parent=""),
]


def group(name="", **spec):
    return of(POD_GROUPS, spec={"minMember": 1, **({"queue": name} if name else {}), **spec})


def namespace(queue):
    """The namespace of the groups, which may name a queue."""
    metadata = {"name": "default", "annotations": {QUEUE_ANNOTATION: queue} if queue else {}}
    return {"kind": "Namespace", "metadata": metadata}


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
    parents = {one.get("spec", {}).get("parent") for one in QUEUES}
    said = intake.refusal(name, intake.queue_state(each), has_children=name in parents)
    assert bool(said) == bool(refusals(group(name)))


@pytest.mark.parametrize("name", ["open", "sub", ""])
def test_a_group_comes_into_an_open_queue(name):
    assert refusals(group(name)) == []
    assert refusals(group(name), group("closed")) == []


@pytest.mark.shows("scheduler 1.4/queue", "groups 3.1/queue")
def test_a_group_that_names_no_queue_comes_into_the_default_one():
    (message,) = refusals(group(), queues=[queue("default", "Closed")])
    assert "queue `default` status is `Closed`" in message


@pytest.mark.parametrize(("name", "before"), [("closing", "closing"), ("none", "none"), ("", "default")])
def test_a_group_that_is_in_a_queue_may_change(name, before):
    queues = [queue("closing", "Closing"), queue("default", "Closed")]
    assert not admit(POD_GROUPS, group(name, minMember=2), group(before), *queues).causes


@pytest.mark.shows("groups 3.5/queue-name of a namespace", "groups 3.7/namespace's queue")
@cases("written, named, expected", {
    "no queue": ("", "open", "open"),
    "the default queue": ("default", "open", "open"),
    "another queue": ("sub", "open", "sub"),
    "a namespace that names none": ("", "", None),
})  # fmt: skip
def test_a_new_group_comes_into_the_queue_that_its_namespace_names(written, named, expected):
    admitted = admit(POD_GROUPS, group(written), None, namespace(named), *QUEUES)
    assert not admitted.causes
    assert admitted.object["spec"].get("queue") == expected


def test_a_group_is_not_moved_by_its_namespace():
    admitted = admit(POD_GROUPS, group("default", minMember=2), group("default"), namespace("open"), *QUEUES)
    assert admitted.object["spec"]["queue"] == "default"
