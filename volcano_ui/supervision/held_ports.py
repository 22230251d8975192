"""The ports of one `up`, which a small process holds as well: no pod that goes on after the `up` can have them.

See `node.port_holder`, which is that process. There is one for a state directory, whichever of several clusters were
started on it, because a pod of the embedded one could take the port of each.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import json
import os
import secrets
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from cluster import pid_lock
from node import port_holder
from node.agent import server
from node.shim import control_socket
from volcano_ui import env, web

PROGRAM = "import sys; sys.path.insert(0, sys.argv[1]); from node.port_holder import main; main()"
MARK = b"node.port_holder"  # of its command line
LOG = "port-holder.log"
ANSWERS_WITHIN_S = 10.0
AGAIN_S = 1.0
LISTENING = "0A"  # in /proc/net/tcp


class Holding(NamedTuple):
    """A holder, its process id and the line to it."""

    name: str
    pid: int
    line: socket.socket


class HeldPorts:
    """What an `up` listens at, given to the holder of its state directory where there are pods to hold it against."""

    def __init__(self, state: Path, data: Path, *, log: Path | None, say: Callable[[str], None]) -> None:
        self._state = state
        self._mark = data / "run" / "port-holder"  # by name the holder of this `up`, until one ended in order
        self._log = log
        self._say = say
        self._held: dict[port_holder.Address, socket.socket] = {}
        self._holding: Holding | None = None
        self._has_begun = False

    def begin(self, *, has_pods: bool) -> bool:
        """Go to the holder, or start one; say whether pods can have listened where this `up` did before.

        `has_pods` says that some go on from before.
        """
        self._has_begun = True
        if sys.platform == "linux":
            self._connect()
        known = self._mark.read_text() if self._mark.exists() else ""
        same = self._holding is not None and known == self._holding.name
        return not same and bool(known or has_pods)

    def settle(self) -> None:
        """Write down who holds the ports from now on; to be called when what follows from `begin` is done."""
        if self._has_begun:
            self._mark.write_text(self._holding.name if self._holding else "nobody")

    def listen(self, host: str, port: int) -> socket.socket:
        """Return a socket that listens, the same as before where that was held; OSError when the address cannot be had.

        The same port at other addresses by which people may mean this machine is closed to others as well.
        """
        listener = self._have(host, port, web.listen)
        for other in others(host) if self._holding else ():
            try:
                self._have(other, port, web.reserve)
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    raise
        return listener

    @property
    def pid(self) -> int:
        """The process id of the holder; 0 without one."""
        return self._holding.pid if self._holding else 0

    def end(self, *, has_pods: bool) -> int:
        """Let go of the ports, in order; return the process id of the holder where that goes on with them, else 0."""
        stays = self.pid if self._leaves() else 0
        for held in self._held.values():
            held.close()
        self._held.clear()
        if self._has_begun and not self._holding and not has_pods:
            self._mark.unlink(missing_ok=True)
        return stays

    def _leaves(self) -> bool:
        if self._holding is None:
            return False
        line = self._holding.line
        asyncio.get_running_loop().remove_reader(line)
        with line, contextlib.suppress(OSError):
            line.send(json.dumps({"leave": True}).encode())
            if line.recv(port_holder.DATAGRAM_BYTES):
                return True
            os.waitpid(self._holding.pid, 0)  # where it is a child of this process
        return False

    def _have(self, host: str, port: int, make: Callable[[str, int], socket.socket]) -> socket.socket:
        address = (host, port)
        if (taken := self._taken(address)) is not None:
            self._held[address] = taken
        else:
            self._held[address] = make(host, port)
            self._give(address)
        return self._held[address]

    def _taken(self, address: port_holder.Address) -> socket.socket | None:
        if self._holding is None:
            return None
        line = self._holding.line
        with contextlib.suppress(OSError):
            line.send(json.dumps({"take": address}).encode())
            _, descriptors, _, _ = socket.recv_fds(line, port_holder.DATAGRAM_BYTES, 1)
            return socket.socket(fileno=descriptors[0]) if descriptors else None
        return None  # it has ended, which is heard in a moment

    def _give(self, address: port_holder.Address) -> None:
        if self._holding is None:
            return
        request = json.dumps({"hold": address}).encode()
        with contextlib.suppress(OSError):  # likewise
            socket.send_fds(self._holding.line, [request], [self._held[address].fileno()])

    def _connect(self) -> None:
        """Come to the holder that there is, or to a new one."""
        folder = self._state / "run"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with contextlib.closing(pid_lock.wait(folder / "port-holder.lock")):
            self._holding = self._ask(folder)
            if self._holding is None:
                with contextlib.suppress(OSError):  # for want of processes, or on a full disk
                    self._start(folder)
                    self._holding = self._ask(folder)
        if self._holding is None:
            self._say("✗ Nobody can hold the ports while this is stopped and pods go on.")
        else:
            asyncio.get_running_loop().add_reader(self._holding.line, self._begin_again)

    def _ask(self, folder: Path) -> Holding | None:
        line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        line.settimeout(ANSWERS_WITHIN_S)
        request = {"key": server.key_of(self._state), "mark": str(self._mark)}
        try:
            with theirs:
                control_socket.send(str(folder), request, [theirs.fileno()], port_holder.NAME)
            answer: dict[str, Any] = json.loads(line.recv(port_holder.DATAGRAM_BYTES) or b"{}")
        except OSError:
            answer = {}
        if answer:
            return Holding(answer["name"], answer["pid"], line)
        line.close()
        return None

    def _start(self, folder: Path) -> None:
        command = [sys.executable, "-I", "-S", "-c", PROGRAM, str(env.PROJECT), str(self._state)]
        output = str(self._log or os.devnull)
        with control_socket.bind(str(folder), port_holder.NAME) as door:
            os.posix_spawn(
                sys.executable,
                [*command, secrets.token_hex(8), env.up_command()],
                {"PATH": os.defpath, "VOLCANO_UI_DATA": str(self._state)},
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, door.fileno(), 0),
                    (os.POSIX_SPAWN_OPEN, 1, output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
                    (os.POSIX_SPAWN_DUP2, 1, 2),
                ],
                setsid=True,
            )

    def _begin_again(self) -> None:
        """Have another holder in place of one that has ended: only this `up` has the sockets now."""
        assert self._holding is not None  # noqa: S101  its line is what was heard
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._holding.line)
        self._holding.line.close()
        self._holding = None
        self._say("✗ the holder of the ports ended; starting another")
        loop.call_later(AGAIN_S, self._hold_again)

    def _hold_again(self) -> None:
        self._connect()
        for address in self._held:
            self._give(address)
        self.settle()


def others(host: str) -> tuple[str, ...]:
    """Return the addresses of the other protocol by which a browser may look for one of this machine."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return ("::1",) if host == "localhost" else ()
    if address.version == 4:
        return ("::1",) if address.is_loopback else ("::",)
    if address.is_unspecified:  # which is for both
        return ()
    return ("127.0.0.1",) if address.is_loopback else ("0.0.0.0",)  # noqa: S104  nothing listens there


def held_for(port: int) -> tuple[int, str] | None:
    """Return which process holds a port that has no other use, and for which state directory; None when that is none of ours."""
    inodes = {f"socket:[{inode}]" for inode in _listening(port)}
    found = {int(folder.name): folder for folder in Path("/proc").glob("[0-9]*") if _has(folder, inodes)}
    lines = {pid: _line(folder) for pid, folder in found.items()}
    if len(lines) == 1 and MARK in next(iter(lines.values()), b""):
        (pid, line), *_ = lines.items()
        return pid, os.fsdecode(line.split(b"\0")[6])
    return None


def _listening(port: int) -> set[str]:
    """Return the inodes of the sockets that listen at a port."""
    found = set()
    for file in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(file).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                    found.add(fields[9])
    return found


def _has(folder: Path, inodes: set[str]) -> bool:
    """Tell whether a process has one of these sockets, as far as it may be looked at."""
    with contextlib.suppress(OSError):
        for each in (folder / "fd").iterdir():
            with contextlib.suppress(OSError):
                if str(each.readlink()) in inodes:
                    return True
    return False


def _line(folder: Path) -> bytes:
    with contextlib.suppress(OSError):
        return (folder / "cmdline").read_bytes()
    return b""
