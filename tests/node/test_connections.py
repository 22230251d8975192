"""Connections that the shim makes for who is outside the pod's network."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket

import pytest

from node.shim import control_socket, linux, tree
from proof.escapes.attempts import deaf
from proof.harness.waiting import HANG_S, until
from tests.tables import cases


@contextlib.contextmanager
def asked(directory, **request):
    """Ask a shim for something; the line on which it answers."""
    line, theirs = socket.socketpair()
    with line:
        control_socket.send(str(directory), {"key": "key", **request}, [theirs.fileno()])
        theirs.close()
        line.settimeout(HANG_S)
        yield line


def connecting(directory, port, host="127.0.0.1", seconds=HANG_S):
    return asked(directory, do="connect", host=host, port=port, seconds=seconds)


def answer(line):
    """Return all that is answered, and the descriptors that came with it."""
    heard, descriptors = b"", []
    while True:
        data, fds, _, _ = socket.recv_fds(line, 4096, 1)
        heard, descriptors = heard + data, descriptors + fds
        if not data:
            return json.loads(heard), [socket.socket(fileno=fd) for fd in descriptors]


def beside(attempts, directory):
    """Return what a shim has forked beside the container's command."""
    return set(tree.children(attempts.shim(directory))) - {attempts.started(directory)["pid"]}


@pytest.fixture
def container(attempts):
    return attempts.start("sleep", "600", key="key")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_the_connection_comes_back_and_the_line_ends(attempts, container, host):
    with socket.create_server(("127.0.0.1", 0)) as server:
        with connecting(container, server.getsockname()[1], host) as line:
            said, (connected,) = answer(line)
        far, _ = server.accept()
    assert said == {"connected": True}
    with far, connected:
        far.sendall(b"there")
        assert connected.recv(5) == b"there"
        connected.close()
        assert far.recv(1) == b"", "nobody else holds it"
    assert not beside(attempts, container)


@cases("host, port, why", {
    "nobody listens": ("127.0.0.1", None, "connection refused"),
    "no port": ("127.0.0.1", 70_000, "port must be 1-65535"),
    "no name": ("a..b", 80, "not known"),
    "no international name": ("\u00e4..b", 80, "label empty"),
})  # fmt: skip
def test_why_there_is_no_connection(attempts, container, host, port, why):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        with connecting(container, port or free.getsockname()[1], host) as line:
            said, connected = answer(line)
    assert why in said["refused"]
    assert (said["timedOut"], connected) == (False, [])


def test_a_wait_that_was_too_long_is_told_apart(container):
    with deaf() as port, connecting(container, port, seconds=0.1) as line:
        assert answer(line) == ({"refused": "no answer in time", "timedOut": True}, [])


@pytest.mark.parametrize("fields", [{"port": "x"}, {"seconds": None}, {"host": None, "port": None}])
def test_a_request_that_cannot_be_read_is_refused_and_nothing_was_tried(container, fields):
    request = {"do": "connect", "host": "127.0.0.1", "port": 1, "seconds": 1.0, **fields}
    with asked(container, **request) as line:
        said, _ = answer(line)
    assert ("refused" in said, "timedOut" in said) == (True, False)


def test_an_attempt_ends_with_its_line(attempts, container):
    with deaf() as port:
        with connecting(container, port):
            until(lambda: beside(attempts, container))
        until(lambda: not beside(attempts, container))
    assert linux.start_ticks(attempts.started(container)["pid"])


def test_an_attempt_ends_with_its_shim(attempts, container):
    with deaf() as port, connecting(container, port):
        (child,) = until(lambda: beside(attempts, container))
        os.kill(attempts.shim(container), signal.SIGKILL)
        until(lambda: not linux.start_ticks(child))


def test_an_attempt_ends_with_its_container(attempts, container):
    with deaf() as port, connecting(container, port) as line:
        (child,) = until(lambda: beside(attempts, container))
        attempts.stop(container)
        attempts.end(container)
        until(lambda: not linux.start_ticks(child))
        assert line.recv(1) == b""


def test_other_lines_end_while_an_attempt_waits(attempts, container):
    with deaf() as port, connecting(container, port):
        until(lambda: beside(attempts, container))
        with asked(container, do="exec", argv=["true"], streams=[], tty=False) as line:
            heard = b"".join(iter(lambda: line.recv(4096), b""))
        assert b'"exitCode": 0' in heard


def test_an_attempt_counts_towards_no_limit(attempts):
    container = attempts.start("sleep", "600", key="key", memory_bytes=4 << 20, processes=1)
    with deaf() as port, connecting(container, port, seconds=2.0) as line:
        assert answer(line)[0]["timedOut"], "the limits were looked at meanwhile"
    assert not (container / "status.json").exists()
