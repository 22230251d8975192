import json

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
        made.take(7, Parts(parts, list(parts)))
    return made


AB = {"a": "1", "b": "2"}
FOLLOWS = "it follows"


@cases("before, revision, after, message", {
    "its page is older": ({}, 3, AB, {"set": AB, "order": ["a", "b"]}),
    "its page shows what is first known": (AB, 5, AB, {"set": {}}),
    "its page shows the same": (AB, 6, AB, {"set": {}}),
    "its page is the newest": (AB, 7, AB, {"set": {}}),
    "its page is of a log that was put back to an older copy": (AB, 900, AB, {"set": AB, "order": ["a", "b"]}),
    "a part differs": (AB, FOLLOWS, {"a": "1", "b": "3"}, {"set": {"b": "3"}}),
    "a member left": (AB, FOLLOWS, {"b": "2"}, {"set": {}, "order": ["b"]}),
    "members changed places": (AB, FOLLOWS, {"b": "2", "a": "1"}, {"set": {}, "order": ["b", "a"]}),
    "a member came": (AB, FOLLOWS, {"a": "1", "c": "3", "b": "2"}, {"set": {"c": "3"}, "order": ["a", "c", "b"]}),
    "nothing differs": (AB, FOLLOWS, AB, None),
})  # fmt: skip
def test_a_reader_gets_what_its_page_lacks(before, revision, after, message):
    made, reader = rendering(**before), Reader()
    if revision == FOLLOWS:
        made.readers.add(reader)
    else:
        made.joining[reader] = revision
    made.take(8, Parts(after, list(after)))
    assert reader.got == ([{"op": "parts", "id": "t", "revision": 8, **message}] if message else [])


POD = {"metadata": {"ownerReferences": [{"uid": "job-1", "controller": True}]}}


@cases("watch, matches", {
    "all of a kind": (Watch("pods"), True), "another kind": (Watch("nodes"), False),
    "a namespace": (Watch("pods", "default"), True), "another namespace": (Watch("pods", "other"), False),
    "one object": (Watch("pods", "default", "p"), True), "another object": (Watch("pods", "default", "q"), False),
    "a name anywhere": (Watch("pods", None, "p"), True), "an owner's": (Watch("pods", None, None, "job-1"), True),
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
