"""A hook of a container while it is carried out: a command beside the container's, a request, or a pause.

The shim does it and not the agent, so an agent that is killed neither loses nor repeats one.
"""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING, NoReturn

from node.shim import http_probe, init, tree
from node.shim.launch import Streams

if TYPE_CHECKING:
    from node.shim.container_runtime import ContainerRuntime
    from node.shim.order import Action

ERROR_BYTES = 1000


class Hook:
    """One hook that has begun; LaunchError when its command cannot be started."""

    def __init__(self, action: Action, container: ContainerRuntime, seconds: float) -> None:
        self.action = action
        self._container = container
        self.pid = 0
        self.until: float | None = None
        self._error_pipe = -1
        if action.argv:
            self.pid = container.execute(action.argv, Streams(), {})
        elif action.host:
            self.pid, self._error_pipe = _fork_request(action, seconds)
        else:
            self.until = time.monotonic() + action.seconds

    def problem(self, status: int) -> str:
        """Return why a hook that has ended with a wait status has failed; empty when it has not."""
        code = os.waitstatus_to_exitcode(status)
        if self._error_pipe >= 0:
            error = os.read(self._error_pipe, ERROR_BYTES).decode(errors="replace")
            os.close(self._error_pipe)
            self._error_pipe = -1
            return error or ("" if code == 0 else f"{_description(self.action)}: given up")
        if code == 0:
            return ""
        return f'command "{" ".join(self.action.argv)}" exited with {128 - code if code < 0 else code}'

    def kill(self) -> None:
        """End what still runs of it."""
        if self.pid:
            tree.kill(self._container.of_command(self.pid))


def _fork_request(action: Action, seconds: float) -> tuple[int, int]:
    """Make a request in a process of its own; return it, and a pipe with what went wrong."""
    reader, writer = os.pipe2(os.O_CLOEXEC)
    shim = os.pidfd_open(os.getpid())
    try:
        pid = os.fork()
        if pid == 0:
            _request(action, seconds, writer, shim)
    finally:
        os.close(shim)
    os.close(writer)
    return pid, reader


def _request(action: Action, seconds: float, writer: int, shim: int) -> NoReturn:
    try:
        os.setsid()
        init.default_signals()
        signal.set_wakeup_fd(-1)
        init.end_with(shim)
        deadline = time.monotonic() + seconds
        connected = http_probe.connect(action, seconds)
        if action.path:
            http_probe.get(action, connected, deadline)  # as for a kubelet, any status is a success
    except Exception as error:
        os.write(writer, f"{_description(action)}: {error}".encode()[:ERROR_BYTES])
    finally:
        os._exit(0)


def _description(action: Action) -> str:
    return f'Get "{action.url}"' if action.path else f"dial tcp {action.host}:{action.port}"
