from __future__ import annotations

import json

import pytest
from django.http import QueryDict

from dashboard.live.rendering import Rendering, WatchIndex
from dashboard.live.topics import Parts, Watch, address, parse
from tests.dashboard.live.world import change_of
from tests.tables import cases


class Reader:
    """A socket that keeps what it is offered."""

    def __init__(self):
        self.got = []

    def offer(self, text):
        self.got.append(json.loads(text))


def rendering(**parts):
    made = Rendering("t", "all", lambda request: Parts({}), QueryDict(), None)
    if parts:
        made.take(5, Parts(parts, list(parts)))
    return made


def reading(revision, made):
    reader = Reader()
    made.joining[reader] = revision
    return reader


def test_who_joins_with_an_older_page_gets_the_whole_state():
    made = rendering()
    reader = reading(3, made)
    made.take(5, Parts({"a": "<i>1</i>", "b": "<i>2</i>"}, ["a", "b"]))
    assert reader.got == [
        {"op": "parts", "id": "t", "revision": 5, "set": {"a": "<i>1</i>", "b": "<i>2</i>"}, "order": ["a", "b"]}
    ]


@pytest.mark.parametrize("revision", [5, 6, 7])
def test_who_joins_with_a_page_that_shows_the_same_gets_nothing_but_an_answer(revision):
    made = rendering(a="1")
    made.take(7, Parts({"a": "1"}, ["a"]))
    reader = reading(revision, made)
    made.take(8, Parts({"a": "1"}, ["a"]))
    assert reader.got == [{"op": "parts", "id": "t", "revision": 8, "set": {}}]


def test_who_joins_with_a_page_of_the_future_gets_the_whole_state():
    """A state directory that was put back to an older copy has lower revisions."""
    made = rendering(a="1")
    reader = reading(900, made)
    made.take(8, Parts({"a": "1"}, ["a"]))
    assert reader.got[0]["set"] == {"a": "1"}


def test_readers_get_only_what_differs():
    made = rendering(a="1", b="2")
    reader = Reader()
    made.readers.add(reader)
    made.take(6, Parts({"a": "1", "b": "3"}, ["a", "b"]))
    assert reader.got == [{"op": "parts", "id": "t", "revision": 6, "set": {"b": "3"}}]


@cases("after, set_, order", {
    "a member left": ({"b": "2"}, {}, ["b"]),
    "members changed places": ({"b": "2", "a": "1"}, {}, ["b", "a"]),
    "a member came": ({"a": "1", "c": "3", "b": "2"}, {"c": "3"}, ["a", "c", "b"]),
})  # fmt: skip
def test_the_order_is_sent_when_the_members_changed(after, set_, order):
    made = rendering(a="1", b="2")
    reader = Reader()
    made.readers.add(reader)
    made.take(6, Parts(after, list(after)))
    assert reader.got == [{"op": "parts", "id": "t", "revision": 6, "set": set_, "order": order}]


def test_nothing_is_sent_when_nothing_differs():
    made = rendering(a="1")
    reader = Reader()
    made.readers.add(reader)
    made.take(6, Parts({"a": "1"}, ["a"]))
    assert reader.got == []


def test_equal_text_is_encoded_once_for_all():
    made = rendering(a="1")
    offered = []
    for _ in range(3):
        reader = Reader()
        reader.offer = offered.append
        made.readers.add(reader)
    made.take(6, Parts({"a": "2"}, ["a"]))
    assert len(offered) == 3
    assert len({id(text) for text in offered}) == 1


POD = {"metadata": {"ownerReferences": [{"uid": "job-1", "controller": True}]}}


@cases("watch, matches", {
    "all of a kind": (Watch("pods"), True),
    "another kind": (Watch("nodes"), False),
    "a namespace": (Watch("pods", "default"), True),
    "another namespace": (Watch("pods", "other"), False),
    "one object": (Watch("pods", "default", "p"), True),
    "another object": (Watch("pods", "default", "q"), False),
    "a name anywhere": (Watch("pods", None, "p"), True),
    "an owner's": (Watch("pods", None, None, "job-1"), True),
    "an owner's in a namespace": (Watch("pods", "default", None, "job-1"), True),
    "another owner's": (Watch("pods", None, None, "job-2"), False),
})  # fmt: skip
def test_a_change_finds_who_watches_it(watch, matches):
    index, made = WatchIndex(), rendering()
    index.put(made, [watch])
    assert (made in set(index.match(change_of("pods", "default", "p", POD)))) is matches


def test_a_rendering_watches_only_what_it_last_named():
    index, made = WatchIndex(), rendering()
    index.put(made, [Watch("pods"), Watch("nodes", None, None, "x")])
    index.put(made, [Watch("nodes")])
    assert not set(index.match(change_of("pods", "default", "p", POD)))
    assert [kind.id for kind in index.kinds()] == ["nodes"]
    assert index.owned() == frozenset()


def test_a_topic_has_one_spelling():
    assert address("t", {"b": "2", "a": "1 ä", "c": ""}) == "t?a=1+%C3%A4&b=2"
    name, params = parse(address("t", {"b": "2", "a": "1 ä"}))
    assert (name, params.dict()) == ("t", {"a": "1 ä", "b": "2"})
