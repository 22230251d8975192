"""The spawner: a small process that forks shims when the agent asks.

It exists so that shims are copies of something small and clean instead of
copies of the agent with its database, its secrets and a hundred megabytes.
It keeps no state: when it dies the agent starts another, and shims do not
notice. When the agent dies it ends, because its socket does.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import struct
from typing import NoReturn

from node.shim import mounts, shim
from node.shim.order import Bind, Order

HEADER = struct.Struct(
    "!cI"
)  # what is asked ("o" an order, "p" a probe of namespaces), length of what follows


def main() -> None:
    """Serve the socket on standard input until the agent is gone."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel collects shims that end
    agent = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    gc.collect()
    gc.disable()
    gc.freeze()  # so that no collection writes into pages that shims share
    while _serve(agent):
        pass


def _serve(agent: socket.socket) -> bool:
    try:
        header, fds, _, _ = socket.recv_fds(agent, HEADER.size, 1)
    except OSError:
        return False
    if not header:
        return False
    kind, size = HEADER.unpack(header)
    body = _read(agent, size)
    if kind == b"p":
        answer = _probe(body.decode())
    else:
        answer = str(_fork_shim(Order.decode(body), fds[0]))
        os.close(fds[0])
    agent.sendall(answer.encode() + b"\n")
    return True


def _read(agent: socket.socket, size: int) -> bytes:
    parts = []
    while size:
        part = agent.recv(min(size, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _fork_shim(order: Order, notice: int) -> int:
    pid = os.fork()
    if pid == 0:
        _become_shim(order, notice)
    return pid


def _become_shim(order: Order, notice: int) -> NoReturn:
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    os.dup2(notice, 3, inheritable=False)
    os.closerange(4, 1 << 16)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    shim.run(order, 3)


def _probe(staging: str) -> str:
    """Return how this process may make mount namespaces: "root", "user" or "none"."""
    for mode in ("root", "user") if os.geteuid() == 0 else ("user",):
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # an ignored child leaves no status to wait for
        pid = os.fork()
        if pid == 0:
            os._exit(_try(mode, staging))
        _, status = os.waitpid(pid, 0)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        if status == 0:
            return mode
    return "none"


def _try(mode: str, staging: str) -> int:
    """Do in a child process everything that a container may need: a bind, and one below a path that is not there."""
    try:
        mounts.enter(mode)
        target = f"/.volcano-probe-{os.getpid()}/deep"
        mounts.arrange([Bind(staging, target)], staging)
    except (OSError, ValueError, mounts.MountError):
        return 1
    return 0 if os.path.isdir(target) else 1
