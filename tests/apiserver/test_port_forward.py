"""Ports of a pod over an upgraded connection: a real node makes the connections, and a program behind them answers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import struct
import threading
from pathlib import Path

import pytest
import websocket
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from apiserver.streams import forward, node_connection, port_forward, spdy, spdy_forward
from apiserver.streams.spdy import Kind
from cluster import access
from cluster.access import SYSTEM
from cluster.models import AuditEntry
from node.shim import tree
from proof.escapes.attempts import deaf
from proof.harness.waiting import HANG_S, until
from tests.apiserver.client import Api
from tests.apiserver.test_execs import main_of, running, shim_of  # noqa: F401  a node with a pod p that runs
from tests.tables import cases

TUNNEL, V4 = spdy_forward.TUNNEL, "v4.channel.k8s.io"
MEGABYTE = 1 << 20


class Program:
    """A program at a port, as of a pod: it returns what it reads in capitals, and at the end says how much that was."""

    def __init__(self):
        self.listener = socket.create_server(("", 0))
        self.port = self.listener.getsockname()[1]
        self.ended = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._answer, args=(self.listener.accept()[0],), daemon=True).start()

    def _answer(self, connected):
        count = 0
        with connected, contextlib.suppress(OSError):
            while data := connected.recv(1 << 16):
                count += len(data)
                connected.sendall(data.upper())
            connected.sendall(b"|%d" % count)
        self.ended += 1

    def close(self):
        self.listener.close()


@pytest.fixture
def program():
    one = Program()
    yield one
    one.close()


@pytest.fixture
def free_port():
    """A port at which nobody listens, nor begins to."""
    with socket.socket() as bound:
        bound.bind(("", 0))
        yield bound.getsockname()[1]


class Spdy:
    """A client that forwards ports by SPDY, as kubectl does it, which does not count windows."""

    def __init__(self, connected):
        self.websocket = connected
        self.writer = spdy.Writer()
        self.last = -1
        self.received, self.ended, self.frames = {}, set(), []
        self.code, self.reason = 0, ""

    def send(self, frame):
        self.websocket.send_binary(frame)

    def stream(self, part, port, request, /, **named):
        self.last += 2
        headers = {"streamtype": part, "port": str(port), "requestid": str(request), **named}
        body = struct.pack(">IIBB", self.last, 0, 0, 0) + self.writer.block(headers)
        self.send(spdy.control(Kind.SYN_STREAM, body))
        self.received[self.last] = b""
        return self.last

    def pair(self, port, request=0):
        """Open a connection; return the streams for errors and for data."""
        error = self.stream("error", port, request)
        self.send(spdy.data(error, b"", fin=True))
        return error, self.stream("data", port, request)

    def read(self):
        """Take a message, of which this server makes one for each frame; the reason of its last word where that is one."""
        operation, message = self.websocket.recv_data()
        if operation == websocket.ABNF.OPCODE_CLOSE:
            self.code, self.reason = struct.unpack_from(">H", message)[0], message[2:].decode()
            return
        first, second = struct.unpack_from(">II", message)
        if first >> 31:
            self.frames.append((Kind(first & 0xFFFF), message[8:]))
            return
        self.received[first] += message[8:]
        if second >> 24:
            self.ended.add(first)

    def until(self, condition):
        while not condition():
            self.read()

    def until_frame(self, kind):
        self.until(lambda: kind in [each for each, _ in self.frames])
        return next(body for each, body in self.frames if each == kind)

    def until_closed(self):
        self.until(lambda: self.code)
        return self.code, self.reason

    def whole(self, stream):
        """Return all that came on a stream, to its end."""
        self.until(lambda: stream in self.ended)
        return self.received[stream]


class Door:
    """Opens connections to the pod of one node."""

    def __init__(self, url, node):
        self.url, self.node = url, node
        self.open = contextlib.ExitStack()

    def address(self, actor, query="", pod="p"):
        Api(self.url).as_(actor)
        return f"{self.url.replace('http', 'ws')}/api/v1/namespaces/d/pods/{pod}/portforward{query}"

    def channels(self, query, protocol=V4, actor=SYSTEM, **place):
        """Forward ports by channels, as clients in Python do."""
        address = self.address(actor, query, **place)
        options = {"subprotocols": [protocol] if protocol else None, "max_size": None, "compression": None}
        options |= {"additional_headers": {"x-actor": actor.name}, "legacy": True, "open_timeout": HANG_S}
        found = self.node.during(lambda: connect(address, **options))
        self.open.callback(found.close)
        return found

    def spdy(self, actor=SYSTEM, **place):
        """Forward ports by SPDY. kubectl's subprotocol is no token, so the other library refuses to ask for it."""
        options = {"subprotocols": [TUNNEL], "header": {"x-actor": actor.name}, "timeout": HANG_S}
        address = self.address(actor, **place)
        found = self.node.during(lambda: websocket.create_connection(address, **options))
        self.open.callback(found.shutdown)
        return Spdy(found)


@pytest.fixture
def door(running, node, server):  # noqa: F811
    running()
    one = Door(server, node)
    yield one
    one.open.close()


def during(door, work, *arguments):
    """Do something while the agent does its part."""
    return door.node.during(work, *arguments)


def refusal(door, query="?ports=80", **options):
    with pytest.raises(InvalidStatus) as refused:
        door.channels(query, **options)
    return refused.value.response.status_code, json.loads(refused.value.response.body)["message"]


def test_bytes_go_both_ways_and_the_end_of_one_does_not_end_the_other(door, program):
    client = door.spdy()
    error, data = client.pair(program.port)
    client.send(spdy.data(data, b"abc"))
    during(door, client.until, lambda: client.received[data] == b"ABC")
    client.send(spdy.data(data, b"de", fin=True))
    assert client.whole(data) == b"ABCDE|5"
    assert client.whole(error) == b""


def test_frames_are_put_together_and_pings_are_answered(door, program):
    client = door.spdy()
    _, data = client.pair(program.port)
    for byte in spdy.ping(7) + spdy.data(data, b"x", fin=True) + spdy.ping(8):
        client.send(bytes([byte]))
    assert during(door, client.until_frame, Kind.PING) == struct.pack(">I", 7)
    assert during(door, client.whole, data) == b"X|1"
    assert len([kind for kind, _ in client.frames if kind == Kind.PING]) == 1, "8 would be an answer"


def test_a_client_that_resets_its_data_hears_the_end_of_the_errors(door, program):
    """kubectl does so when a program on its side has gone, and waits."""
    client = door.spdy()
    error, data = client.pair(program.port)
    client.send(spdy.data(data, b"a"))
    during(door, client.until, lambda: client.received[data] == b"A")
    client.send(spdy.reset(data, 5))
    assert client.whole(error) == b""
    until(lambda: program.ended == 1)


def test_many_connections_at_a_time_do_not_mix(door, program):
    client = door.spdy()
    pairs = [client.pair(program.port, number) for number in range(20)]
    for number, (_, data) in enumerate(pairs):
        client.send(spdy.data(data, b"%d," % number * 1000))
    for number, (error, data) in enumerate(pairs):
        client.send(spdy.data(data, b"", fin=True))
        sent = b"%d," % number * 1000
        assert during(door, client.whole, data) == sent + b"|%d" % len(sent)
        assert during(door, client.whole, error) == b""


def test_what_nobody_listens_at_is_said_and_the_others_go_on(door, program, free_port):
    client = door.spdy()
    error, data = client.pair(free_port, "none")
    said = during(door, client.whole, error).decode()
    assert said.startswith(
        f"error forwarding port {free_port} to pod p: connection refused: no program of the pod listens at this port of 127."
    )
    assert client.whole(data) == b""
    _, data = client.pair(program.port, "some")
    client.send(spdy.data(data, b"", fin=True))
    assert during(door, client.whole, data) == b"|0"


def test_a_pod_that_does_not_take_the_connection_is_given_up(door, monkeypatch):
    monkeypatch.setattr("apiserver.streams.node_connection.CONNECT_S", 0.2)
    client = door.spdy()
    with deaf() as port:
        error, _ = client.pair(port)
        assert b"no answer in time" in during(door, client.whole, error)


@cases("named", {
    "no port": {"port": "0"},
    "a port that cannot be": {"port": "65536"},
    "a port by name": {"port": "http"},
    "another kind of stream": {"streamtype": "stdin"},
    "no connection": {"requestid": ""},
})  # fmt: skip
def test_a_stream_that_is_none_is_reset_alone(door, program, named):
    client = door.spdy()
    stream = client.stream("data", program.port, 0, **named)
    assert during(door, client.until_frame, Kind.RST_STREAM) == struct.pack(">II", stream, spdy.PROTOCOL_ERROR)
    _, data = client.pair(program.port, 1)
    client.send(spdy.data(data, b"", fin=True))
    assert during(door, client.whole, data) == b"|0"


def test_streams_of_one_connection_belong_together(door, program, free_port):
    client = door.spdy()
    client.stream("error", program.port, 0)
    for stream in (client.stream("error", program.port, 0), client.stream("data", free_port, 0)):
        during(door, client.until, lambda: client.frames and client.frames[-1][0] == Kind.RST_STREAM)
        assert client.frames.pop()[1] == struct.pack(">II", stream, spdy.PROTOCOL_ERROR)


def test_data_without_a_connection_is_not_kept(door, program):
    client = door.spdy()
    data = client.stream("data", program.port, 0)
    client.send(spdy.data(data, b"early"))
    assert during(door, client.until_frame, Kind.RST_STREAM) == struct.pack(">II", data, spdy.PROTOCOL_ERROR)


def test_a_client_has_so_many_streams(door, program, monkeypatch):
    monkeypatch.setattr(spdy_forward, "MOST_STREAMS", 2)
    client = door.spdy()
    client.pair(program.port, 0)
    error, _ = client.pair(program.port, 1)
    assert during(door, client.until_frame, Kind.RST_STREAM) == struct.pack(">II", error, spdy.REFUSED_STREAM)


def test_a_client_that_breaks_the_protocol_is_told(door):
    client = door.spdy()
    client.send(b"GET / HTTP/1.1")
    code, reason = during(door, client.until_closed)
    assert (code, reason) == (1002, "A frame of 2115668 bytes is too long.")
    assert [kind for kind, _ in client.frames] == [Kind.GOAWAY]


def test_a_client_that_counts_windows_gets_no_more_than_it_grants(door, program):
    client = door.spdy()
    client.send(spdy.control(Kind.SETTINGS, struct.pack(">III", 1, 7, 1000)))
    pairs = [client.pair(program.port, number) for number in range(2)]
    for _, data in pairs:
        client.send(spdy.data(data, b"x" * 5000, fin=True))
    streams = [data for _, data in pairs]
    during(door, client.until, lambda: all(len(client.received[each]) == 1000 for each in streams))
    client.send(spdy.window_update(streams[1], 10_000))  # the slow one holds up itself only
    assert during(door, client.whole, streams[1]) == b"X" * 5000 + b"|5000"
    assert len(client.received[streams[0]]) == 1000
    client.send(spdy.control(Kind.SETTINGS, struct.pack(">III", 1, 7, 3000)))
    during(door, client.until, lambda: len(client.received[streams[0]]) == 3000)


def test_what_the_pod_has_taken_is_granted_anew(door, program):
    client = door.spdy()
    _, data = client.pair(program.port)
    client.send(spdy.data(data, b"x" * spdy.WINDOW))
    grants = {}

    def both():
        grants.update(struct.unpack(">II", body) for kind, body in client.frames if kind == Kind.WINDOW_UPDATE)
        return grants == {0: spdy.WINDOW, data: spdy.WINDOW}

    during(door, client.until, both)


def test_megabytes_go_both_ways(door, program):
    client, count = door.spdy(), 20 * MEGABYTE
    _, data = client.pair(program.port)

    def write():
        for _ in range(count // (32 * 1024)):
            client.send(spdy.data(data, b"x" * 32 * 1024))
        client.send(spdy.data(data, b"", fin=True))

    writer = threading.Thread(target=write)
    writer.start()
    received = during(door, client.whole, data)
    writer.join()
    assert received == b"X" * count + b"|%d" % count


@pytest.mark.parametrize("protocol", [V4, "portforward.k8s.io", ""])
def test_channels_begin_with_their_port(door, program, free_port, protocol):
    found = door.channels(f"?ports={program.port},{free_port}", protocol)
    received = dict.fromkeys(range(4), b"")

    def read_until(condition):
        while not condition():
            message = found.recv(timeout=HANG_S)
            received[message[0]] += message[1:]

    during(door, read_until, lambda: len(received[3]) > 2)
    ports = [port.to_bytes(2, "little") for port in (program.port, free_port)]
    assert b"no program of the pod listens at this port of 127." in received[3]
    found.send(b"\x00abc")
    during(door, read_until, lambda: received[0][2:] == b"ABC")
    assert [received[number][:2] for number in range(4)] == [ports[0], ports[0], ports[1], ports[1]]
    assert received[1][2:] == b""


def test_channels_end_when_all_connections_have(door, free_port):
    found = door.channels(f"?ports={free_port}")
    with pytest.raises(ConnectionClosed) as closed:
        during(door, lambda: [found.recv(timeout=HANG_S) for _ in range(4)])
    assert closed.value.rcvd.code == 1000


def test_channels_end_when_the_pod_has_said_all(door):
    """Nothing in the protocol says that one way has ended, and clients in Python wait for the end of the connection."""
    with socket.create_server(("", 0)) as program:
        found = door.channels(f"?ports={program.getsockname()[1]}")
        connected, _ = during(door, program.accept)
        connected.sendall(b"all")
        connected.close()
        messages = list(found)
    assert messages[2:] == [b"\x00all"]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "at least 1 port"),
        ("?ports=", '"" is no port'),
        ("?ports=http", '"http" is no port'),
        ("?ports=80&ports=65536", '"65536" is no port'),
        ("?ports=" + ",".join(["80"] * 101), "101 ports are too many"),
    ],
)
def test_ports_that_are_none_are_refused(door, query, message):
    code, said = refusal(door, query)
    assert (code, message in said) == (400, True)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_request_without_an_upgrade_is_refused_with_a_remedy(door, method):
    headers = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1"} if method == "POST" else {}
    answer = Api(door.url).request(method, "/api/v1/namespaces/d/pods/p/portforward", headers=headers)
    assert (answer.status_code, "use kubectl 1.31 or later" in answer.json()["message"]) == (400, True)


def test_a_protocol_that_is_not_served_is_refused(door):
    assert refusal(door, protocol="v5.channel.k8s.io") == (
        400,
        f"unable to upgrade: none of the subprotocols is served; these are: {TUNNEL}, {V4}, portforward.k8s.io",
    )


def test_a_pod_that_does_not_run_is_refused(door, node):
    os.kill(main_of(node), 9)
    node.until_phase("Failed")
    assert refusal(door) == (400, "pod p is not running. Current status=Failed")
    assert refusal(door, pod="nosuch")[0] == 404


def test_whoever_may_not_is_refused(door):
    code, message = refusal(door, actor=access.Actor("nobody", ("system:authenticated",)))
    assert (code, "portforward" in message) == (403, True)


def test_the_audit_has_the_ports_that_were_named(door, program):
    door.channels(f"?ports={program.port}")
    row = AuditEntry.objects.get(resource="pods/portforward")
    assert (row.verb, row.namespace, row.name, row.message) == ("create", "d", "p", f"ports {program.port}")


def test_one_actor_cannot_take_all_the_room(door, program, monkeypatch):
    monkeypatch.setattr(forward, "MOST_OF_ONE", 1)
    client = door.spdy()
    _, data = client.pair(program.port, 0)
    client.send(spdy.data(data, b"a"))
    during(door, client.until, lambda: client.received[data] == b"A")
    error, _ = client.pair(program.port, 1)
    assert b"Too many connections to ports" in during(door, client.whole, error)
    monkeypatch.setattr(port_forward, "MOST_OF_ONE", 1)
    assert refusal(door)[0] == 429
    other = door.spdy(actor=access.Actor("somebody else", (access.MASTERS,)))
    _, data = other.pair(program.port, 0)
    other.send(spdy.data(data, b"", fin=True))
    assert during(door, other.whole, data) == b"|0"


def test_a_client_that_leaves_leaves_nothing_behind(door, node, program):
    def left():
        """Return what is open: sockets here, processes and sockets of the shim."""
        shim = shim_of(node)
        return sockets("self"), sockets(shim), len(tree.below(shim))

    door.spdy().websocket.shutdown()  # what is made once is made
    until(lambda: port_forward._open.total() == 0)
    before = left()
    with deaf() as port:
        client = door.spdy()
        for number in range(3):
            _, data = client.pair(program.port, number)
            client.send(spdy.data(data, b"a"))
            during(door, client.until, lambda data=data: client.received[data] == b"A")
        client.pair(port, "waits")
        door.node.until(lambda: len(tree.below(shim_of(node))) > before[2])
        client.websocket.shutdown()
        until(lambda: port_forward._open.total() + forward._open.total() == 0)
    until(lambda: program.ended == 3)
    until(lambda: left() <= before)


def sockets(pid):
    """Return how many sockets a process holds."""
    count = 0
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            count += str(link.readlink()).startswith("socket:")
    return count


def test_who_leaves_while_the_node_is_asked_leaves_nothing_open():
    goes_on, closed = threading.Event(), threading.Event()

    class Begun:
        def close(self):
            closed.set()

    def start():
        assert goes_on.wait(HANG_S)
        return Begun()

    async def leave():
        beginning = asyncio.ensure_future(node_connection.begin(start))
        await asyncio.sleep(0)
        beginning.cancel()
        await asyncio.gather(beginning, return_exceptions=True)
        goes_on.set()
        await asyncio.to_thread(closed.wait, HANG_S)

    asyncio.run(leave())
    assert closed.is_set()
