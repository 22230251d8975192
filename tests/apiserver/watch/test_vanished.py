"""Peers that vanish without a word, and peers that only do not read for a while."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from apiserver.watch import connection
from apiserver.watch.connection import KEEPALIVE
from node.shim import linux
from tests.apiserver.watch.test_bounds import UPGRADE, make_large, stuck
from tests.apiserver.watch.world import Client, make, serving, until
from tests.tables import cases
from volcano_ui.web import listen

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
    asked = [
        (socket.SOL_SOCKET, socket.SO_KEEPALIVE),
        *((socket.IPPROTO_TCP, getattr(socket, name)) for name, _ in KEEPALIVE),
    ]
    options = []
    monkeypatch.setattr(
        connection, "has_vanished", lambda raw: options.append([raw.getsockopt(*each) for each in asked])
    )
    monkeypatch.setattr(connection, "LOOK_S", 0.05)
    async with Client(port, "/api/v1/pods"):
        await until(lambda: options, "a look")
    assert options[0] == [1, *(value for _, value in KEEPALIVE)]
