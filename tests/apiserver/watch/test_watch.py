"""Watches over real TCP, on the real store and a real Redis."""

from __future__ import annotations

import asyncio

import pytest
import websockets

from cluster.store import Create, store
from kube.resources import EVENTS
from proof.harness.waiting import HANG_S
from tests.apiserver.watch import world
from tests.apiserver.watch.world import Client, in_db, label, make, phase, remove, until
from tests.builders import of
from tests.tables import cases

PODS = "/api/v1/pods"
DEFAULT = "/api/v1/namespaces/default/pods"


def told(lines):
    return [(line.type, line.name) for line in lines]


async def test_changes_come_as_they_are_committed_with_the_stored_bytes(port):
    async with Client(port, DEFAULT, resourceVersion=0) as client:
        assert client.status == 200
        assert [client.headers[name] for name in ("content-type", "transfer-encoding")] == [
            "application/json",
            "chunked",
        ]
        first = await make("a")
        changed = await phase("a", "Running")
        gone = await remove("a")
        lines = await client.hear(3)
    assert told(lines) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
    assert [line.revision for line in lines] == [first, changed, gone]
    assert lines[2].object["status"] == {"phase": "Running"}
    body = (await in_db(store.changes)(first - 1))[0].body
    assert lines[0].text == b'{"type":"ADDED","object":' + body + b"}"


STATE = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
MARKED = {**STATE, "allowWatchBookmarks": "true"}
NO_STATE = {**STATE, "sendInitialEvents": "false"}


# Rows of the table 4.2 for a watch begun when a and b exist and b has just changed, then c is made.
# Rows of the table 4.2 for a watch begun when a and b exist and b has just changed, then c is made.
@cases("params, expected", {
    "unset": ({}, "abc"),
    "zero": ({"resourceVersion": "0"}, "abc"),
    "a revision": ({"resourceVersion": "first"}, "bbc"),
    "the newest": ({"resourceVersion": "newest"}, "c"),
    "initial events": (MARKED, "ab|c"),
    "initial events from a revision": ({**MARKED, "resourceVersion": "first"}, "ab|c"),
    "initial events without bookmarks": (STATE, "abc"),
    "no initial events": (NO_STATE, "c"),
    "no initial events, zero": ({**NO_STATE, "resourceVersion": "0"}, "c"),
    "no initial events after a revision": ({**NO_STATE, "resourceVersion": "first"}, "bbc"),
})  # fmt: skip
async def test_a_watch_begins_where_its_parameters_say(port, params, expected):
    words = {"first": await make("a")}
    await make("b")
    words["newest"] = newest = await phase("b", "Running")
    async with Client(port, DEFAULT, **{k: words.get(v, v) for k, v in params.items()}) as client:
        await make("c")
        lines = await client.hear(len(expected))
    assert "".join(line.name or "|" for line in lines) == expected
    end = {"resourceVersion": str(newest), "annotations": {"k8s.io/initial-events-end": "true"}}
    for line in lines:
        if line.type == "BOOKMARK":
            assert line.object == {"kind": "Pod", "apiVersion": "v1", "metadata": end}


@cases("before, after, expected", {
    "starts to match": ({"app": "other"}, {"app": "web"}, [("ADDED", "after")]),
    "stops to match": ({"app": "web"}, {"app": "other"}, [("ADDED", "before"), ("DELETED", "before")]),
    "goes on to match": ({"app": "web"}, {"app": "web", "x": "1"}, [("ADDED", "before"), ("MODIFIED", "after")]),
    "never matches": ({"app": "a"}, {"app": "b"}, []),
})  # fmt: skip
@cases("remembered", {"from the log": 0, "from memory": 1000})
async def test_selectors_turn_changes_into_arrivals_and_departures(
    port, before, after, expected, remembered, monkeypatch
):
    monkeypatch.setattr("apiserver.watch.window.MOST_ENTRIES", remembered)
    begin = await make("other", app="none")
    query = {"labelSelector": "app=web", "resourceVersion": begin}
    async with Client(port, DEFAULT, **query) as live:
        revisions = [await make("a", **before), await label("a", **after)]
        mark = await make("mark", app="web")
        lines = await live.hear(len(expected) + 1)
    async with Client(port, DEFAULT, **query) as late:
        assert [line.text for line in await late.hear(len(lines))] == [line.text for line in lines]
    *events, last = lines
    assert last.revision == mark
    states = {"before": before, "after": after}
    found = [(line.type, line.object["metadata"]["labels"], line.revision) for line in events]
    assert found == [
        (verb, states[state], revision)
        for (verb, state), revision in zip(expected, revisions[2 - len(expected) :], strict=True)
    ]


@pytest.mark.parametrize("bookmarks", ["true", "false"])
async def test_a_watch_ends_cleanly_when_its_time_is_over_and_says_where_if_it_may(port, keeper, follower, bookmarks):
    await make("a")
    async with Client(port, DEFAULT, timeoutSeconds=600, allowWatchBookmarks=bookmarks) as client:
        (stream,) = keeper.streams
        assert stream.plan.seconds == 600
        elsewhere = await make("b", "elsewhere")
        await until(lambda: follower.position >= elsewhere and stream._feed, "what came elsewhere")
        stream.deadline = 0.0  # its time is over
        lines = await client.rest()
    assert told(lines) == [("ADDED", "a"), ("BOOKMARK", None)][: 1 + (bookmarks == "true")]
    assert bookmarks == "false" or lines[-1].revision == elsewhere


async def test_bookmarks_come_from_time_to_time_where_they_may(port, keeper, monkeypatch):
    monkeypatch.setattr("apiserver.watch.stream_keeper.BOOKMARK_EVERY_S", (0.0, 0.0))
    async with Client(port, DEFAULT) as plain, Client(port, DEFAULT, allowWatchBookmarks="true") as client:
        elsewhere = await make("b", "elsewhere")
        lines = await client.hear(1)
        while lines[-1].revision < elsewhere:
            lines += await client.hear(1)
        assert {line.type for line in lines} == {"BOOKMARK"}
        due = {stream: stream.bookmark_due for stream in keeper.streams}
        await until(lambda: all(stream.bookmark_due > due[stream] for stream in due), "the time of a bookmark")
        keeper.end_all()
        assert await plain.rest() == []


async def test_a_revision_of_the_future_is_waited_for_and_then_refused(port, monkeypatch):
    head = await make("a")
    opening = asyncio.create_task(Client(port, DEFAULT, resourceVersion=head + 1).__aenter__())
    await make("b")
    await make("c")
    client = await opening
    assert told(await client.hear(1)) == [("ADDED", "c")]
    await client.__aexit__()
    monkeypatch.setattr("apiserver.watch.log_follower.WatchFollower.reach.__defaults__", (0.2,), raising=False)
    async with Client(port, DEFAULT, resourceVersion=head + 1000) as client:
        status = await client.body()
    assert (client.status, status["reason"]) == (504, "Timeout")
    assert status["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


@pytest.fixture
async def forgotten(follower, settings, monkeypatch):
    """A revision that history does not reach back to."""
    settings.HISTORY_HOURS = 0
    monkeypatch.setattr("apiserver.watch.window.MOST_ENTRIES", 0)
    old = await make("a")
    await phase("a", "Running")
    await follower.reach(await phase("a", "Failed"))
    await in_db(world.forget)()
    return old


async def test_a_forgotten_past_is_410_before_the_stream_begins_and_an_event_on_a_websocket(port, forgotten):
    async with Client(port, DEFAULT, resourceVersion=forgotten) as client:
        status = await client.body()
    assert (client.status, status["reason"], status["code"]) == (410, "Expired", 410)
    url = f"ws://127.0.0.1:{port}{DEFAULT}?watch=1&resourceVersion={forgotten}"
    async with websockets.connect(url, compression=None, open_timeout=HANG_S) as client:
        (line,) = [world.Line(each) async for each in client]
    assert (line.type, line.object["reason"], line.object["code"]) == ("ERROR", "Expired", 410)


async def test_metadata_watches_carry_the_metadata_alone(port):
    accept = {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}
    async with Client(port, DEFAULT, headers=accept) as client:
        await make("a")
        (line,) = await client.hear(1)
    assert line.object["kind"] == "PartialObjectMetadata"
    assert set(line.object) == {"kind", "apiVersion", "metadata"}


@pytest.mark.parametrize("include", ["None", "Metadata", "Object"])
async def test_only_the_first_event_of_a_table_names_its_columns(port, include):
    await make("a")
    accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
    async with Client(port, DEFAULT, headers=accept, **MARKED, includeObject=include) as client:
        await make("b")
        lines = await client.hear(3)
    assert [line.type for line in lines] == ["ADDED", "BOOKMARK", "ADDED"]
    assert [bool(line.object.get("columnDefinitions")) for line in lines] == [True, False, False]
    assert [line.object["rows"][0]["cells"][0] for line in lines[::2]] == ["a", "b"]
    (row,) = lines[1].object["rows"]
    assert row["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_a_web_socket_brings_one_event_in_each_message(port):
    await make("a")
    url = f"ws://127.0.0.1:{port}{DEFAULT}?watch=true"
    async with websockets.connect(url, compression=None, open_timeout=HANG_S) as client:
        await make("b")
        lines = [world.Line(await client.recv()) for _ in range(2)]
    assert told(lines) == [("ADDED", "a"), ("ADDED", "b")]


async def test_a_view_is_watched_in_its_own_form(port):
    @in_db
    def tell(name, reason="New"):
        about = {"kind": "Pod", "name": "web-0", "namespace": "default"}
        body = {"involvedObject": about, "reason": reason, "message": "m"}
        return store.write(Create(EVENTS, of(EVENTS, name, body)))[0]

    first = await tell("a")
    rows = {"accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
    view = "/apis/events.k8s.io/v1/events"
    async with (
        Client(port, view, fieldSelector="regarding.name=web-0,reason=New", **MARKED) as ours,
        Client(port, "/api/v1/events", fieldSelector="involvedObject.name=web-0,reason=New") as core,
        Client(port, view, headers=rows, resourceVersion=first.revision) as table,
    ):
        before = await ours.hear(2)
        await core.hear(1)
        await tell("other", "Old")
        await tell("b")
        line, cores = (await ours.hear(1))[0], (await core.hear(1))[0]
        shown = (await table.hear(2))[1]
    assert told(before) == [("ADDED", "a"), ("BOOKMARK", None)]
    assert {each.object["apiVersion"] for each in (*before, line)} == {"events.k8s.io/v1"}
    assert (line.name, line.object["note"], line.object["regarding"]["name"]) == ("b", "m", "web-0")
    assert (cores.name, cores.object["message"]) == ("b", "m")
    assert "pod/web-0" in shown.object["rows"][0]["cells"]
