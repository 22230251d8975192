"""Running probes: commands, requests and connections through the shims' control sockets, each in a thread of its own.

A connection is made where the container is: only its shim is in its network, and resolves the names there.

The agent starts a check and goes on. Results are queued until it takes them,
and a byte in a pipe wakes it when there are some.
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
    """A probe of an attempt that is to be run, with its timeout in seconds."""

    uid: str
    container: str
    number: int
    kind: Kind
    action: Action
    seconds: float


class CheckResult(NamedTuple):
    """Whether a probe has passed, None when that could not be found out, and why it has failed."""

    check: Check
    passed: bool | None
    message: str = ""


class Checks:
    """The probes that are running."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._answers: deque[CheckResult] = deque()
        self.reader, self._writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def start(self, check: Check, directory: Path | None) -> None:
        """Run a probe; directory is that of the attempt, None when it does not run."""
        try:
            threading.Thread(target=self._run, args=(check, directory), name="probe", daemon=True).start()
        except RuntimeError as error:  # no room for a thread: to be run again like one without a result
            self._put(CheckResult(check, None, str(error)))

    def results(self) -> list[CheckResult]:
        """Return the results that have come since the last call."""
        taken = []
        while self._answers:
            taken.append(self._answers.popleft())
        return taken

    def close(self) -> None:
        """Close the pipe; results that are still to come are dropped."""
        os.close(self.reader)
        writer, self._writer = self._writer, -1
        os.close(writer)

    def _run(self, check: Check, directory: Path | None) -> None:
        try:
            if directory is None:
                result = CheckResult(check, None)
            else:
                result = self._execute(check, directory) if check.action.argv else self._connect(check, directory)
        # No room for a socket or a pipe, or whatever it is: without a result the probe would never be run again.
        except Exception as error:
            result = CheckResult(check, None, str(error))
        self._put(result)

    def _put(self, result: CheckResult) -> None:
        self._answers.append(result)
        with contextlib.suppress(OSError):  # full: the agent is woken anyway; closed: it has ended
            os.write(self._writer, b".")

    def _execute(self, check: Check, directory: Path) -> CheckResult:
        reader, writer = os.pipe2(os.O_CLOEXEC)
        with os.fdopen(reader, "rb", buffering=0) as output:
            try:
                command = {"argv": list(check.action.argv), "streams": ["stdout", "stderr"], "tty": False}
                line = self._send(check, directory, {"do": "exec", **command}, [writer, writer])
            except OSError as error:  # the container has just ended
                return CheckResult(check, None, str(error))
            finally:
                os.close(writer)
            with line:
                return _command_result(check, line, output.fileno())

    def _connect(self, check: Check, directory: Path) -> CheckResult:
        """Have the shim make a connection, over which a request is made where one is wanted."""
        deadline = time.monotonic() + check.seconds
        target = {"host": check.action.host, "port": check.action.port, "seconds": check.seconds}
        try:
            with self._send(check, directory, {"do": "connect", **target}, []) as line:
                answer, connected = _connection(line, deadline)
            if connected is None:
                return _failure(check, answer)
            return _request(check, connected, deadline)
        except TimeoutError:
            return _failure(check, {"timedOut": True})
        except OSError as error:  # the container has just ended
            return CheckResult(check, None, str(error))

    def _send(self, check: Check, directory: Path, request: dict[str, Any], fds: list[int]) -> socket.socket:
        """Send a request to the shim; return the line on which it answers, OSError when it has ended."""
        attempt = {"uid": check.uid, "container": check.container, "attempt": str(check.number)}
        line, shim_end = socket.socketpair()
        try:
            payload = {**request, **attempt, "key": self._key}
            control_socket.send(str(directory), payload, [shim_end.fileno(), *fds])
        except OSError:
            line.close()
            raise
        finally:
            shim_end.close()
        return line


def _command_result(check: Check, line: socket.socket, output: int) -> CheckResult:
    """Follow a command to its end or to its timeout, which ends the line and thereby the command."""
    deadline = time.monotonic() + check.seconds
    printed, received = b"", b""
    poll = select.poll()
    for fd in (line.fileno(), output):
        poll.register(fd, select.POLLIN)
    while (remaining := deadline - time.monotonic()) > 0:
        for fd, _ in poll.poll(remaining * 1000):
            if fd == output:
                data = os.read(output, 64 * 1024)
                printed = (printed + data)[:OUTPUT_BYTES]
                if not data:
                    poll.unregister(output)
                continue
            data = line.recv(4096)
            received += data
            answer = _merged_answers(received)
            if "exitCode" in answer:
                os.set_blocking(output, False)
                with contextlib.suppress(BlockingIOError):
                    printed += os.read(output, OUTPUT_BYTES)
                message = printed[:OUTPUT_BYTES].decode(errors="replace").strip()
                return CheckResult(check, answer["exitCode"] == 0, message)
            if "refused" in answer:
                # Kubernetes' kubelet takes a command that cannot be executed for one that fails.
                return CheckResult(check, False, str(answer["refused"]))
            if not data:
                return CheckResult(check, None, "the container has ended")
    command = " ".join(check.action.argv)
    return CheckResult(check, False, f'command "{command}" timed out after {check.seconds:g}s')


def _merged_answers(received: bytes) -> dict[str, object]:
    """Return all answers that were received on a line in one object, later ones over earlier ones."""
    answers: dict[str, object] = {}
    for line in received.split(b"\n")[:-1]:
        answers |= json.loads(line)
    return answers


def _connection(line: socket.socket, deadline: float) -> tuple[dict[str, object], socket.socket | None]:
    """Return the answer to `connect` and the connection, None when there is none; TimeoutError when no answer comes in time."""
    received, connected = b"", None
    while b"\n" not in received:
        line.settimeout(max(0.001, deadline - time.monotonic()))
        data, fds, _, _ = socket.recv_fds(line, 4096, 1)
        for fd in fds:
            os.set_inheritable(fd, False)
            connected = socket.socket(fileno=fd)
        if not data:
            return {"refused": "the container has ended"}, connected
        received += data
    return _merged_answers(received), connected


def _request(check: Check, connected: socket.socket, deadline: float) -> CheckResult:
    """Make the request over a connection; without a path the connection is all that was wanted."""
    if not check.action.path:
        connected.close()
        return CheckResult(check, True)
    try:
        answer = http_probe.get(check.action, connected, deadline)
    except TimeoutError:
        return _failure(check, {"timedOut": True})
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        return _failure(check, {"timedOut": False, "refused": reason})
    if 200 <= answer.status < 400:
        return CheckResult(check, True)
    return CheckResult(check, False, f"HTTP probe failed with statuscode: {answer.status}")


def _failure(check: Check, answer: dict[str, object]) -> CheckResult:
    """Return the result for a connection that failed; None where the shim tried nothing, as those of older versions."""
    action = check.action
    if "timedOut" not in answer:
        return CheckResult(check, None, str(answer.get("refused")))
    attempted = f'Get "{action.url}"' if action.path else f"dial tcp {action.host}:{action.port}"
    if answer["timedOut"]:
        return CheckResult(check, False, f"{attempted}: no answer within {check.seconds:g}s")
    return CheckResult(check, False, f"{attempted}: {'' if action.path else 'connect: '}{answer['refused']}")
