"""Peers that vanish without a word, and peers that only do not read for a while."""

from __future__ import annotations

import ipaddress
import os
import shutil
import socket
import subprocess
import sys

import pytest

from apiserver.watch import connection
from apiserver.watch.connection import KEEPALIVE
from tests.apiserver.watch.test_bounds import UPGRADE, make_large, stuck
from tests.apiserver.watch.world import Client, make, serving, until

pytestmark = pytest.mark.django_db(transaction=True)
# Of the addresses that are kept for tests of networks, four that no run beside this one has.
NETWORK = int(ipaddress.ip_address("198.18.0.0")) + os.getpid() % 2**15 * 4
HERE, THERE = (str(ipaddress.ip_address(NETWORK + number)) for number in (1, 2))
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
def elsewhere():
    """The name of a network namespace that is linked to this one."""
    name = f"volcano-{os.getpid()}"
    done = shutil.which("ip") and subprocess.run(
        ["ip", "netns", "add", name], check=False, capture_output=True
    )
    if not done or done.returncode:
        pytest.skip("it takes the right to make network namespaces")
    ours = f"v{os.getpid()}"
    try:
        _ip("link", "add", ours, "type", "veth", "peer", "name", "there", "netns", name)
        _ip("addr", "add", f"{HERE}/30", "dev", ours)
        _ip("link", "set", ours, "up")
        _ip("-n", name, "addr", "add", f"{THERE}/30", "dev", "there")
        _ip("-n", name, "link", "set", "there", "up")
        yield name
    finally:
        subprocess.run(["ip", "link", "delete", ours], check=False, capture_output=True)
        _ip("netns", "delete", name)


def _ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.mark.parametrize("headers", ["", UPGRADE], ids=["http", "websocket"])
async def test_peer_that_vanished_is_noticed_while_something_is_sent_to_it(
    redis, elsewhere, keeper, monkeypatch, headers
):
    monkeypatch.setattr(connection, "LOOK_S", 0.1)
    monkeypatch.setattr(connection, "SILENT_MS", 500)
    async with serving(HERE) as port:
        command = [
            "ip",
            "netns",
            "exec",
            elsewhere,
            sys.executable,
            "-c",
            CLIENT,
            HERE,
            str(port),
            WATCH,
            headers,
        ]
        client = subprocess.Popen(command)
        try:
            await until(lambda: keeper.streams, "the watch")
            _ip("-n", elsewhere, "route", "add", "blackhole", HERE)
            await make("a")
            await until(lambda: not keeper.streams, "its end")
        finally:
            client.kill()
            client.wait()


async def test_peer_that_does_not_read_has_not_vanished(port, keeper, monkeypatch):
    looks = []

    def look(raw):
        looks.append(whole(raw))
        return looks[-1]

    whole = connection.has_vanished
    monkeypatch.setattr(connection, "has_vanished", look)
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
    options = []

    def look(raw):
        asked = [raw.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)]
        options.append(
            asked + [raw.getsockopt(socket.IPPROTO_TCP, getattr(socket, name)) for name, _ in KEEPALIVE]
        )
        return False

    monkeypatch.setattr(connection, "has_vanished", look)
    monkeypatch.setattr(connection, "LOOK_S", 0.05)
    async with Client(port, "/api/v1/pods"):
        await until(lambda: options, "a look")
    assert options[0] == [1, *(value for _, value in KEEPALIVE)]
