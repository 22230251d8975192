"""A container's output on disk, in the CRI log format that kubelets write.

Each line is ``<time> <stream> <F|P> <bytes>``; P marks a piece of a line that
goes on in the next entry. The bytes are the program's own: binary stays binary.

The log is one endless sequence of bytes cut into segments, files named by the
offset of their first byte. A rotation only opens the next segment and removes
the oldest, so an offset means the same byte for as long as that byte exists and
a reader never sees a file change its name.
"""

from __future__ import annotations

import errno
import os
import time
from typing import TYPE_CHECKING

from node.shim.path_walk import WRITE

if TYPE_CHECKING:
    from pathlib import Path

PIECE = 16 * 1024  # a longer line is split, as container runtimes do
PREFIX = len("2026-01-01T00:00:00.000000Z stdout F ")  # what every entry begins with; "stderr" is as long
HOLD_S = 0.25  # how long an unfinished line waits for its end
SEGMENT_BYTES = 10 * 1024 * 1024
SEGMENTS = 5


def segment_name(offset: int) -> str:
    """Return the file name of the segment whose first byte has this offset."""
    return f"log.{offset:015d}"


def segments(directory: str | Path) -> list[tuple[int, str]]:
    """Return (offset, file name) of every segment in directory, oldest first."""
    names = [name for name in os.listdir(directory) if name.startswith("log.") and name[4:].isdecimal()]
    return sorted((int(name[4:]), name) for name in names)


def stamp(now: float) -> bytes:
    """Return a time as the log shows it, with microseconds."""
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(now))}.{int(now % 1 * 1e6):06d}Z".encode()


def _cut(line: bytes) -> list[bytes]:
    if len(line) <= PIECE:
        return [line]
    return [line[start : start + PIECE] for start in range(0, len(line), PIECE)]


class CriLog:
    """Writes two streams into one rotated log; a full disk costs output, never the container.

    What could not be written is counted, and the log has a line about it as
    soon as there is room again.
    """

    def __init__(self, directory: str, segment_bytes: int = SEGMENT_BYTES, count: int = SEGMENTS) -> None:
        self.directory = directory
        self.segment_bytes = segment_bytes
        self.count = count
        self.partial = {"stdout": b"", "stderr": b""}
        self.partial_since = 0.0
        self.lost_bytes = 0
        self.offset = 0
        self.start = 0
        self.fd = -1

    def feed(self, stream: str, data: bytes) -> None:
        """Take what a stream produced; a line without its end waits until flush_due()."""
        *lines, rest = (self.partial[stream] + data).split(b"\n")
        prefix = stamp(time.time()) + b" " + stream.encode()
        full, piece = prefix + b" F ", prefix + b" P "
        entries: list[bytes] = []
        for line in lines:
            *pieces, last = _cut(line)
            for part in pieces:
                entries += (piece, part, b"\n")
            entries += (full, last, b"\n")
        *pieces, rest = _cut(rest)
        for part in pieces:
            entries += (piece, part, b"\n")
        # What comes to an unfinished line leaves its time as it is: a bar that is always being redrawn is seen as well.
        continues = self.partial[stream] and not lines
        self.partial[stream] = b""
        if rest and not continues and not any(self.partial.values()):
            self.partial_since = time.monotonic()
        self.partial[stream] = rest
        self._write(b"".join(entries))

    def flush_due(self) -> float | None:
        """Return the monotonic time at which flush() is due, None when nothing is held back."""
        return self.partial_since + HOLD_S if any(self.partial.values()) else None

    def flush(self) -> None:
        """Write unfinished lines as they are, marked P: nothing is added that the program did not write."""
        for stream, rest in self.partial.items():
            if rest:
                self.partial[stream] = b""
                self._write(stamp(time.time()) + b" " + stream.encode() + b" P " + rest + b"\n")

    def note(self, text: str) -> None:
        """Write a line of the cluster's own into stderr."""
        self._write(stamp(time.time()) + b" stderr F " + text.encode() + b"\n")

    def close(self) -> None:
        """Flush and close."""
        self.flush()
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def _write(self, data: bytes) -> None:
        if not data:
            return
        if self.lost_bytes:
            text = f"[{self.lost_bytes} bytes of output were lost because the disk was full]\n"
            data = stamp(time.time()) + b" stderr F " + text.encode() + data
        try:
            self._append(data)
            self.lost_bytes = 0
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS):
                raise
            self.lost_bytes += len(data)

    def _append(self, data: bytes) -> None:
        if self.fd < 0 or self.offset - self.start >= self.segment_bytes:
            self._rotate()
        before = self.offset
        view = memoryview(data)
        try:
            while view:
                written = os.write(self.fd, view)
                self.offset += written
                view = view[written:]
        except OSError:
            # A torn line would spoil the next one: take back what went in.
            os.ftruncate(self.fd, before - self.start)
            self.offset = before
            raise

    def _rotate(self) -> None:
        path = f"{self.directory}/{segment_name(self.offset)}"
        fd = os.open(path, WRITE | os.O_APPEND, 0o644)
        if self.fd >= 0:
            os.close(self.fd)
        self.fd, self.start = fd, self.offset
        for _, name in segments(self.directory)[: -self.count]:
            os.unlink(f"{self.directory}/{name}")
