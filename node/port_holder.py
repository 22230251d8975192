"""The process that holds the addresses of a stopped cluster while pods of it go on: standard library only.

A pod could otherwise listen where the pages were, and browsers that have them open would send it the cookies of their
sessions. So every `up` gives its sockets to this process, one for each state directory, which has them as well. When an
`up` ends, in whichever way, its connection to this process breaks. From then on clients of these addresses get the answer
that the cluster is stopped, until another `up` takes them over, or no pod runs any more and this process ends. A socket
is never closed in between.

An `up` comes as others come to a shim (`node.shim.control_socket`): by a datagram to `DATA/run/port-holder.sock` with the
node's key, which no pod can read, and a line. On the line it sends, each a datagram:

* `{"take": [host, port]}`, answered with `{"taken": true}` and the socket, or `{"taken": false}` when there is none or
  another `up` has it
* `{"hold": [host, port]}`, with a socket
* `{"leave": true}`, answered with `{"stays": true}`, or by the end of this process and its line
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import struct
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from node import shim_claims
from node.shim import control_socket

NAME = "port-holder.sock"
DATAGRAM_BYTES = 4096  # bytes of a datagram on the line
# An order may have been on its way to a shim when its `up` was killed.
UNCERTAIN_S = 1.0
FIRST_S = 10.0  # for the `up` that started this process to come
CHECK_S = 5.0  # the greatest age of the number of pods on the page
VISITORS = 64  # at once; others wait to be accepted
VISIT_S = 2.0
PORTION = 64 * 1024
PORTIONS = 16  # of what a visitor sends that are read, so that he is not cut off before he has the answer
TLS = b"\x16"  # the first byte of a handshake: of a client that believes nothing without a certificate
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><meta http-equiv="refresh" content="5"><title>Stopped · Volcano UI</title></head>
<body><main><h1>The cluster is stopped</h1><p>{pods} on. Start it with <code>{command}</code>; this page looks every few seconds.</p></main></body></html>
"""
HEAD = """HTTP/1.1 503 Service Unavailable\r
Content-Type: text/html; charset=utf-8\r
Content-Length: {length}\r
Content-Security-Policy: default-src 'none'\r
Cache-Control: no-store\r
Retry-After: 5\r
Connection: close\r
\r
"""
Address = tuple[str, int]


class Owner:
    """An `up` that runs: the line to it, and what it listens at."""

    def __init__(self, line: socket.socket, mark: Path) -> None:
        self.line = line
        self.mark = mark  # a file that says which holder has its addresses
        self.addresses: set[Address] = set()


class Visitor:
    """A connection to an address of a stopped cluster."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.until = time.monotonic() + VISIT_S
        self.portions = 0


class Shim(NamedTuple):
    """A shim whose end is waited for, by its descriptor."""

    pid: int
    descriptor: int


class Holder:
    """Everything that is held. `name` tells it from those before and after it."""

    def __init__(self, door: socket.socket, data: Path, name: str, command: str) -> None:
        self._door = door
        self._data = data
        self._name = name
        self._command = command
        self._key = (data / "run" / "node-key").read_text()
        self._selector = selectors.DefaultSelector()
        self._sockets: dict[Address, socket.socket] = {}
        self._owners: set[Owner] = set()
        self._last: Owner | None = None  # which left last: its line is to end after its sockets
        self._marks: set[Path] = set()
        self._visitors: set[Visitor] = set()
        self._pods = 0
        self._checked_at = 0.0
        self._shim: Shim | None = None  # one of those that live
        self._not_before = time.monotonic() + FIRST_S
        self._selector.register(door, selectors.EVENT_READ, self._accept_owner)

    def run(self) -> None:
        """Hold what it is given until no `up` and no pod is left."""
        while self._owners or self._shim or self._check_pods():
            for key, _ in self._selector.select(self._wait_s()):
                # What came before in the list may have ended it.
                if self._selector.get_map().get(key.fd) == key:
                    key.data()
            now = time.monotonic()
            for visitor in [each for each in self._visitors if each.until <= now]:
                self._dismiss(visitor)
        # Let go of the addresses, of which no pod can have had one, before the lines end.
        for listener in self._sockets.values():
            listener.close()
        for mark in self._marks:
            with contextlib.suppress(OSError):
                if mark.read_text() == self._name:
                    mark.unlink()

    def _wait_s(self) -> float | None:
        times = [visitor.until for visitor in self._visitors]
        now = time.monotonic()
        if not self._owners and not self._shim:
            times.append(self._not_before if now < self._not_before else self._checked_at + CHECK_S)
        return max(0.0, min(times) - now) if times else None

    # Pods.

    def _check_pods(self) -> bool:
        """Find the shims that live and wait for the end of one; return whether this process is to go on."""
        living = shim_claims.shims(self._data / "node" / "pods")
        self._pods, self._checked_at = len(set(living.values())), time.monotonic()
        for pid in () if self._shim else living:
            with contextlib.suppress(OSError):
                descriptor = os.pidfd_open(pid)
                self._shim = Shim(pid, descriptor)
                self._selector.register(descriptor, selectors.EVENT_READ, self._forget_shim)
                break
        return bool(living) or time.monotonic() < self._not_before

    def _forget_shim(self) -> None:
        if self._shim:
            self._selector.unregister(self._shim.descriptor)
            os.close(self._shim.descriptor)
            self._shim = None

    # Owners.

    def _accept_owner(self) -> None:
        received = control_socket.receive(self._door)
        if received is None:
            return
        request, (descriptor, *more) = received
        control_socket.close(more)
        line = socket.socket(fileno=descriptor)
        credentials = struct.Struct("3i")  # the process that made the line, its user and group
        peer = credentials.unpack(line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, credentials.size))
        if not control_socket.has_key(request, self._key) or peer[1] != os.getuid():
            line.close()
            return
        line.setblocking(False)
        owner = Owner(line, Path(request["mark"]))
        self._owners.add(owner)
        self._not_before = 0.0
        self._marks.add(owner.mark)
        self._selector.register(line, selectors.EVENT_READ, lambda: self._on_request(owner))
        _send(line, {"name": self._name, "pid": os.getpid()})

    def _on_request(self, owner: Owner) -> None:
        data, descriptors, _, _ = socket.recv_fds(owner.line, DATAGRAM_BYTES, 1)
        if not data:
            self._not_before = time.monotonic() + UNCERTAIN_S
            self._leave(owner)
            return
        request = json.loads(data)
        if "take" in request:
            host, port = request["take"]
            listener = self._sockets.get((host, port))
            if listener is None or any((host, port) in each.addresses for each in self._owners):
                _send(owner.line, {"taken": False})
                return
            owner.addresses.add((host, port))
            self._stop_answering(listener)
            _send(owner.line, {"taken": True}, [listener.fileno()])
        elif "hold" in request:
            host, port = request["hold"]
            address = (host, port)
            if previous := self._sockets.pop(address, None):
                self._stop_answering(previous)
                previous.close()
            self._sockets[address] = socket.socket(fileno=descriptors[0])
            owner.addresses.add(address)
        elif "leave" in request:
            self._leave(owner)
            if self._owners or self._check_pods():
                _send(owner.line, {"stays": True})

    def _leave(self, owner: Owner) -> None:
        self._owners.discard(owner)
        self._last = owner
        self._selector.unregister(owner.line)
        self._start_answering()

    # Clients.

    def _start_answering(self) -> None:
        """Answer at all addresses that nobody has, unless enough are being answered."""
        used = {address for owner in self._owners for address in owner.addresses}
        for address, listener in self._sockets.items():
            is_registered = listener in self._selector.get_map()
            if address in used or is_registered or len(self._visitors) >= VISITORS:
                continue
            # One that does not listen only keeps others from it.
            if listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                listener.setblocking(False)
                self._selector.register(
                    listener, selectors.EVENT_READ, lambda listener=listener: self._accept(listener)
                )

    def _stop_answering(self, listener: socket.socket) -> None:
        if listener in self._selector.get_map():
            self._selector.unregister(listener)

    def _accept(self, listener: socket.socket) -> None:
        try:
            connection, _ = listener.accept()
        except OSError:  # he is gone, or there is no descriptor left
            return
        connection.setblocking(False)
        visitor = Visitor(connection)
        self._visitors.add(visitor)
        self._selector.register(connection, selectors.EVENT_READ, lambda: self._answer(visitor))
        if len(self._visitors) >= VISITORS:
            for each in self._sockets.values():
                self._stop_answering(each)

    def _answer(self, visitor: Visitor) -> None:
        """Answer a visitor's first bytes, whatever they are, and read on until it goes. Nothing of it is parsed or stored."""
        try:
            data = visitor.connection.recv(PORTION)
            if not visitor.portions and data and not data.startswith(TLS):
                visitor.connection.send(self._response(has_body=not data.startswith(b"HEAD ")))
                visitor.connection.shutdown(socket.SHUT_WR)
        except OSError:
            data = b""
        visitor.portions += 1
        if not data or data.startswith(TLS) or visitor.portions >= PORTIONS:
            self._dismiss(visitor)

    def _response(self, *, has_body: bool) -> bytes:
        if time.monotonic() - self._checked_at > CHECK_S:
            self._check_pods()
        pods = "1 pod goes" if self._pods == 1 else f"{self._pods} pods go"
        body = PAGE.format(pods=pods, command=self._command).encode()
        head = HEAD.format(length=len(body)).encode()
        return head + body if has_body else head

    def _dismiss(self, visitor: Visitor) -> None:
        self._selector.unregister(visitor.connection)
        visitor.connection.close()
        self._visitors.discard(visitor)
        self._start_answering()


def _send(line: socket.socket, answer: dict[str, Any], descriptors: list[int] | None = None) -> None:
    with contextlib.suppress(OSError):  # he is gone
        socket.send_fds(line, [json.dumps(answer).encode()], descriptors or [])


def main() -> None:
    """Hold what comes in by the control socket on standard input."""
    _, _, data, name, command = sys.argv
    # Whoever means the cluster, or the machine, ends its pods, and thereby this.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.chdir("/")
    os.closerange(3, 1 << 16)
    door = socket.socket(fileno=os.dup(0))
    os.dup2(1, 0)
    Holder(door, Path(data), name, command).run()
