"""What whoever asks a node's port has in hand (`node.agent.server`): the line on which it answers, and this end of the streams."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import struct
import termios
from collections.abc import Collection
from typing import Any

from node import pipes

STREAMS = ("stdin", "stdout", "stderr")
TERMINAL = "tty"  # one descriptor that is both input and output
MOST_FDS = 4  # of an answer
# Who sends more without an end of the line, as another machine may, is not listened to.
LONGEST_ANSWER = 64 * 1024


class AnswerLine:
    """The socket on which a request is answered, one line of JSON each; what was asked for ends with it."""

    def __init__(self, line: socket.socket) -> None:
        self.line = line
        self._said = b""

    async def hear(self) -> tuple[dict[str, Any], list[int]]:
        """Return the next answer and its descriptors; {} when the container has ended, or nobody is there who answers."""
        fds: list[int] = []
        while b"\n" not in self._said:
            try:
                data, more, _, _ = socket.recv_fds(self.line, 65536, MOST_FDS)
            except BlockingIOError:
                await pipes.readable(self.line.fileno())
                continue
            except ConnectionResetError:
                data, more = b"", []
            for fd in more:
                os.set_inheritable(fd, False)
            fds += more
            if not data or len(self._said) > LONGEST_ANSWER:
                return {}, fds
            self._said += data
        first, _, self._said = self._said.partition(b"\n")
        try:
            found = json.loads(first)
        except (ValueError, RecursionError):
            found = {}
        return found if isinstance(found, dict) else {}, fds

    def close(self) -> None:
        """Let go."""
        self.line.close()


def open_pipes(names: Collection[str]) -> tuple[dict[str, int], dict[str, int]]:
    """Return both ends of the named streams, ours and the command's; reading and writing ours does not block."""
    ours: dict[str, int] = {}
    theirs: dict[str, int] = {}
    for name in STREAMS:
        if name in names:
            reader, writer = os.pipe2(os.O_CLOEXEC)
            ours[name], theirs[name] = (writer, reader) if name == "stdin" else (reader, writer)
            os.set_blocking(ours[name], False)
    return ours, theirs


def open_terminal(*, reads: bool) -> tuple[dict[str, int], dict[str, int]]:
    """Return both ends of a terminal; ours are its output and, if the command `reads`, its input."""
    ours, theirs = os.openpty()
    resize(ours, 80, 24)
    os.set_blocking(ours, False)
    ends = {"stdout": ours}
    if reads:
        ends["stdin"] = os.dup(ours)
    return ends, {TERMINAL: theirs}


def resize(terminal: int, width: int, height: int) -> None:
    """Tell a terminal, and thereby who runs at it, its size in characters."""
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))


def size_of(terminal: int) -> tuple[int, int]:
    """Return the width and height of a terminal in characters."""
    height, width, _, _ = struct.unpack("HHHH", fcntl.ioctl(terminal, termios.TIOCGWINSZ, bytes(8)))
    return width, height


def close_all(fds: dict[str, int]) -> None:
    """Close descriptors."""
    for fd in fds.values():
        os.close(fd)
