"""The ports of one `up`, which a small process holds as well, so that no pod which goes on after the `up` can take them.

That process is `node.port_holder`. There is one for each state directory, shared by all clusters that are started on it,
because a pod of the embedded cluster could take the port of any of them.
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
MARK = b"node.port_holder"  # part of the holder's command line
LOG = "port-holder.log"
ANSWERS_WITHIN_S = 10.0
AGAIN_S = 1.0
LISTENING = "0A"  # in /proc/net/tcp


class Holding(NamedTuple):
    """A holder: its name, its process id and the socket to it."""

    name: str
    pid: int
    channel: socket.socket


class HeldPorts:
    """The sockets at which an `up` listens, each passed to the holder of its state directory as well."""

    def __init__(self, state: Path, data: Path, *, log: Path | None, say: Callable[[str], None]) -> None:
        self._state = state
        self._mark = data / "run" / "port-holder"  # the name of this `up`'s holder; removed when an `up` ends in order
        self._log = log
        self._say = say
        self._held: dict[port_holder.Address, socket.socket] = {}
        self._holding: Holding | None = None
        self._has_begun = False

    def begin(self, *, has_pods: bool) -> bool:
        """Connect to the holder, or start one; return whether pods may have listened on the ports since the last `up`.

        `has_pods` says that pods of an earlier `up` still run.
        """
        self._has_begun = True
        if sys.platform == "linux":
            self._connect()
        recorded = self._mark.read_text() if self._mark.exists() else ""
        same = self._holding is not None and recorded == self._holding.name
        return not same and bool(recorded or has_pods)

    def settle(self) -> None:
        """Record the present holder; call it when the consequences of `begin`, such as ending sessions, are done."""
        if self._has_begun:
            self._mark.write_text(self._holding.name if self._holding else "nobody")

    def listen(self, host: str, port: int) -> socket.socket:
        """Return a listening socket, the previous one if it was held; raise OSError if the address is not available.

        The port is reserved as well at the other addresses by which people may mean this machine.
        """
        listener = self._acquire(host, port, web.listen)
        for other in others(host) if self._holding else ():
            try:
                self._acquire(other, port, web.reserve)
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    raise
        return listener

    @property
    def pid(self) -> int:
        """The process id of the holder; 0 without one."""
        return self._holding.pid if self._holding else 0

    def end(self, *, has_pods: bool) -> int:
        """Close the ports in order; return the process id of the holder if it goes on holding them, else 0."""
        stays = self.pid if self._detach() else 0
        for listener in self._held.values():
            listener.close()
        self._held.clear()
        if self._has_begun and not self._holding and not has_pods:
            self._mark.unlink(missing_ok=True)
        return stays

    def _detach(self) -> bool:
        """Tell the holder that this `up` ends; return whether it goes on holding the ports."""
        if self._holding is None:
            return False
        channel = self._holding.channel
        asyncio.get_running_loop().remove_reader(channel)
        with channel, contextlib.suppress(OSError):
            channel.send(json.dumps({"leave": True}).encode())
            if channel.recv(port_holder.DATAGRAM_BYTES):
                return True
            os.waitpid(self._holding.pid, 0)  # it raises ChildProcessError if another `up` has started the holder
        return False

    def _acquire(self, host: str, port: int, open_socket: Callable[[str, int], socket.socket]) -> socket.socket:
        address = (host, port)
        if (inherited := self._received(address)) is not None:
            self._held[address] = inherited
        else:
            self._held[address] = open_socket(host, port)
            self._give(address)
        return self._held[address]

    def _received(self, address: port_holder.Address) -> socket.socket | None:
        """Return the socket that the holder has for an address, None if it has none."""
        if self._holding is None:
            return None
        channel = self._holding.channel
        with contextlib.suppress(OSError):
            channel.send(json.dumps({"take": address}).encode())
            _, descriptors, _, _ = socket.recv_fds(channel, port_holder.DATAGRAM_BYTES, 1)
            return socket.socket(fileno=descriptors[0]) if descriptors else None
        return None  # the holder has ended; the event loop notices that next and calls `_on_holder_end`

    def _give(self, address: port_holder.Address) -> None:
        if self._holding is None:
            return
        request = json.dumps({"hold": address}).encode()
        with contextlib.suppress(OSError):  # it has ended, as above
            socket.send_fds(self._holding.channel, [request], [self._held[address].fileno()])

    def _connect(self) -> None:
        """Connect to the holder that runs, or start one."""
        folder = self._state / "run"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with contextlib.closing(pid_lock.wait(folder / "port-holder.lock")):
            self._holding = self._introduce(folder)
            if self._holding is None:
                with contextlib.suppress(OSError):  # no process left to start, or a full disk
                    self._start(folder)
                    self._holding = self._introduce(folder)
        if self._holding is None:
            self._say("✗ The ports cannot be held while this is stopped and pods go on.")
        else:
            asyncio.get_running_loop().add_reader(self._holding.channel, self._on_holder_end)

    def _introduce(self, folder: Path) -> Holding | None:
        """Introduce this `up` to the holder of a state directory; None if no holder answers."""
        channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        channel.settimeout(ANSWERS_WITHIN_S)
        request = {"key": server.key_of(self._state), "mark": str(self._mark)}
        try:
            with theirs:
                control_socket.send(str(folder), request, [theirs.fileno()], port_holder.NAME)
            answer: dict[str, Any] = json.loads(channel.recv(port_holder.DATAGRAM_BYTES) or b"{}")
        except OSError:
            answer = {}
        if answer:
            return Holding(answer["name"], answer["pid"], channel)
        channel.close()
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

    def _on_holder_end(self) -> None:
        """Have a holder that has ended replaced: only this `up` has the sockets now."""
        assert self._holding is not None  # noqa: S101  the event came from its socket
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._holding.channel)
        self._holding.channel.close()
        self._holding = None
        self._say("✗ the holder of the ports ended; starting another")
        loop.call_later(AGAIN_S, self._replace_holder)

    def _replace_holder(self) -> None:
        self._connect()
        for address in self._held:
            self._give(address)
        self.settle()


def others(host: str) -> tuple[str, ...]:
    """Return the addresses of the other IP version at which a browser may look for a host of this machine."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return ("::1",) if host == "localhost" else ()
    if address.version == 4:
        return ("::1",) if address.is_loopback else ("::",)
    if address.is_unspecified:  # "::" accepts IPv4 as well
        return ()
    return ("127.0.0.1",) if address.is_loopback else ("0.0.0.0",)  # noqa: S104  nothing listens there


def held_for(port: int) -> tuple[int, str] | None:
    """Return the process id and the state directory of the holder that alone has a port; None if the port is not held."""
    inodes = {f"socket:[{inode}]" for inode in _listening(port)}
    folders = {int(folder.name): folder for folder in Path("/proc").glob("[0-9]*") if _has(folder, inodes)}
    command_lines = {pid: _command_line(folder) for pid, folder in folders.items()}
    if len(command_lines) == 1 and MARK in next(iter(command_lines.values()), b""):
        (pid, command_line), *_ = command_lines.items()
        return pid, os.fsdecode(command_line.split(b"\0")[6])
    return None


def _listening(port: int) -> set[str]:
    """Return the inodes of the sockets that listen at a port."""
    inodes = set()
    for file in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(file).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                    inodes.add(fields[9])
    return inodes


def _has(folder: Path, inodes: set[str]) -> bool:
    """Return whether a process has one of these sockets; False as well if its descriptors may not be read."""
    with contextlib.suppress(OSError):
        for each in (folder / "fd").iterdir():
            with contextlib.suppress(OSError):
                if str(each.readlink()) in inodes:
                    return True
    return False


def _command_line(folder: Path) -> bytes:
    with contextlib.suppress(OSError):
        return (folder / "cmdline").read_bytes()
    return b""
