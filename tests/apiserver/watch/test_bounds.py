"""What ends a watch, and what one client's end costs the others."""

from __future__ import annotations

import asyncio
import logging
import resource
import socket
from pathlib import Path

import httpx
import pytest
from django.contrib.auth.models import User

from apiserver.watch import stream
from cluster import access
from cluster.access import tokens
from cluster.models import RoleBinding, Token
from cluster.store import Create, store
from kube.errors import Expired
from kube.resources import PODS
from proof.harness.waiting import HANG_S
from tests.apiserver.watch import world
from tests.apiserver.watch.test_watch import DEFAULT, told
from tests.apiserver.watch.world import Client, in_db, make, until
from tests.tables import cases

ANYWHERE = "/api/v1/pods"


@in_db
def make_large(name, size=200_000):
    pod = world.pod(name)
    pod["metadata"]["annotations"] = {"fill": "x" * size}
    return store.write(Create(PODS, pod))[0].revision


@in_db
def person(name, *namespaces):
    """An actor who may read in these namespaces."""
    user = User.objects.create_user(name, password="x")
    for namespace in namespaces:
        RoleBinding.objects.create(user=user, namespace=namespace, role="viewer")
    world.ACTORS[name] = access.for_user(user)
    return {"x-actor": name}


UPGRADE = (
    "Connection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
)


async def stuck(port, headers=""):
    """A client that asks for a watch and never reads, with hardly any buffer."""
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    raw.setblocking(False)
    await asyncio.get_running_loop().sock_connect(raw, ("127.0.0.1", port))
    request = f"GET {DEFAULT}?watch=true HTTP/1.1\r\nHost: x\r\n{headers}\r\n"
    await asyncio.get_running_loop().sock_sendall(raw, request.encode())
    return raw


async def closed(raw):
    """Read what was sent and tell how the connection ended."""
    async with asyncio.timeout(HANG_S):
        try:
            while await asyncio.get_running_loop().sock_recv(raw, 1 << 20):
                pass
        except ConnectionResetError:
            return "reset"
    return "closed"


@cases("headers", {"http": "", "websocket": UPGRADE})
@pytest.mark.parametrize("bound", ["queue", "time"])
async def test_a_client_that_reads_nothing_is_cut_off_and_nobody_else_notices(
    port, keeper, monkeypatch, caplog, bound, headers
):
    name, least = ("stream.QUEUE_BYTES", 1_000_000) if bound == "queue" else ("stream_keeper.SEND_S", 0.3)
    monkeypatch.setattr(f"apiserver.watch.{name}", least)
    slow, raw, names = keeper.slow, await stuck(port, headers), []
    async with Client(port, DEFAULT) as healthy:
        await until(lambda: len(keeper.streams) == 2, "two watches")
        while keeper.slow == slow and len(names) < 60:
            names.append(f"large-{len(names):02}")
            await make_large(names[-1])
        await until(lambda: keeper.slow > slow, "the cut")
        await until(lambda: len(keeper.streams) == 1, "its end")
        await make("last")
        assert [line.name for line in await healthy.hear(len(names) + 1)] == [*names, "last"]
    assert await closed(raw) in ("reset", "closed")
    raw.close()
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_a_large_state_reaches_a_client_that_takes_its_time(port):
    names = [f"large-{number:02}" for number in range(40)]
    for name in names:
        await make_large(name)
    async with Client(port, DEFAULT) as client:
        assert [line.name for line in await client.hear(40)] == names
        await make("later")
        assert told(await client.hear(1)) == [("ADDED", "later")]


async def test_a_client_that_goes_is_forgotten_and_a_head_request_is_no_watch(port, keeper, board):
    async with Client(port, DEFAULT, labelSelector="a=b"), Client(port, ANYWHERE):
        await until(lambda: len(keeper.streams) == 2, "two watches")
    await until(lambda: not keeper.streams, "their end")
    assert not board._places
    async with httpx.AsyncClient(timeout=HANG_S) as client:
        assert (await client.head(f"http://127.0.0.1:{port}{DEFAULT}?watch=true")).status_code == 405


@cases("setting, value", {
    "of watches": ("MOST_STREAMS", 2),
    "of open files": ("SPARE_FILES", resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 2),
})  # fmt: skip
async def test_beyond_the_cap_a_watch_is_429_with_retry_after(port, keeper, monkeypatch, setting, value):
    alice, bob = await person("alice", "default"), await person("bob", "default")
    monkeypatch.setattr(f"apiserver.watch.stream_keeper.{setting}", value)
    monkeypatch.setattr("apiserver.watch.stream_keeper.MOST_OF_ONE", 1)
    async with Client(port, DEFAULT, headers=alice):
        await until(lambda: keeper.streams, "the first")
        async with Client(port, DEFAULT, headers=alice) as second:
            status = await second.body()
        assert (second.status, status["reason"]) == (429, "TooManyRequests")
        assert int(second.headers["retry-after"]) > 0
        async with Client(port, DEFAULT, headers=bob) as other, Client(port, DEFAULT) as beyond:
            assert (other.status, beyond.status) == (200, 429)


async def test_a_watch_ends_when_the_right_or_the_token_is_taken_away(port):
    alice, bob = await person("alice", "default"), await person("bob", "default")
    user = await in_db(User.objects.get)(username="bob")
    issued = await in_db(tokens.issue)(access.CONSOLE, user, "laptop", tokens.DAY_S)
    token = {**bob, "Authorization": f"Bearer {issued.secret}"}
    async with (
        Client(port, DEFAULT, headers=alice) as loses,
        Client(port, DEFAULT, headers=token) as revoked,
        Client(port, DEFAULT, headers=bob) as keeps,
    ):
        await make("a")
        assert told(await loses.hear(1)) == told(await revoked.hear(1)) == [("ADDED", "a")]
        await in_db(RoleBinding.objects.filter(user__username="alice").delete)()
        await in_db(Token.objects.all().delete)()
        assert await loses.rest() == await revoked.rest() == []
        await make("b")
        assert told(await keeps.hear(2)) == [("ADDED", "a"), ("ADDED", "b")]


async def test_history_that_is_forgotten_under_a_running_watch_is_an_error_event(port, keeper, follower):
    async with Client(port, DEFAULT, resourceVersion=await make("a")) as client:
        await until(lambda: [stream for stream in keeper.streams if stream._feed is not None], "its beginning")
        follower.lose()
        (line,) = await client.rest()
    assert (line.type, line.object["code"], line.object["reason"]) == ("ERROR", 410, "Expired")


async def test_history_that_is_forgotten_while_it_is_replayed_is_an_error_event(port, monkeypatch):
    def gone(*_, **__):
        raise Expired("too old resource version: 1 (9)")

    monkeypatch.setattr("apiserver.watch.window.MOST_ENTRIES", 0)
    begin = await make("a")
    async with Client(port, DEFAULT, resourceVersion=begin) as live:
        await make("b")
        await live.hear(1)
        monkeypatch.setattr("cluster.store.log.after", gone)
        async with Client(port, DEFAULT, resourceVersion=begin) as client:
            (line,) = await client.rest()
    assert (client.status, line.type, line.object["reason"]) == (200, "ERROR", "Expired")


async def test_watches_end_cleanly_when_the_server_stops(transactional_db, redis):
    async with world.serving() as port:
        client = await Client(port, DEFAULT).__aenter__()
        await make("a")
        assert told(await client.hear(1)) == [("ADDED", "a")]
    assert await client.rest() == []
    await client.__aexit__()


async def test_each_event_is_written_once_for_each_form(port, keeper, board):
    clients = [await Client(port, path).__aenter__() for path in (DEFAULT, ANYWHERE) for _ in range(5)]
    await until(lambda: len(keeper.streams) == 10 and all(s._feed for s in keeper.streams), "ten watches")
    before = board.counts.encoded
    for number in range(20):
        await make(f"n-{number:02}")
    for client in clients:
        await client.hear(20)
        await client.__aexit__()
    assert board.counts.encoded - before == 20


async def test_without_redis_changes_come_by_polling(transactional_db, settings, tmp_path):
    settings.REDIS_URL = f"unix://{tmp_path}/nobody"
    async with world.serving() as port, Client(port, DEFAULT) as client:
        await make("a")
        assert told(await client.hear(1)) == [("ADDED", "a")]


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the memory of a process is read in /proc")
async def test_many_watches_that_nobody_reads_take_a_bounded_memory(port, keeper, monkeypatch):
    """Each would hold all ten objects, 9 MB; forty of them would take 360 MB."""

    def memory_mb():
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6

    monkeypatch.setattr(keeper.room, "most", 16_000_000)
    for number in range(10):
        await make_large(f"large-{number}", 900_000)
    names = [await person(name, "default") for name in ("alice", "bob", "carol", "dave")]
    before, most, slow = memory_mb(), 0, keeper.slow
    raws = [await stuck(port, f"x-actor: {headers['x-actor']}\r\n") for headers in names for _ in range(10)]
    while keeper.slow - slow < 20:
        await asyncio.sleep(0.01)
        assert keeper.room.size <= 16_000_000
        most = max(most, memory_mb())
    async with Client(port, DEFAULT) as reads:
        assert len(await reads.hear(10)) == 10
    assert most - before < 150
    for raw in raws:
        raw.close()
    await until(lambda: not keeper.streams, "their end")
    assert keeper.room.size == 0


@pytest.mark.parametrize("reading", ["_initial", "_replay"])
async def test_a_state_or_past_of_large_objects_is_read_as_the_client_takes_it(port, monkeypatch, reading):
    monkeypatch.setattr("apiserver.watch.window.MOST_ENTRIES", 0)
    steps = []
    whole = getattr(stream.Stream, reading)
    monkeypatch.setattr(
        stream.Stream, reading, lambda self, *given: steps.append(found := whole(self, *given)) or found
    )
    begin = {"resourceVersion": await make("first")} if reading == "_replay" else {}
    async with Client(port, DEFAULT, **begin) as before:
        for number in range(6):
            await make_large(f"large-{number}", 100_000)
        await before.hear(6)  # until then they are no past
        steps.clear()
        async with Client(port, DEFAULT, **begin) as client:
            assert len(await client.hear(6)) == 6
    assert reading == "_replay" or [count for _, count in steps] == [2, 2, 2]
    assert max(len(lines) for lines, _ in steps) < stream.STEP_BYTES
