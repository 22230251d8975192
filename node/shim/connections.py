"""Connections made from inside a pod's network for who is outside it: the agent's probes, and port forwarding.

A child of the shim makes each, because to look up a name or to wait for an answer takes time that the shim does not have.
"""

from __future__ import annotations

import json
import os
import signal
import socket
from typing import TYPE_CHECKING, Any, NoReturn

from node.shim import init, linux

if TYPE_CHECKING:
    from collections.abc import Sequence

LONGEST_S = 30.0  # that a connection may take: nobody waits longer for one, and a child is a process
LAST_PORT = 65535
_LINE = 3


def begin(line: socket.socket, hosts: Sequence[str], port: int, seconds: float) -> int:
    """Fork a process that connects to a port of the first host that takes it and answers on a line; return its id.

    It ends with its parent.

    It answers `{"connected": true}` with the connection as a descriptor, or `refused`. SIGALRM ends it when the time is over.
    """
    shim = os.pidfd_open(os.getpid())
    # Before the fork: in a container's namespace of processes others could look into it, and it knows the node's key.
    linux.prctl(linux.PR_SET_DUMPABLE, 0)
    try:
        pid = os.fork()
        if pid == 0:
            _connect(line, hosts, port, seconds, shim)
    finally:
        linux.prctl(linux.PR_SET_DUMPABLE, 1)
        os.close(shim)
    return pid


def refused(reason: str, *, timed_out: bool) -> dict[str, Any]:
    """Return the answer for a connection that failed."""
    return {"refused": reason, "timedOut": timed_out}


def _connect(line: socket.socket, hosts: Sequence[str], port: int, seconds: float, shim: int) -> NoReturn:
    try:
        os.setsid()
        init.default_signals()
        init.end_with(shim)
        signal.setitimer(signal.ITIMER_REAL, min(max(seconds, 0.001), LONGEST_S))
        # What the shim has open would not end before this process does: other lines, and the container's streams.
        os.dup2(line.fileno(), _LINE)
        os.closerange(_LINE + 1, init.FILES)
        for host in hosts:
            answer, fds = _attempt(host, port)
            if fds:
                break
        socket.send_fds(socket.socket(fileno=_LINE), [json.dumps(answer).encode() + b"\n"], fds)
    finally:
        os._exit(0)


def _attempt(host: str, port: int) -> tuple[dict[str, Any], list[int]]:
    try:
        if not 0 < port <= LAST_PORT:  # the C library takes it modulo 65536
            raise ValueError(f"port must be 1-{LAST_PORT}")
        # As bytes: for text Python imports the tables of international names, in each of these processes.
        name = host.encode("ascii" if host.isascii() else "idna")
        connected = socket.create_connection((name, port))  # type: ignore[arg-type]  # the stubs know text only
        return {"connected": True}, [connected.detach()]
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        return refused(reason, timed_out=isinstance(error, TimeoutError)), []
    except ValueError as error:  # no port, no name
        return refused(str(error).lower(), timed_out=False), []
