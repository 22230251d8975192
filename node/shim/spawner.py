"""The spawner: a small process that forks shims for the agent.

It exists so that shims are copies of something small and clean instead of
copies of the agent with its database, its secrets and a hundred megabytes.
It keeps no state: when it dies the agent starts another, and shims do not
notice. When the agent dies it ends, because its socket does.
"""

from __future__ import annotations

import errno
import gc
import json
import os
import signal
import socket
import struct
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, NoReturn

from node.shim import init, linux, network, shim, users
from node.shim.isolation import landlock, seccomp, wall
from node.shim.launch import Streams
from node.shim.network import Network, Plan
from node.shim.order import Bind, Order, Wall
from node.shim.processes import Processes

if TYPE_CHECKING:
    from collections.abc import Callable

# The kind of a request ("o" an order, "n" a network, "p" a probe of the wall's layers), length of what follows.
HEADER = struct.Struct("!cI")
MAX_FDS = 1 + len(Network._fields)  # descriptors that come with it


def main() -> None:
    """Serve the socket on standard input until the agent is gone."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel collects shims that end
    agent = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    wall.prepare()
    gc.collect()
    gc.disable()
    gc.freeze()  # so that no collection writes into pages that shims share
    while _serve(agent):
        pass


def _serve(agent: socket.socket) -> bool:
    try:
        header, fds, _, _ = socket.recv_fds(agent, HEADER.size, MAX_FDS)
    except OSError:
        return False
    if not header:
        return False
    kind, size = HEADER.unpack(header)
    body = _read(agent, size)
    if kind == b"p":
        answer = _probe(body.decode()).encode()
    elif kind == b"n":
        answer = str(_fork(partial(_become_keeper, Plan(*json.loads(body)), *fds)))
    else:
        answer = str(_fork(partial(_become_shim, Order.decode(body), fds)))
    for fd in fds:
        os.close(fd)
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


def _fork(become: Callable[[], NoReturn]) -> int:
    pid = os.fork()
    if pid == 0:
        become()
    return pid


def _become_shim(order: Order, fds: list[int]) -> NoReturn:
    notice, *network_fds = _close_others(fds)
    shim.run(order, notice, Network(*network_fds) if network_fds else None)


def _become_keeper(plan: Plan, line: int) -> NoReturn:
    (line_fd,) = _close_others([line])
    network.run_keeper(plan, socket.socket(fileno=line_fd))


def _close_others(fds: list[int]) -> list[int]:
    """Close all descriptors of this process but those that it was given; return what these are now."""
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    open_fds = sorted(fds)
    for before, after in pairwise((2, *open_fds, init.FILES)):
        os.closerange(before + 1, after)
    for fd in open_fds:
        os.set_inheritable(fd, False)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    return fds


def _probe(staging: str) -> Wall:
    """Return which layers of the wall this process can put up, each tried in a process of its own.

    Root has no way that needs no users of their own: all that it would show is root's.
    """
    abi = landlock.abi()
    candidates = (Wall("root", pids=True),) if os.geteuid() == 0 else (Wall("user", pids=True), Wall("user"))
    layers = next((wall for wall in candidates if _succeeds(partial(_try_root, wall, staging))), Wall())
    return layers._replace(
        networks="" if layers.mounts == "none" else _output_of(network.supported_networks),
        landlock=abi if abi and _succeeds(partial(_try_landlock, abi, staging)) else 0,
        seccomp=bool(seccomp.architecture()) and _succeeds(_try_seccomp),
        root=os.geteuid() == 0,
        old=layers.mounts == "none" and not linux.can_restrict_mounts(),
    )


def _output_of(function: Callable[[], str]) -> str:
    """Return a function's result from a child process; "" when it fails."""
    reader, writer = os.pipe2(os.O_CLOEXEC)

    def answer() -> bool:
        os.write(writer, function().encode())
        return True

    _succeeds(answer)
    os.close(writer)
    with open(reader) as file:
        return file.read()


def _succeeds(attempt: Callable[[], bool]) -> bool:
    """Whether a child process that tries something succeeds."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # an ignored child leaves no status to wait for
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(0 if attempt() else 1)
        except BaseException:
            os._exit(1)
    _, status = os.waitpid(pid, 0)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    return status == 0


def _try_root(wall: Wall, staging: str) -> bool:
    """Run a command as a container that needs all that there is: a volume where the machine has no directory, and processes of its own."""
    target = f"/usr/.volcano-probe-{os.getpid()}/deep"
    order = Order(
        staging, ["test", "-w", target], {"PATH": os.defpath}, target, mounts=wall.mounts, pids=wall.pids,
        binds=(Bind(staging, target),), ids=users.subordinate(0),
    )  # fmt: skip
    container = Processes(order)
    return os.waitpid(container.start(Streams()), 0)[1] == 0


def _try_landlock(abi: int, staging: str) -> bool:
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    landlock.confine(abi)
    fd = os.open(staging, os.O_PATH)
    landlock.restrict(landlock.ruleset(abi, [(fd, landlock.READ)]))
    return _can_list(staging) and not _can_list("/")


def _can_list(path: str) -> bool:
    try:
        os.listdir(path)
    except PermissionError:
        return False
    return True


def _try_seccomp() -> bool:
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    seccomp.install(seccomp.program(seccomp.architecture(), tracing=False, limiting=False))
    try:
        linux.syscall(seccomp.MACHINES[seccomp.architecture()].calls["bpf"], -1, None, 0)  # a command that there is not
    except OSError as error:
        return error.errno == errno.EPERM
    return False
