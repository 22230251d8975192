"""The client's side of a node's port (`node.agent.server`): the line on which it answers, and this end of the streams."""

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
MAX_FDS = 4  # of an answer
# A node that sends more without an end of the line, as another machine may, is disconnected.
LONGEST_ANSWER = 64 * 1024


class AnswerLine:
    """The socket on which a request is answered, one line of JSON each; what was requested ends with it."""

    def __init__(self, line: socket.socket) -> None:
        self.line = line
        self._buffer = b""

    async def receive(self) -> tuple[dict[str, Any], list[int]]:
        """Return the next answer and its descriptors; {} when the container or the other side has ended."""
        fds: list[int] = []
        while b"\n" not in self._buffer:
            try:
                data, more, _, _ = socket.recv_fds(self.line, 65536, MAX_FDS)
            except BlockingIOError:
                await pipes.readable(self.line.fileno())
                continue
            except ConnectionResetError:
                data, more = b"", []
            for fd in more:
                os.set_inheritable(fd, False)
            fds += more
            if not data or len(self._buffer) > LONGEST_ANSWER:
                return {}, fds
            self._buffer += data
        first, _, self._buffer = self._buffer.partition(b"\n")
        try:
            answer = json.loads(first)
        except (ValueError, RecursionError):
            answer = {}
        return answer if isinstance(answer, dict) else {}, fds

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
    our_end, command_end = os.openpty()
    resize(our_end, 80, 24)
    os.set_blocking(our_end, False)
    ends = {"stdout": our_end}
    if reads:
        ends["stdin"] = os.dup(our_end)
    return ends, {TERMINAL: command_end}


def resize(terminal: int, width: int, height: int) -> None:
    """Set a terminal's size in characters, which its programs get as a signal."""
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))


def size_of(terminal: int) -> tuple[int, int]:
    """Return the width and height of a terminal in characters."""
    height, width, _, _ = struct.unpack("HHHH", fcntl.ioctl(terminal, termios.TIOCGWINSZ, bytes(8)))
    return width, height


def close_all(fds: dict[str, int]) -> None:
    """Close descriptors."""
    for fd in fds.values():
        os.close(fd)
