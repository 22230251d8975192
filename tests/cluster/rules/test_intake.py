"""Which queues take pod groups that people make; jobs are asked the same in tests/jobs/test_admission.py."""

from __future__ import annotations

import pytest

from kube.resources import POD_GROUPS

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


def refusals(obj, old=None, queues=QUEUES):
    return messages(POD_GROUPS, obj, old, *queues)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        pytest.param("closed", "can only submit PodGroup to queue with state `Open`, queue `closed` status is `Closed`", id="closed"),
        pytest.param("closing", "queue `closing` status is `Closing`", id="closing"),
        pytest.param("new", "queue `new` status is `Closed`", id="made closed and not seen by its controller"),
        pytest.param("none", "unable to find PodGroup queue: queue none not found", id="missing"),
        pytest.param("root", "can not submit PodGroup to root queue", id="root"),
        pytest.param("team", "can only submit PodGroup to leaf queue, and `team` has 1 child queues", id="with queues below"),
    ],
)  # fmt: skip
def test_a_group_is_refused_by_a_queue_that_takes_no_work(name, words):
    (message,) = refusals(group(name))
    assert message.startswith(f'spec.queue: Invalid value: "{name}": ')
    assert words in message
    assert refusals(group(name), group("open")) == [message]


@pytest.mark.parametrize("name", ["open", "sub", ""])
def test_a_group_comes_into_an_open_queue(name):
    assert refusals(group(name)) == []
    assert refusals(group(name), group("closed")) == []


def test_a_group_that_names_no_queue_comes_into_the_default_one():
    (message,) = refusals(group(), queues=[queue("default", "Closed")])
    assert "queue `default` status is `Closed`" in message


@pytest.mark.parametrize(("name", "before"), [("closing", "closing"), ("none", "none"), ("", "default")])
def test_a_group_that_is_in_a_queue_may_change(name, before):
    queues = [queue("closing", "Closing"), queue("default", "Closed")]
    assert not admit(POD_GROUPS, group(name, minMember=2), group(before), *queues).causes
