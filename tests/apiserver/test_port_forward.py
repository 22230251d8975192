"""Ports of a pod over an upgraded connection: a real node makes the connections, and a program behind them answers."""

import asyncio
import contextlib
import os
import socket
import socketserver
import struct
import threading
from collections import Counter
from types import SimpleNamespace

import pytest
import websocket
from websockets.exceptions import ConnectionClosed

from apiserver.streams import forward, node_connection, port_forward, spdy, spdy_forward
from apiserver.streams.spdy import Kind
from cluster import access
from cluster.access import SYSTEM
from cluster.models import AuditEntry
from node.port_client import AnswerLine
from node.shim import tree
from proof.escapes.attempts import deaf
from proof.harness.waiting import HANG_S, until
from tests.apiserver import test_execs as execs
from tests.apiserver.test_execs import NOBODY, descriptors, main_of, running, shim_of, way  # noqa: F401  fixtures

TUNNEL, V4 = spdy_forward.TUNNEL, "v4.channel.k8s.io"


class Program(socketserver.ThreadingTCPServer):
    """A program at a port, as of a pod: it returns what it reads in capitals, and at the end says how much that was."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("", 0), None)
        self.port, self.ended = self.server_address[1], 0

    def finish_request(self, request, address):
        count = 0
        with contextlib.suppress(OSError):
            while data := request.recv(1 << 16):
                count += len(data)
                request.sendall(data.upper())
            request.sendall(b"|%d" % count)
        self.ended += 1


@pytest.fixture
def program():
    with Program() as one:
        threading.Thread(target=one.serve_forever, args=(0.01,), daemon=True).start()
        yield one
        one.shutdown()


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

    def whole(self, stream):
        self.until(lambda: stream in self.ended)
        return self.received[stream]


class Door(execs.Door):
    def channels(self, query="?ports=80", protocol=V4, actor=SYSTEM, pod="p"):
        """Forward ports by channels, as clients in Python do."""
        return self.upgrade(f"{pod}/portforward{query}", protocol, actor)

    def refusal(self, *arguments, **options):
        return execs.refusal(self.channels, *arguments, **options)

    def spdy(self, actor=SYSTEM):
        """Forward ports by SPDY. kubectl's subprotocol is no token, so the other library refuses to ask for it."""
        self.api.as_(actor)
        options = {"subprotocols": [TUNNEL], "header": {"x-actor": actor.name}, "timeout": HANG_S}
        address = f"{self.url}/api/v1/namespaces/d/pods/p/portforward"
        found = self.node.during(lambda: websocket.create_connection(address, **options))
        self.opened.callback(found.shutdown)
        return Spdy(found)

    def during(self, work, *arguments):
        return self.node.during(work, *arguments)

    def reaches(self, client, program, request):
        """Forward one connection more, which has nothing to say, and hear its end."""
        _, data = client.pair(program.port, request)
        client.send(spdy.data(data, b"", fin=True))
        return self.during(client.whole, data) == b"|0"


@pytest.fixture
def door(running, node, server):  # noqa: F811
    running()
    one = Door(server, node)
    yield one
    one.close()


def test_many_connections_at_a_time_do_not_mix_and_end_one_way_at_a_time(door, program):
    client = door.spdy()
    error, data = client.pair(program.port, "reset")
    client.send(spdy.data(data, b"a"))
    door.during(client.until, lambda: client.received[data] == b"A")
    client.send(
        spdy.reset(data, 5)
    )  # as kubectl does when a program on its side has gone, and waits for the end of the errors
    assert client.whole(error) == b""
    until(lambda: program.ended == 1)
    pairs = [client.pair(program.port, number) for number in range(20)]
    for number, (_, data) in enumerate(pairs):
        client.send(spdy.data(data, b"%d," % number * 1000))
    for number, (error, data) in enumerate(pairs):
        sent = b"%d," % number * 1000
        door.during(client.until, lambda d=data, e=error, sent=sent: client.received[d] == sent or client.received[e])
        assert client.received[error] == b""
        client.send(spdy.data(data, b"", fin=True))
        assert door.during(client.whole, data) == sent + b"|%d" % len(sent)
        assert door.during(client.whole, error) == b""


def test_a_connection_that_is_not_taken_is_told_and_others_go_on(door, program, free_port, monkeypatch):
    client = door.spdy()
    error, data = client.pair(free_port, "none")
    message = (
        f"error forwarding port {free_port} to pod p: connection refused: no program of the pod listens at this port"
    )
    assert door.during(client.whole, error).decode().startswith(f"{message} of 127.")
    assert client.whole(data) == b""
    monkeypatch.setattr(node_connection, "CONNECT_S", 0.2)
    with deaf() as port:
        error, _ = client.pair(port, "deaf")
        assert b"no answer in time" in door.during(client.whole, error)
    monkeypatch.undo()
    assert door.reaches(client, program, "some")


def test_a_stream_that_is_none_is_reset_alone(door, program, free_port, monkeypatch):
    client = door.spdy()

    def answered(stream, reason=spdy.PROTOCOL_ERROR):
        body = door.during(client.until_frame, Kind.RST_STREAM)
        client.frames.clear()
        return body == struct.pack(">II", stream, reason)

    for named in ({"port": "0"}, {"port": "65536"}, {"port": "http"}, {"streamtype": "stdin"}, {"requestid": ""}):
        assert answered(client.stream("data", program.port, 0, **named)), named
    client.stream("error", program.port, 1)
    assert answered(client.stream("error", program.port, 1)), "a connection has one of each"
    assert answered(client.stream("data", free_port, 1)), "a connection has one port"
    data = client.stream("data", program.port, 2)
    client.send(spdy.data(data, b"early"))
    assert answered(data), "data without a connection is not kept"
    assert door.reaches(client, program, 3)
    monkeypatch.setattr(spdy_forward, "MAX_STREAMS", 2)
    client = door.spdy()
    client.pair(program.port, 0)
    error, _ = client.pair(program.port, 1)
    assert answered(error, spdy.REFUSED_STREAM)
    client.send(b"GET / HTTP/1.1")
    door.during(client.until, lambda: client.code)
    assert (client.code, client.reason) == (1002, "A frame of 2115668 bytes is too long.")
    assert client.frames[-1][0] == Kind.GOAWAY


def test_a_client_that_counts_windows_gets_no_more_than_it_grants_and_pings_are_answered(door, program):
    client = door.spdy()
    for byte in spdy.ping(7) + spdy.ping(8):  # the second would be an answer
        client.send(bytes([byte]))
    client.send(spdy.control(Kind.SETTINGS, struct.pack(">III", 1, 7, 1000)))
    slow, quick = (client.pair(program.port, number)[1] for number in range(2))
    for data in (slow, quick):
        client.send(spdy.data(data, b"x" * 5000, fin=True))
    door.during(client.until, lambda: all(len(client.received[each]) == 1000 for each in (slow, quick)))
    client.send(spdy.window_update(quick, 10_000))  # the slow one holds up itself only
    assert door.during(client.whole, quick) == b"X" * 5000 + b"|5000"
    assert len(client.received[slow]) == 1000
    assert [body for kind, body in client.frames if kind == Kind.PING] == [struct.pack(">I", 7)]
    client.send(spdy.control(Kind.SETTINGS, struct.pack(">III", 1, 7, 3000)))
    door.during(client.until, lambda: len(client.received[slow]) == 3000)


def test_megabytes_go_both_ways_and_what_the_pod_has_taken_is_granted_anew(door, program):
    client, count = door.spdy(), 6 << 20
    _, data = client.pair(program.port)

    def write():
        for _ in range(count // (32 * 1024)):
            client.send(spdy.data(data, b"x" * 32 * 1024))
        client.send(spdy.data(data, b"", fin=True))

    writer = threading.Thread(target=write)
    writer.start()
    received = door.during(client.whole, data)
    writer.join()
    assert received == b"X" * count + b"|%d" % count
    granted = Counter()
    for stream, size in (struct.unpack(">II", body) for kind, body in client.frames if kind == Kind.WINDOW_UPDATE):
        granted[stream] += size
    assert all(count - spdy.WINDOW < granted[stream] <= count for stream in (0, data)), granted


@pytest.mark.parametrize("protocol", [V4, "portforward.k8s.io", ""])
def test_channels_begin_with_their_port(door, program, free_port, protocol):
    found = door.channels(f"?ports={program.port},{free_port}", protocol)
    received = dict.fromkeys(range(4), b"")

    def read_until(condition):
        while not condition():
            message = found.recv(timeout=HANG_S)
            received[message[0]] += message[1:]

    door.during(read_until, lambda: len(received[3]) > 2)
    taken, free = (port.to_bytes(2, "little") for port in (program.port, free_port))
    assert b"no program of the pod listens at this port of 127." in received[3]
    found.send(b"\x00abc")
    door.during(read_until, lambda: received[0][2:] == b"ABC")
    assert [received[number][:2] for number in range(4)] == [taken, taken, free, free]
    assert received[1][2:] == b""
    row, expected = AuditEntry.objects.get(resource="pods/portforward"), f"ports {program.port}, {free_port}"
    assert (row.verb, row.namespace, row.name, row.message) == ("create", "d", "p", expected)


def test_channels_end_when_all_connections_have_or_the_pod_has_said_all(door, free_port):
    """Nothing in the protocol says that one way has ended, and clients in Python wait for the end of the connection."""
    found = door.channels(f"?ports={free_port}")
    with pytest.raises(ConnectionClosed) as closed:
        door.during(lambda: [found.recv(timeout=HANG_S) for _ in range(4)])
    assert closed.value.rcvd.code == 1000
    with socket.create_server(("", 0)) as program:
        found = door.channels(f"?ports={program.getsockname()[1]}")
        connected, _ = door.during(program.accept)
        connected.sendall(b"all")
        connected.close()
        messages = list(found)
    assert messages[2:] == [b"\x00all"]


def test_what_cannot_be_forwarded_is_refused(door, node):
    for query, message in {
        "": "at least 1 port",
        "?ports=": '"" is no port',
        "?ports=http": '"http" is no port',
        "?ports=80&ports=65536": '"65536" is no port',
        "?ports=" + ",".join(["80"] * 101): "101 ports are too many",
    }.items():
        code, text = door.refusal(query)
        assert (code, message in text) == (400, True)
    for method, headers in (("GET", {}), ("POST", {"Connection": "Upgrade", "Upgrade": "SPDY/3.1"})):
        answer = door.api.request(method, "/api/v1/namespaces/d/pods/p/portforward", headers=headers)
        assert (answer.status_code, "use kubectl 1.31 or later" in answer.json()["message"]) == (400, True)
    served = f"none of the subprotocols is served; these are: {TUNNEL}, {V4}, portforward.k8s.io"
    assert door.refusal(protocol="v5.channel.k8s.io") == (400, f"unable to upgrade: {served}")
    code, message = door.refusal(actor=NOBODY)
    assert (code, "portforward" in message) == (403, True)
    assert door.refusal(pod="nosuch")[0] == 404
    os.kill(main_of(node), 9)
    node.until_phase("Failed")
    assert door.refusal() == (400, "pod p is not running. Current status=Failed")


def test_one_actor_cannot_take_all_the_room(door, program, monkeypatch):
    monkeypatch.setattr(forward, "MAX_OF_ONE", 1)
    client = door.spdy()
    _, data = client.pair(program.port, 0)
    client.send(spdy.data(data, b"a"))
    door.during(client.until, lambda: client.received[data] == b"A")
    error, _ = client.pair(program.port, 1)
    assert b"Too many connections to ports" in door.during(client.whole, error)
    monkeypatch.setattr(port_forward, "MAX_OF_ONE", 1)
    assert door.refusal()[0] == 429
    assert door.reaches(door.spdy(actor=access.Actor("somebody else", (access.MASTERS,))), program, 0)


def test_a_client_that_leaves_leaves_nothing_behind(door, node, program):
    def left():
        """Return what is open: sockets here, processes and sockets of the shim."""
        shim = shim_of(node)
        return descriptors("self", "socket:"), descriptors(shim, "socket:"), len(tree.below(shim))

    door.spdy().websocket.shutdown()  # what is made once is made
    until(lambda: port_forward._open.total() == 0)
    before = left()
    with deaf() as port:
        client = door.spdy()
        for number in range(3):
            _, data = client.pair(program.port, number)
            client.send(spdy.data(data, b"a"))
            door.during(client.until, lambda data=data: client.received[data] == b"A")
        client.pair(port, "waits")
        node.until(lambda: len(tree.below(shim_of(node))) > before[2])
        client.websocket.shutdown()
        until(lambda: port_forward._open.total() + forward._open.total() == 0)
    until(lambda: program.ended == 3)
    until(lambda: left() <= before)


async def test_no_process_that_the_server_starts_has_what_a_node_hands_over():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        socket.send_fds(theirs, [b"{}\n"], [theirs.fileno()])
        _, (fd,) = await AnswerLine(ours).receive()
        assert not os.get_inheritable(fd)
        os.close(fd)


async def test_who_leaves_while_the_node_is_asked_leaves_nothing_open():
    goes_on, closed = threading.Event(), threading.Event()

    def start():
        assert goes_on.wait(HANG_S)
        return SimpleNamespace(close=closed.set)

    beginning = asyncio.ensure_future(node_connection.begin(start))
    await asyncio.sleep(0)
    beginning.cancel()
    await asyncio.gather(beginning, return_exceptions=True)
    goes_on.set()
    assert await asyncio.to_thread(closed.wait, HANG_S)
