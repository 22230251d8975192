"""How many requests and large bodies are in work at once, and whose; in which order what waits is written; who has the loop."""

import asyncio
import logging
import socket
import threading

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from apiserver import app
from apiserver.http import bodies, intake, routes, slices, threads, write_queue
from apiserver.http.respond import success
from apiserver.http.write_queue import Call, WriteQueue
from apiserver.telemetry import telemetry
from apiserver.watch.connection import Connection
from cluster import access
from kube import resources
from kube.errors import Conflict, TooManyRequests
from proof.harness.waiting import HANG_S, until
from tests.builders import config_map
from tests.tables import cases

MAPS = "/api/v1/namespaces/default/configmaps"


async def test_a_request_too_many_is_told_to_come_back(monkeypatch):
    gate = asyncio.Event()
    kind = next(each for each in resources.VIRTUAL if "create" in each.verbs and not each.namespaced)

    async def wait(request):
        await gate.wait()
        return success(request)

    async def system(headers):
        return access.SYSTEM

    monkeypatch.setitem(routes._virtual, kind.id, wait)
    monkeypatch.setattr(routes, "_everybody", {*routes._everybody, kind.id})
    monkeypatch.setitem(app.MOST, "write", 2)
    path = f"/apis/{kind.group}/{kind.version}/{kind.plural}"
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app.App(system)), base_url="http://api") as client:
        first = [asyncio.create_task(client.post(path, json={})) for _ in range(2)]
        while 'request_kind="mutating"} 2' not in telemetry.text():
            await asyncio.sleep(0)
        refused = await client.post(path, json={})
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
        assert refused.json()["reason"] == "TooManyRequests"
        gate.set()
        assert [answer.status_code for answer in await asyncio.gather(*first)] == [200, 200]
        assert (await client.post(path, json={})).status_code == 200
    assert 'request_kind="mutating"} 0' in telemetry.text()


async def test_one_actor_has_one_large_body_in_work():
    bodies_of = intake.Intake()
    first = await bodies_of.begin("a")
    second = asyncio.create_task(bodies_of.begin("a"))
    other = await bodies_of.begin("b")
    third = asyncio.create_task(bodies_of.begin("c"))
    await settled()
    assert (second.done(), third.done()) == (False, False)
    bodies_of.end(0, other)
    await third
    assert not second.done()
    bodies_of.end(0, first)
    assert await second


async def test_an_actor_with_many_large_bodies_is_told_to_wait(monkeypatch):
    monkeypatch.setattr(intake, "MAX_WAITING", 2)
    bodies_of = intake.Intake()
    first = await bodies_of.begin("a")
    waiting = [asyncio.create_task(bodies_of.begin("a")) for _ in range(2)]
    await settled()
    with pytest.raises(TooManyRequests):
        await bodies_of.begin("a")
    await bodies_of.begin("b")
    for task in waiting:
        task.cancel()  # a client that goes away while it waits takes nobody's turn
    await settled()
    bodies_of.end(0, first)
    await bodies_of.begin("a")


@pytest.mark.parametrize(("kind", "large"), [(bodies.JSON, intake.LARGE), (bodies.YAML, intake.LARGE_OTHER)])
def test_a_body_that_takes_long_is_read_beside_the_loop(api, monkeypatch, kind, large):
    read_in, decode = [], bodies.decode
    note = threading.current_thread
    monkeypatch.setattr(bodies, "decode", lambda *given: (read_in.append(note().name), decode(*given))[1])
    for name, size in (("a", large - 200), ("b", large + 200)):
        text = f'{{"metadata": {{"name": "{name}"}}, "data": {{"a": "{"x" * size}"}}}}'
        assert api.post(MAPS, text, content_type=kind).status_code == 201
    assert [name.startswith("api-bodies") for name in read_in] == [False, True]


def test_who_sends_a_body_slowly_takes_nobodys_place(api, monkeypatch):
    monkeypatch.setitem(app.MOST, "write", 1)
    begun, body = [], app.Request.body
    monkeypatch.setattr(app.Request, "body", lambda request: (begun.append(request), body(request))[1])
    host, port = api.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as slow:
        head = f"POST {MAPS} HTTP/1.1\r\nhost: a\r\nx-actor: {api.http.headers['x-actor']}\r\n"
        slow.sendall(head.encode() + b"content-type: application/json\r\ncontent-length: 100\r\n\r\n{")
        until(lambda: begun)
        assert api.post(MAPS, config_map("a")).status_code == 201


async def test_nobody_waits_behind_all_writes_of_another_actor():
    order, go = [], threading.Event()

    async def asked(who, what):
        threads.asking.set(who)
        await threads.write(lambda: (go.wait(HANG_S), order.append(what)))

    flood = [asyncio.create_task(asked("a", n)) for n in range(10)]
    await settled()
    other = asyncio.create_task(asked("b", "small"))
    await settled()
    go.set()
    await asyncio.gather(*flood, other)
    assert order.index("small") <= 2
    assert [what for what in order if what != "small"] == list(range(10))


def test_the_threads_work_for_who_asked(api, monkeypatch):
    actors, run = set(), threads.Pool.run
    monkeypatch.setattr(threads.Pool, "run", lambda *given: (actors.add(threads.asking.get()), run(*given))[1])
    api.as_(access.Actor("vera")).get(MAPS)
    assert "vera" in actors


class Waiting:
    """Calls that pile up while the thread is held; `turns` are the items that were done together."""

    def __init__(self):
        self.queue, self.turns, self.go = WriteQueue("test-write"), [], threading.Event()

    def do(self, items, more):
        self.go.wait(HANG_S)
        items = [*items, *(more() if items[0].startswith("long") else ())]
        self.turns.append(items)
        return [Conflict(item) if item.startswith("bad") else item.upper() for item in items]

    def call(self, actor, item, kind="maps", do=None):
        return asyncio.create_task(self.queue.run(actor, Call(do or self.do, item, kind)))

    async def held(self):
        """Hold the thread with a call of its own."""
        first = self.call("nobody", "first", None)
        await settled()
        return first

    async def answers(self, *tasks):
        """Let the thread go; return the outcomes, a conflict as its text."""
        await settled()
        self.go.set()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        return [f"refused {each}" if isinstance(each, Conflict) else each for each in found]


async def settled():
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.fixture
def waiting():
    return Waiting()


@cases("given, turns, outcomes", {
    "by kind": ("a maps x, a pods p, a - alone, b maps bad, b pods q", "x bad|q p|alone", "X P ALONE refused_bad Q"),
    "not behind a flood": ("a - 0, a - 1, a - 2, a - 3, b - b", "0|b|1|2|3", "0 1 2 3 B"),
    "so many at once": ("a maps 0, a maps 1, a maps 2, a maps 3", "0 1 2|3", "0 1 2 3"),
})  # fmt: skip
async def test_what_waits_is_done_together_by_kind_and_each_gets_its_own_outcome(
    waiting, monkeypatch, given, turns, outcomes
):
    monkeypatch.setattr(write_queue, "MAX_TOGETHER", 3)
    calls = [(who, item, None if kind == "-" else kind) for who, kind, item in map(str.split, given.split(", "))]
    _, *found = await waiting.answers(await waiting.held(), *(waiting.call(*each) for each in calls))
    assert "|".join(map(" ".join, waiting.turns)) == f"first|{turns}"
    assert " ".join(each.replace(" ", "_") for each in found) == outcomes


async def test_who_had_to_wait_itself_takes_what_came_meanwhile(waiting):
    first = waiting.call("a", "long")
    await settled()
    late = [waiting.call("b", "x"), waiting.call("c", "p", "pods"), waiting.call("a", "bad")]
    assert await waiting.answers(first, *late) == ["LONG", "X", "P", "refused bad"]
    assert waiting.turns == [["long", "x", "bad"], ["p"]]


async def test_what_nobody_waits_for_any_more_is_not_done(waiting):
    first, gone, remaining = await waiting.held(), waiting.call("a", "gone"), waiting.call("b", "kept")
    also = waiting.call("c", "also gone")
    await settled()
    gone.cancel()
    also.cancel()
    await waiting.answers(first, remaining)
    assert waiting.turns == [["first"], ["kept"]]


async def test_what_the_function_raises_is_raised_for_all_and_the_next_turn_comes(waiting):
    def fail(items, more):
        raise ZeroDivisionError

    broken = [waiting.call("a", n, "broken", fail) for n in range(3)]
    *failed, last = await waiting.answers(*broken, waiting.call("b", "x"))
    assert ([type(each) for each in failed], last) == ([ZeroDivisionError] * 3, "X")


def test_a_loop_that_ended_in_the_middle_leaves_nothing_behind(waiting):
    async def left():
        await waiting.held()
        waiting.call("a", "never done")
        await settled()

    async def main():
        return await waiting.answers(waiting.call("b", "x"))

    asyncio.run(left())
    assert asyncio.run(main()) == ["X"]
    assert waiting.turns == [["first"], ["x"]]


class Line:
    def __init__(self):
        self.reads, self.turns = True, []

    def pause_reading(self):
        self.reads = False

    def resume_reading(self):
        self.reads = True

    def is_closing(self):
        return False

    def call_soon(self, turn):
        self.turns.append(turn)
        return turn


class Taker(slices.Sliced):
    def __init__(self, line):
        self.transport = self.loop = line
        self.taken, self.busy = b"", False

    def take(self, data):
        self.taken += data

    def is_busy(self):
        return self.busy

    def is_paused(self):
        return False


def test_others_have_their_turn_between_two_slices(monkeypatch):
    monkeypatch.setattr(slices, "SLICE_S", -1.0)
    line = Line()
    taker, data, turns = Taker(line), bytes(range(256)) * 40, 0
    taker.data_received(data)
    taker.data_received(b"more")  # which was on its way when reading was paused
    while line.turns:
        assert len(taker.taken) == (turns + 1) * slices.PIECE
        assert not line.reads
        line.turns.pop()()
        turns += 1
    assert (taker.taken, line.reads, turns) == (data + b"more", True, len(data) // slices.PIECE)


def test_what_comes_after_a_request_waits_for_its_answer():
    line = Line()
    taker = Taker(line)
    taker.busy = True
    taker.data_received(b"a")
    assert (taker.taken, line.turns, line.reads) == (b"", [], False)
    taker.busy = False
    taker.go_on()
    assert (taker.taken, line.reads) == (b"a", True)


def test_requests_that_do_not_wait_are_answered_in_turn(api, monkeypatch):
    waiting, take, many = [], Connection.take, 2000
    monkeypatch.setattr(Connection, "take", lambda it, data: (take(it, data), waiting.append(len(it.pipeline)))[0])
    host, port = api.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=HANG_S) as peer:
        peer.sendall(b"GET /version HTTP/1.1\r\nhost: a\r\n\r\n" * many)
        got = b""
        while got.count(b"HTTP/1.1 200") < many:
            piece = peer.recv(1 << 16)
            assert piece
            got += piece
    assert max(waiting) < 2 * slices.PIECE // 30


@pytest.fixture
def watch(api):
    """Connect to a watch by WebSocket, with more behind its path, by default as who may."""
    address = f"{api.url.replace('http', 'ws')}{MAPS}?watch=1"
    actor = {"x-actor": api.http.headers["x-actor"]}
    return lambda more="", headers=actor: connect(address + more, additional_headers=headers, open_timeout=HANG_S)


def test_fragments_without_content_are_not_collected(watch, monkeypatch):
    collected, protocol = [], slices.WebSocketsSansIOProtocol
    handle = protocol.handle_cont
    monkeypatch.setattr(protocol, "handle_cont", lambda it, frame: (collected.append(frame.data), handle(it, frame)))
    with watch() as opened:
        opened.send([b"a", *[b""] * 1000, b"b"])
        assert opened.ping().wait(HANG_S)
    assert collected == [b"b", b""]


def test_a_query_is_not_logged(watch, api, caplog):
    caplog.set_level(logging.INFO)
    with watch("&token=hush") as opened:
        assert opened.ping().wait(HANG_S)
    with pytest.raises(InvalidStatus):
        watch("&token=hush", headers={})
    assert httpx.get(f"{api.url}{MAPS}?token=hush", timeout=HANG_S).status_code == 401
    messages = [record.getMessage() for record in caplog.records if record.name in ("uvicorn.error", "cluster")]
    assert not [text for text in messages if "hush" in text]


def test_messages_that_nobody_takes_are_left_with_the_client(watch, monkeypatch):
    sizes, take = [], slices.Socket.take
    monkeypatch.setattr(slices.Socket, "take", lambda it, data: (take(it, data), sizes.append(it.queue.qsize()))[0])

    async def never(protocol):
        await asyncio.sleep(3600)

    with watch() as opened:
        monkeypatch.setattr(slices.Socket, "receive", never)
        for _ in range(10):
            opened.socket.sendall(b"\x82\x80\0\0\0\0" * 10_000)
        until(lambda: sizes and sizes[-1] >= slices.MAX_MESSAGES)
        opened.socket.close()
    assert max(sizes) < slices.MAX_MESSAGES + slices.PIECE // 6 + 1
