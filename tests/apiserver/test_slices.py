"""Nobody keeps the event loop for himself, however much he sends at once."""

from __future__ import annotations

import asyncio
import logging
import socket

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from apiserver.http import slices
from apiserver.watch.connection import Connection
from proof.harness.waiting import HANG_S, until

MAPS = "/api/v1/namespaces/default/configmaps"


class Line:
    """A transport and a loop whose turns the test takes."""

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
    said = [record.getMessage() for record in caplog.records if record.name in ("uvicorn.error", "cluster")]
    assert not [text for text in said if "hush" in text]


def test_messages_that_nobody_takes_are_left_with_the_client(watch, monkeypatch):
    sizes, take = [], slices.Socket.take
    monkeypatch.setattr(slices.Socket, "take", lambda it, data: (take(it, data), sizes.append(it.queue.qsize()))[0])

    async def never(protocol):
        await asyncio.sleep(3600)

    with watch() as opened:
        monkeypatch.setattr(slices.Socket, "receive", never)
        for _ in range(10):
            opened.socket.sendall(b"\x82\x80\0\0\0\0" * 10_000)
        until(lambda: sizes and sizes[-1] >= slices.MOST_MESSAGES)
        opened.socket.close()
    assert max(sizes) < slices.MOST_MESSAGES + slices.PIECE // 6 + 1
