"""Nobody keeps the event loop for himself, however much he sends at once."""

from __future__ import annotations

import asyncio
import contextlib
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
        self.reads = True
        self.turns = []

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
        self.taken = b""
        self.busy = False

    def take(self, data):
        self.taken += data

    def is_busy(self):
        return self.busy

    def is_paused(self):
        return False


def test_others_have_their_turn_between_two_slices(monkeypatch):
    monkeypatch.setattr(slices, "SLICE_S", -1.0)
    line = Line()
    taker = Taker(line)
    data = bytes(range(256)) * 40
    taker.data_received(data)
    taker.data_received(b"more")  # which was on its way when reading was paused
    turns = 0
    while line.turns:
        assert len(taker.taken) == (turns + 1) * slices.PIECE
        assert not line.reads
        line.turns.pop()()
        turns += 1
    assert taker.taken == data + b"more"
    assert line.reads
    assert turns == len(data) // slices.PIECE


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
    waiting = []
    take = Connection.take

    def noted(connection, data):
        take(connection, data)
        waiting.append(len(connection.pipeline))

    monkeypatch.setattr(Connection, "take", noted)
    host, port = api.url.removeprefix("http://").split(":")
    many = 2000
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
    """Connect to a watch by WebSocket, with more behind its path."""

    def connected(more="", headers=()):
        address = f"{api.url.replace('http', 'ws')}{MAPS}?watch=1{more}"
        actor = {"x-actor": api.http.headers["x-actor"]}
        return connect(address, additional_headers={**actor, **dict(headers)}, open_timeout=HANG_S)

    return connected


def test_fragments_without_content_are_not_collected(watch, monkeypatch):
    collected = []
    handle = slices.WebSocketsSansIOProtocol.handle_cont
    monkeypatch.setattr(
        slices.WebSocketsSansIOProtocol,
        "handle_cont",
        lambda protocol, frame: (collected.append(frame.data), handle(protocol, frame)),
    )
    with watch() as opened:
        opened.send([b"a", *[b""] * 1000, b"b"])
        assert opened.ping().wait(HANG_S)
    assert collected == [b"b", b""]


def test_a_query_is_not_logged(watch, api, caplog):
    caplog.set_level(logging.INFO)
    with watch("&token=hush") as opened:
        assert opened.ping().wait(HANG_S)
    with (
        contextlib.suppress(InvalidStatus),
        connect(f"{api.url.replace('http', 'ws')}{MAPS}?watch=1&token=hush", open_timeout=HANG_S),
    ):
        pass
    assert httpx.get(f"{api.url}{MAPS}?token=hush", timeout=HANG_S).status_code == 401
    said = [record.getMessage() for record in caplog.records if record.name in ("uvicorn.error", "cluster")]
    assert not [text for text in said if "hush" in text]


def test_messages_that_nobody_takes_are_left_with_the_client(watch, monkeypatch):
    sizes = []
    take = slices.Socket.take

    def noted(protocol, data):
        take(protocol, data)
        sizes.append(protocol.queue.qsize())

    async def never(protocol):
        await asyncio.sleep(3600)

    monkeypatch.setattr(slices.Socket, "take", noted)
    with watch() as opened:
        monkeypatch.setattr(slices.Socket, "receive", never)
        for _ in range(10):
            opened.socket.sendall(b"\x82\x80\0\0\0\0" * 10_000)
        until(lambda: sizes and sizes[-1] >= slices.MOST_MESSAGES)
        opened.socket.close()
    assert max(sizes) < slices.MOST_MESSAGES + slices.PIECE // 6 + 1
