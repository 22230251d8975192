"""The shim's control socket: how the cluster runs one more command in a running container, or reaches its input or its ports.

It is a datagram socket, `control` in the attempt's directory. A request is
one datagram: a JSON object, and descriptors. The first descriptor is a
*line* (one end of a pair of sockets) on which everything is answered, and
which means "go on" as long as its other end is open.

* `exec` brings descriptors for the command's standard streams. Answers:
  `{"started": pid}` or `{"refused": why}`, then `{"exitCode": n}`. When the
  line breaks, the command and what it forked are ended.
* `attach` answers `{"attached": true}`, with a descriptor for the container's
  input or terminal where it has one.
* `connect` answers `{"connected": true}`, with the descriptor of a TCP connection that was made
  from the container's network, or `{"refused": why, "timedOut": ...}` when it was tried in vain;
  then the line ends. With `local` it is tried at localhost, too, where the container has a network of its own. Without `timedOut` nothing was tried. When the line breaks, so is the attempt.

A request has the node's key, without which nothing is answered: a pod that is kept from
files may still connect to a socket whose path it knows (see `node.shim.isolation.landlock`).

So a command's data never passes through here, nobody has to be asked whether
a client still lives, and the end of any process between client and command is
seen by the kernel.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import time
from typing import TYPE_CHECKING, Any

from node.shim import connections, tree
from node.shim.launch import LaunchError, Streams

if TYPE_CHECKING:
    from collections.abc import Collection

    from node.shim.container_runtime import ContainerRuntime
    from node.shim.order import Order

NAME = "control"
REQUEST_BYTES = 256 * 1024  # bytes of a request; the kernel refuses longer datagrams
MAX_FDS = 4  # descriptors of a request: the line, input, output, errors
GRACE_S = 2.0  # from asking a command to end whose client has gone to killing it
STREAMS = ("stdin", "stdout", "stderr")


def send(directory: str, request: dict[str, Any], fds: list[int], name: str = NAME) -> None:
    """Send a request to the control socket in a directory; OSError when nobody is behind it."""
    # The path may be longer than the address of a socket; by way of the directory's descriptor it is short.
    folder = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as client:
            client.setblocking(False)
            client.connect(f"/proc/self/fd/{folder}/{name}")
            socket.send_fds(client, [json.dumps(request).encode()], fds)
    finally:
        os.close(folder)


def bind(directory: str, name: str = NAME) -> socket.socket:
    """Return a control socket in a directory, open to the user who runs the cluster and nobody else."""
    folder = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    address = f"/proc/self/fd/{folder}/{name}"
    control = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
    umask = os.umask(0o177)
    try:
        if os.path.lexists(address):
            os.unlink(address)
        control.setblocking(False)
        control.bind(address)
    except OSError:
        control.close()
        raise
    finally:
        os.umask(umask)
        os.close(folder)
    return control


def receive(control: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """Take the next request from a control socket; None when there is none, or none that can be answered."""
    try:
        data, fds, _, _ = socket.recv_fds(control, REQUEST_BYTES, MAX_FDS)
    except BlockingIOError:
        return None
    for fd in fds:
        os.set_inheritable(fd, False)
    try:
        request = json.loads(data)
    except ValueError:
        request = None
    if fds and isinstance(request, dict):
        return request, fds
    close(fds)
    return None


def has_key(request: dict[str, Any], key: str) -> bool:
    """Whether a request has a key; how long the answer takes does not depend on how much of it is right."""
    given, expected = str(request.get("key", "")).encode(), key.encode()
    difference = len(given) ^ len(expected)
    for left, right in zip(given, expected, strict=False):
        difference |= left ^ right
    return not difference


def close(fds: list[int]) -> None:
    """Close descriptors."""
    for fd in fds:
        os.close(fd)


class Line:
    """One client: the socket on which it is answered, and the process that works for it while that runs."""

    def __init__(self, client: socket.socket) -> None:
        self.socket = client
        self.pid = 0
        self.connects = False  # the process is no command, but makes a connection
        self.kill_at: float | None = None

    def send(self, answer: dict[str, Any], fds: list[int] | None = None) -> None:
        """Send an answer, which is lost where the client has gone."""
        try:
            socket.send_fds(self.socket, [json.dumps(answer).encode() + b"\n"], fds or [])
        except OSError:
            pass


class ControlSocket:
    """What of one container is open to the cluster while its command runs."""

    def __init__(self, order: Order, container: ContainerRuntime) -> None:
        self.order = order
        self.container = container
        self.input = -1  # where the container's standard input comes in, while it may
        self._door: socket.socket | None = None
        self._lines: dict[int, Line] = {}
        self._poll = select.poll()

    def open(self) -> None:
        """Let requests for the container come in, which runs; without room for a socket there are none."""
        try:
            self._door = bind(self.order.directory)
        except OSError:  # a full disk, or a file system without sockets
            pass

    def watch(self, poll: select.poll) -> None:
        """Register with `poll` for requests, those that came before included."""
        self._poll = poll
        if self._door is not None:
            poll.register(self._door, select.POLLIN)

    def on_ready(self, fds: Collection[int]) -> None:
        """Handle clients that have gone, and a request; fds are all that are ready."""
        for fd in fds:
            if fd in self._lines:
                self._hang_up(fd)
        # Last: a new line may have the number of one that was just closed, whose end is among the ready ones as well.
        if self._door is not None and self._door.fileno() in fds:
            received = receive(self._door)
            if received is not None:
                self._on_request(*received)

    def due(self) -> float | None:
        """Return the monotonic time at which on_time() has something to do."""
        return min((line.kill_at for line in self._lines.values() if line.kill_at is not None), default=None)

    def on_time(self, now: float) -> None:
        """Kill commands that were asked to end and did not."""
        for fd, line in list(self._lines.items()):
            if line.kill_at is not None and now >= line.kill_at:
                tree.kill(self.container.of_command(line.pid))
                self._forget(fd, line)

    @property
    def connecting(self) -> set[int]:
        """The processes that make connections: the cluster's, not the container's."""
        return {line.pid for line in self._lines.values() if line.connects}

    def ended(self, statuses: dict[int, int]) -> None:
        """Tell clients whose command ended how it did."""
        for fd, line in list(self._lines.items()):
            if line.connects and line.pid in statuses:
                if statuses[line.pid] == signal.SIGALRM:
                    line.send(connections.refused("no answer in time", timed_out=True))
                self._forget(fd, line)
            elif line.pid in statuses:
                code = os.waitstatus_to_exitcode(statuses[line.pid])
                line.send({"exitCode": 128 - code if code < 0 else code})
                # Of a command whose client has gone, what it forked may have stayed: that is still to be killed.
                if line.kill_at is None or not self.container.of_command(line.pid):
                    self._forget(fd, line)

    def close(self) -> None:
        """Let go of everything: the container has ended."""
        for line in self._lines.values():
            line.socket.close()
        self._lines.clear()
        if self._door is not None:
            self._door.close()
            self._door = None

    def _on_request(self, request: dict[str, Any], fds: list[int]) -> None:
        if not has_key(request, self.order.key):
            close(fds)
            return
        line = Line(socket.socket(fileno=fds.pop(0)))
        line.socket.setblocking(False)
        try:
            if request.get("do") == "attach":
                line.send({"attached": True}, [self.input] if self.input >= 0 else [])
            elif request.get("do") == "connect":
                hosts, port, seconds = [str(request["host"])], int(request["port"]), float(request["seconds"])
                if request.get("local") and self.order.network:  # elsewhere that is the machine's own loopback
                    hosts.append("localhost")
                line.pid = connections.begin(line.socket, hosts, port, seconds)
                line.connects = True
            else:
                self._execute(line, request, fds)
        except (LaunchError, OSError, ValueError, TypeError, LookupError) as error:
            line.send({"refused": str(error)})
            line.socket.close()
        else:
            self._lines[line.socket.fileno()] = line
            self._poll.register(line.socket, select.POLLIN)
        finally:
            close(fds)

    def _execute(self, line: Line, request: dict[str, Any], fds: list[int]) -> None:
        tty = bool(request["tty"])
        names = [name for name in STREAMS if name in request["streams"]]
        by_stream = dict.fromkeys(STREAMS, fds[0]) if tty else dict(zip(names, fds, strict=True))
        env = {} if "TERM" in self.order.env or not tty else {"TERM": "xterm"}
        argv = [str(word) for word in request["argv"]]
        line.pid = self.container.execute(argv, Streams(**by_stream, tty=tty), env)
        line.send({"started": line.pid})

    def _hang_up(self, fd: int) -> None:
        """End the command of a client that has gone: in order at first."""
        line = self._lines[fd]
        if not line.pid:
            if self.order.stdin_once and not self.order.tty and self.input >= 0:
                os.close(self.input)
                self.input = -1
            self._forget(fd, line)
            return
        self._poll.unregister(fd)
        if line.connects:
            tree.send(line.pid, signal.SIGKILL)
            return
        for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGCONT):
            for pid in self.container.of_command(line.pid):
                tree.send(pid, number)
        line.kill_at = time.monotonic() + GRACE_S

    def _forget(self, fd: int, line: Line) -> None:
        with contextlib.suppress(KeyError):  # it was hung up before
            self._poll.unregister(fd)
        del self._lines[fd]
        line.socket.close()
