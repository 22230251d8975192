"""Watches over real TCP: what they tell, what ends them, what one client costs the others, and peers that vanish without a word."""

import asyncio
import logging
import os
import resource
import shutil
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
import websockets
from django.contrib.auth.models import User

from apiserver.watch import connection, stream
from apiserver.watch.connection import KEEPALIVE
from cluster import access
from cluster.access import tokens
from cluster.models import RoleBinding, Token
from cluster.store import Create, store
from kube.errors import Expired
from kube.resources import PODS
from node.shim import linux
from proof.harness.waiting import HANG_S
from tests.apiserver.watch import world
from tests.apiserver.watch.world import Client, in_db, make, phase, remove, serving, until
from tests.tables import cases, parts
from volcano_ui.web import listen

DEFAULT = "/api/v1/namespaces/default/pods"


def types_and_names(lines):
    return [(line.type, line.name) for line in lines]


async def test_changes_come_as_they_are_committed_with_the_stored_bytes(port):
    async with Client(port, DEFAULT, resourceVersion=0) as client:
        sent = {"content-type": "application/json", "transfer-encoding": "chunked"}
        assert (client.status, client.headers | sent) == (200, client.headers)
        first = await make("a")
        changed = await phase("a", "Running")
        gone = await remove("a")
        lines = await client.hear(3)
    assert types_and_names(lines) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
    assert [line.revision for line in lines] == [first, changed, gone]
    assert lines[2].object["status"] == {"phase": "Running"}
    body = (await in_db(store.changes)(first - 1))[0].body
    assert lines[0].text == b'{"type":"ADDED","object":' + body + b"}"


@cases("remembered", {"from the log": 0, "from memory": 1000})
@parts("apiserver/watches")
async def test_a_watch_tells_what_comes_and_goes(port, monkeypatch, part, remembered):
    monkeypatch.setattr("apiserver.watch.window.MAX_ENTRIES", remembered)
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
    assert types_and_names(lines) == [("ADDED", "a"), ("BOOKMARK", None)][: 1 + (bookmarks == "true")]
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
    assert types_and_names(await client.hear(1)) == [("ADDED", "c")]
    await client.__aexit__()
    monkeypatch.setattr("apiserver.watch.log_follower.WatchFollower.reach.__defaults__", (0.2,), raising=False)
    async with Client(port, DEFAULT, resourceVersion=head + 1000) as client:
        status = await client.body()
    assert (client.status, status["reason"]) == (504, "Timeout")
    assert status["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


@pytest.fixture
async def forgotten(follower, settings, monkeypatch):
    settings.HISTORY_HOURS = 0
    monkeypatch.setattr("apiserver.watch.window.MAX_ENTRIES", 0)
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
    assert types_and_names(lines) == [("ADDED", "a"), ("ADDED", "b")]


ANYWHERE = "/api/v1/pods"


@in_db
def make_large(name, size=200_000):
    pod = world.pod(name)
    pod["metadata"]["annotations"] = {"fill": "x" * size}
    return store.write(Create(PODS, pod))[0].revision


@in_db
def person(name, *namespaces):
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
    slow, raw, names, events = keeper.slow, await stuck(port, headers), [], []
    async with Client(port, DEFAULT) as healthy:
        await until(lambda: len(keeper.streams) == 2, "two watches")
        while keeper.slow == slow and len(names) < 60:
            names.append(f"large-{len(names):02}")
            await make_large(names[-1])
            events += await healthy.hear(1)  # or its own queue would be too long on a busy machine
        await until(lambda: keeper.slow > slow, "the cut")
        await until(lambda: len(keeper.streams) == 1, "its end")
        await make("last")
        assert [line.name for line in [*events, *await healthy.hear(1)]] == [*names, "last"]
    assert await closed(raw) in ("reset", "closed")
    raw.close()
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_a_client_that_goes_is_forgotten_and_a_head_request_is_no_watch(port, keeper, board):
    async with Client(port, DEFAULT, labelSelector="a=b"), Client(port, ANYWHERE):
        await until(lambda: len(keeper.streams) == 2, "two watches")
    await until(lambda: not keeper.streams, "their end")
    assert not board._channels
    async with httpx.AsyncClient(timeout=HANG_S) as client:
        assert (await client.head(f"http://127.0.0.1:{port}{DEFAULT}?watch=true")).status_code == 405


@cases("setting, value", {
    "of watches": ("MAX_STREAMS", 2),
    "of open files": ("SPARE_FILES", resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 2),
})  # fmt: skip
async def test_beyond_the_cap_a_watch_is_429_with_retry_after(port, keeper, monkeypatch, setting, value):
    alice, bob = await person("alice", "default"), await person("bob", "default")
    monkeypatch.setattr(f"apiserver.watch.stream_keeper.{setting}", value)
    monkeypatch.setattr("apiserver.watch.stream_keeper.MAX_OF_ONE", 1)
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
        assert types_and_names(await loses.hear(1)) == types_and_names(await revoked.hear(1)) == [("ADDED", "a")]
        await in_db(RoleBinding.objects.filter(user__username="alice").delete)()
        await in_db(Token.objects.all().delete)()
        assert await loses.rest() == await revoked.rest() == []
        await make("b")
        assert types_and_names(await keeps.hear(2)) == [("ADDED", "a"), ("ADDED", "b")]


async def test_history_that_is_forgotten_under_a_running_watch_is_an_error_event(port, keeper, follower):
    async with Client(port, DEFAULT, resourceVersion=await make("a")) as client:
        await until(lambda: [stream for stream in keeper.streams if stream._feed is not None], "its beginning")
        follower.lose()
        (line,) = await client.rest()
    assert (line.type, line.object["code"], line.object["reason"]) == ("ERROR", 410, "Expired")


async def test_history_that_is_forgotten_while_it_is_replayed_is_an_error_event(port, monkeypatch):
    def gone(*_, **__):
        raise Expired("too old resource version: 1 (9)")

    monkeypatch.setattr("apiserver.watch.window.MAX_ENTRIES", 0)
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
        assert types_and_names(await client.hear(1)) == [("ADDED", "a")]
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
    monkeypatch.setattr("apiserver.watch.window.MAX_ENTRIES", 0)
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


pytestmark = pytest.mark.django_db(transaction=True)
HERE, THERE = "198.18.0.1", "198.18.0.2"  # kept for tests of networks
WATCH = "/api/v1/namespaces/default/pods?watch=true"
CLIENT = """
import contextlib, socket, sys
client = None
while client is None:  # the link may take a moment
    with contextlib.suppress(OSError):
        client = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=1)
client.settimeout(None)
client.sendall(f"GET {sys.argv[3]} HTTP/1.1\\r\\nHost: x\\r\\n{sys.argv[4]}\\r\\n".encode())
while client.recv(65536):
    pass
"""


@pytest.fixture
def networks():
    """The names of two network namespaces with a link between them.

    A browser gives up what it loads when the machine's own network changes.
    """
    names = here, there = [f"volcano-{end}-{os.getpid()}" for end in ("here", "there")]
    make_first = ["ip", "netns", "add", here]
    if not shutil.which("ip") or subprocess.run(make_first, check=False, capture_output=True).returncode:
        pytest.skip("it takes the right to make network namespaces")
    try:
        ip("netns", "add", there)
        ip("-n", here, "link", "add", "veth", "type", "veth", "peer", "name", "veth", "netns", there)
        for name, address in zip(names, (HERE, THERE), strict=True):
            ip("-n", name, "addr", "add", f"{address}/30", "dev", "veth")
            ip("-n", name, "link", "set", "veth", "up")
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


def listen_in(network):
    """Return a socket that listens in a network namespace: it is of the one that the thread is in which makes it."""

    def enter():
        with Path("/run/netns", network).open() as file:
            linux.setns(file.fileno(), linux.CLONE_NEWNET)
        return listen(HERE, 0)

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(enter).result()


@cases("headers", {"http": "", "websocket": UPGRADE})
async def test_peer_that_vanished_is_noticed_while_something_is_sent_to_it(
    redis, networks, keeper, monkeypatch, headers
):
    monkeypatch.setattr(connection, "LOOK_S", 0.1)
    monkeypatch.setattr(connection, "SILENT_MS", 500)
    here, there = networks
    async with serving(listen_in(here)) as port:
        program = [sys.executable, "-c", CLIENT, HERE, str(port), WATCH, headers]
        client = subprocess.Popen(["ip", "netns", "exec", there, *program])
        try:
            await until(lambda: keeper.streams, "the watch")
            ip("-n", there, "route", "add", "blackhole", HERE)
            await make("a")
            await until(lambda: not keeper.streams, "its end")
        finally:
            client.kill()
            client.wait()


async def test_peer_that_does_not_read_has_not_vanished(port, keeper, monkeypatch):
    looks, whole = [], connection.has_vanished
    monkeypatch.setattr(connection, "has_vanished", lambda raw: looks.append(whole(raw)) or looks[-1])
    monkeypatch.setattr(connection, "LOOK_S", 0.05)
    monkeypatch.setattr(connection, "SILENT_MS", 100)
    monkeypatch.setattr("apiserver.watch.stream.QUEUE_BYTES", 1 << 30)
    raw = await stuck(port)
    await until(lambda: keeper.streams, "the watch")
    for number in range(50):
        await make_large(f"large-{number}")
    looks.clear()
    await until(lambda: len(looks) > 40, "the looks")
    assert not any(looks)
    assert keeper.sending
    raw.close()


async def test_idle_peers_are_asked_whether_they_are_there(port, monkeypatch):
    expected = [
        (socket.SOL_SOCKET, socket.SO_KEEPALIVE),
        *((socket.IPPROTO_TCP, getattr(socket, name)) for name, _ in KEEPALIVE),
    ]
    options = []
    monkeypatch.setattr(
        connection, "has_vanished", lambda raw: options.append([raw.getsockopt(*each) for each in expected])
    )
    monkeypatch.setattr(connection, "LOOK_S", 0.05)
    async with Client(port, "/api/v1/pods"):
        await until(lambda: options, "a look")
    assert options[0] == [1, *(value for _, value in KEEPALIVE)]
