"""The node's port: the API server requests here what only the node can do, as of a kubelet.

`DATA/run/agent.sock` is a control socket like those of the shims (`node.shim.control_socket`),
open to the user who runs the cluster. The agent only knows which shim a request
is for and passes it on with its descriptors; it is neither in the way of the
data nor needed once a command runs.

Who asks has read the key in `DATA/run/node-key`, which pods cannot.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import socket
from pathlib import Path
from typing import Any

from node.agent.shims import Shims
from node.shim import control_socket

NAME = "agent.sock"
REQUESTS_AT_ONCE = 32  # before the agent goes on with everything else
KEY = "node-key"
log = logging.getLogger(__name__)


def key_of(data: Path) -> str:
    """Return the key of the node with this state directory, which is created once: its shims have it, too."""
    file = data / "run" / KEY
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = file.with_name(f"{KEY}.{os.getpid()}")
        with os.fdopen(os.open(draft, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as stream:
            stream.write(secrets.token_urlsafe(32))
        with contextlib.suppress(FileExistsError):
            os.link(draft, file)
        draft.unlink()
    return file.read_text()


def call(data: Path, request: dict[str, Any], fds: list[int]) -> socket.socket:
    """Send a request to the node with this state directory; return the socket on which it answers, one line of JSON each.

    OSError when no agent runs there. What was requested ends when the socket is closed.
    """
    line, agent_end = socket.socketpair()
    with agent_end:
        try:
            payload = {**request, "key": key_of(data)}
            control_socket.send(str(data / "run"), payload, [agent_end.fileno(), *fds], NAME)
        except OSError:
            line.close()
            raise
    line.setblocking(False)
    return line


class Port:
    """The agent's end of the port."""

    def __init__(self, data: Path) -> None:
        folder = data / "run"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.key = key_of(data)
        self.socket = control_socket.bind(str(folder), NAME)

    def answer(self, shims: Shims) -> None:
        """Pass the requests that have come on to their shims."""
        for _ in range(REQUESTS_AT_ONCE):
            received = control_socket.receive(self.socket)
            if received is None:
                return
            request, fds = received
            try:
                if control_socket.has_key(request, self.key):
                    directory = _directory(request, shims)
                    if directory is None:
                        _refuse(fds[0], "The container does not run any more.")
                    else:
                        control_socket.send(str(directory), request, fds)
            except BlockingIOError:
                _refuse(fds[0], "There are too many requests for the container at once. Please try again.")
            except OSError as error:
                log.warning("a request for container %s was not passed on: %s", request.get("container"), error)
                _refuse(fds[0], "The container has just ended, or it was started by an older version.")
            finally:
                control_socket.close(fds)

    def close(self) -> None:
        """Take no more requests."""
        self.socket.close()


def _directory(request: dict[str, Any], shims: Shims) -> Path | None:
    """Return the directory of the attempt that is meant, None when that does not run; the containers of a pod share its network."""
    uid, container = str(request.get("uid")), request.get("container")
    if request.get("do") == "connect" and not container:
        return shims.directory_of_any(uid)
    directory = shims.directory(uid, str(container))
    return directory if directory is not None and directory.name == str(request.get("attempt")) else None


def _refuse(fd: int, reason: str) -> None:
    line = control_socket.Line(socket.socket(fileno=fd))
    line.socket.setblocking(False)
    line.send({"refused": reason})
    line.socket.detach()
