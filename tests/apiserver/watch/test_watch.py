"""Watches over real TCP, on the real store and a real Redis."""

from __future__ import annotations

import asyncio

import pytest
import websockets

from cluster.store import store
from proof.harness.waiting import HANG_S
from tests.apiserver.watch import world
from tests.apiserver.watch.world import Client, in_db, make, phase, remove, until
from tests.tables import cases, parts

PODS = "/api/v1/pods"
DEFAULT = "/api/v1/namespaces/default/pods"


def told(lines):
    return [(line.type, line.name) for line in lines]


async def test_changes_come_as_they_are_committed_with_the_stored_bytes(port):
    async with Client(port, DEFAULT, resourceVersion=0) as client:
        sent = {"content-type": "application/json", "transfer-encoding": "chunked"}
        assert (client.status, client.headers | sent) == (200, client.headers)
        first = await make("a")
        changed = await phase("a", "Running")
        gone = await remove("a")
        lines = await client.hear(3)
    assert told(lines) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
    assert [line.revision for line in lines] == [first, changed, gone]
    assert lines[2].object["status"] == {"phase": "Running"}
    body = (await in_db(store.changes)(first - 1))[0].body
    assert lines[0].text == b'{"type":"ADDED","object":' + body + b"}"


@cases("remembered", {"from the log": 0, "from memory": 1000})
@parts("apiserver/watches")
async def test_a_watch_tells_what_comes_and_goes(port, monkeypatch, part, remembered):
    monkeypatch.setattr("apiserver.watch.window.MOST_ENTRIES", remembered)
    await world.Story(port).goes(part)


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


async def test_a_web_socket_brings_one_event_in_each_message(port):
    await make("a")
    url = f"ws://127.0.0.1:{port}{DEFAULT}?watch=true"
    async with websockets.connect(url, compression=None, open_timeout=HANG_S) as client:
        await make("b")
        lines = [world.Line(await client.recv()) for _ in range(2)]
    assert told(lines) == [("ADDED", "a"), ("ADDED", "b")]
