"""Asking probes: commands, requests and connections through the shims' control sockets, each in a thread of its own.

What is connected to is looked for where the container is: only its shim is in its network, and knows the names there.

The agent says what to ask and goes on. Answers are kept until it takes them,
and a byte in a pipe tells it that there are some.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any, NamedTuple

from node.rules.probes import Kind
from node.shim import control_socket, http_probe
from node.shim.order import Action

OUTPUT_BYTES = 10 * 1024  # of a command, of which more is read and dropped


class Check(NamedTuple):
    """A probe of an attempt that is to be asked, with its timeout in seconds."""

    uid: str
    container: str
    number: int
    kind: Kind
    action: Action
    seconds: float


class Checked(NamedTuple):
    """What a probe has found; None when nothing could be found out, and in words why it has failed."""

    check: Check
    passed: bool | None
    message: str = ""


class Checks:
    """The probes that are being asked."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._answers: deque[Checked] = deque()
        self.reader, self._writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def ask(self, check: Check, directory: Path | None) -> None:
        """Ask a probe; directory is that of the attempt, None when it does not run."""
        try:
            threading.Thread(target=self._ask, args=(check, directory), name="probe", daemon=True).start()
        except RuntimeError as error:  # no room for a thread: to be asked again like one without an answer
            self._say(Checked(check, None, str(error)))

    def take(self) -> list[Checked]:
        """Return the answers that have come since the last call."""
        found = []
        while self._answers:
            found.append(self._answers.popleft())
        return found

    def close(self) -> None:
        """Hear no more; what is still asked is forgotten."""
        os.close(self.reader)
        writer, self._writer = self._writer, -1
        os.close(writer)

    def _ask(self, check: Check, directory: Path | None) -> None:
        try:
            if directory is None:
                answer = Checked(check, None)
            else:
                answer = self._execute(check, directory) if check.action.argv else self._reach(check, directory)
        # No room for a socket or a pipe, or whatever it is: without an answer the probe would never be asked again.
        except Exception as error:
            answer = Checked(check, None, str(error))
        self._say(answer)

    def _say(self, answer: Checked) -> None:
        self._answers.append(answer)
        with contextlib.suppress(OSError):  # full: it will be looked at anyway; closed: nobody looks
            os.write(self._writer, b".")

    def _execute(self, check: Check, directory: Path) -> Checked:
        reader, writer = os.pipe2(os.O_CLOEXEC)
        with os.fdopen(reader, "rb", buffering=0) as output:
            try:
                command = {"argv": list(check.action.argv), "streams": ["stdout", "stderr"], "tty": False}
                line = self._send(check, directory, {"do": "exec", **command}, [writer, writer])
            except OSError as error:  # the container has just ended
                return Checked(check, None, str(error))
            finally:
                os.close(writer)
            with line:
                return _outcome(check, line, output.fileno())

    def _reach(self, check: Check, directory: Path) -> Checked:
        """Have the shim make a connection, over which a request is made where one is wanted."""
        deadline = time.monotonic() + check.seconds
        place = {"host": check.action.host, "port": check.action.port, "seconds": check.seconds}
        try:
            with self._send(check, directory, {"do": "connect", **place}, []) as line:
                answer, connected = _connection(line, deadline)
            if connected is None:
                return _refusal(check, answer)
            return _requested(check, connected, deadline)
        except TimeoutError:
            return _refusal(check, {"timedOut": True})
        except OSError as error:  # the container has just ended
            return Checked(check, None, str(error))

    def _send(self, check: Check, directory: Path, request: dict[str, Any], fds: list[int]) -> socket.socket:
        """Send a request to the shim; return the line on which it answers, OSError when it has ended."""
        place = {"uid": check.uid, "container": check.container, "attempt": str(check.number)}
        line, theirs = socket.socketpair()
        try:
            given = {**request, **place, "key": self._key}
            control_socket.send(str(directory), given, [theirs.fileno(), *fds])
        except OSError:
            line.close()
            raise
        finally:
            theirs.close()
        return line


def _outcome(check: Check, line: socket.socket, output: int) -> Checked:
    """Follow a command to its end or to the end of the patience with it, which the shim notices by the line."""
    deadline = time.monotonic() + check.seconds
    said, heard = b"", b""
    poll = select.poll()
    for fd in (line.fileno(), output):
        poll.register(fd, select.POLLIN)
    while (left := deadline - time.monotonic()) > 0:
        for fd, _ in poll.poll(left * 1000):
            if fd == output:
                more = os.read(output, 64 * 1024)
                said = (said + more)[:OUTPUT_BYTES]
                if not more:
                    poll.unregister(output)
                continue
            more = line.recv(4096)
            heard += more
            answer = _answer(heard)
            if "exitCode" in answer:
                os.set_blocking(output, False)
                with contextlib.suppress(BlockingIOError):
                    said += os.read(output, OUTPUT_BYTES)
                words = said[:OUTPUT_BYTES].decode(errors="replace").strip()
                return Checked(check, answer["exitCode"] == 0, words)
            if "refused" in answer:
                # Kubernetes' kubelet takes a command that cannot be executed for one that fails.
                return Checked(check, False, str(answer["refused"]))
            if not more:
                return Checked(check, None, "the container has ended")
    command = " ".join(check.action.argv)
    return Checked(check, False, f'command "{command}" timed out after {check.seconds:g}s')


def _answer(heard: bytes) -> dict[str, object]:
    """Return all that has been said on a line, later words over earlier ones."""
    said: dict[str, object] = {}
    for each in heard.split(b"\n")[:-1]:
        said |= json.loads(each)
    return said


def _connection(line: socket.socket, deadline: float) -> tuple[dict[str, object], socket.socket | None]:
    """Return the answer to `connect` and the connection, None when there is none; TimeoutError when no answer comes in time."""
    heard, connected = b"", None
    while b"\n" not in heard:
        line.settimeout(max(0.001, deadline - time.monotonic()))
        data, fds, _, _ = socket.recv_fds(line, 4096, 1)
        for fd in fds:
            os.set_inheritable(fd, False)
            connected = socket.socket(fileno=fd)
        if not data:
            return {"refused": "the container has ended"}, connected
        heard += data
    return _answer(heard), connected


def _requested(check: Check, connected: socket.socket, deadline: float) -> Checked:
    """Make the request over a connection; without a path the connection is all that was wanted."""
    if not check.action.path:
        connected.close()
        return Checked(check, True)
    try:
        answer = http_probe.get(check.action, connected, deadline)
    except TimeoutError:
        return _refusal(check, {"timedOut": True})
    except (OSError, ValueError) as error:
        why = (getattr(error, "strerror", None) or str(error)).lower()
        return _refusal(check, {"timedOut": False, "refused": why})
    if 200 <= answer.status < 400:
        return Checked(check, True)
    return Checked(check, False, f"HTTP probe failed with statuscode: {answer.status}")


def _refusal(check: Check, answer: dict[str, object]) -> Checked:
    """Return what it means that there is no connection; that nothing was tried, as by shims of older versions, means nothing."""
    action = check.action
    if "timedOut" not in answer:
        return Checked(check, None, str(answer.get("refused")))
    what = f'Get "{action.url}"' if action.path else f"dial tcp {action.host}:{action.port}"
    if answer["timedOut"]:
        return Checked(check, False, f"{what}: no answer within {check.seconds:g}s")
    return Checked(check, False, f"{what}: {'' if action.path else 'connect: '}{answer['refused']}")
