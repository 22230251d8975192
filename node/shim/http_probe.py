"""Asking a program over the network: a request or a connection, for probes and hooks, with an end to the waiting.

Standard library only and without its HTTP client, which takes longer to be imported than the shim to start.
"""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from node.shim.order import Action

HEAD_BYTES = 64 * 1024
BODY_BYTES = 10 * 1024  # as much as a kubelet reads
AGENT = "kube-probe/1.35"


class Answer(NamedTuple):
    """What a server has answered: the status code and the beginning of the body."""

    status: int
    body: str = ""


class _Stream:
    """A connection that is read until a time; TimeoutError afterwards."""

    def __init__(self, connected: socket.socket, deadline: float) -> None:
        self._socket = connected
        self._deadline = deadline

    def read(self) -> bytes:
        remaining = self._deadline - time.monotonic()
        if remaining <= 0:
            raise TimeoutError("timed out")
        self._socket.settimeout(remaining)
        return self._socket.recv(16 * 1024)


def connect(action: Action, seconds: float) -> socket.socket:
    """Return a connection; OSError says why there is none."""
    return socket.create_connection((action.host, action.port), seconds)


def get(action: Action, connected: socket.socket, deadline: float) -> Answer:
    """Make a request over a connection, which is closed then.

    OSError where no answer comes before a monotonic time, ValueError where it is not HTTP.
    """
    with connected as plain:
        plain.settimeout(max(0.001, deadline - time.monotonic()))
        if not action.https:
            return _request(plain, action, deadline)
        import ssl

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE  # as a kubelet: who answers at the pod's address is the pod
        with context.wrap_socket(plain, server_hostname=action.host) as encrypted:
            return _request(encrypted, action, deadline)


def _request(connected: socket.socket, action: Action, deadline: float) -> Answer:
    connected.sendall(_head(action))
    stream = _Stream(connected, deadline)
    data = b""
    while b"\r\n\r\n" not in data and len(data) < HEAD_BYTES and (more := stream.read()):
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    words = lines[0].split(None, 2)
    if len(words) < 2 or not words[0].startswith("HTTP/") or not words[1].isdecimal():
        raise ValueError("the answer is not HTTP")
    limit = min(_length(lines[1:]), BODY_BYTES)
    try:
        while len(body) < limit and (more := stream.read()):
            body += more
    except OSError:  # the status line is there, and that is what counts
        pass
    return Answer(int(words[1]), body[:BODY_BYTES].decode(errors="replace"))


def _head(action: Action) -> bytes:
    custom = {name.lower(): (name, value) for name, value in action.headers}
    host = f"{action.host}:{action.port}"
    defaults = [("Host", host), ("User-Agent", AGENT), ("Accept", "*/*"), ("Connection", "close")]
    fields = [*(field for field in defaults if field[0].lower() not in custom), *custom.values()]
    lines = [f"GET {_line(action.path)} HTTP/1.1", *(f"{_line(name)}: {_line(text)}" for name, text in fields)]
    return "\r\n".join([*lines, "", ""]).encode()


def _line(text: str) -> str:
    """A pod must not write more than one line where one is wanted."""
    return "".join(letter for letter in text if letter.isprintable())


def _length(lines: list[str]) -> int:
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip().lower() == "content-length" and value.strip().isdecimal():
            return int(value)
    return BODY_BYTES
