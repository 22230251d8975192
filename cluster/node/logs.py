"""Reading what containers printed, from offsets that stay valid while the log rotates.

An offset counts the bytes of the log since the attempt began, so a reader that
remembers where it was goes on there, and sees how much it missed when that
part has been rotated away. Only the files are needed: logs are readable while
the pod runs, and after it is gone until retention removes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from django.conf import settings

from cluster.node import attempts
from cluster.node.layout import Layout
from cluster.node.shim.crilog import PIECE, segments

if TYPE_CHECKING:
    from pathlib import Path

    from kube.meta import Object

CHUNK = 256 * 1024
LEAST = 2 * PIECE  # one entry always fits
TAIL_MOST = 4 * 1024 * 1024
SIMULATED = "simulated://"


class NoLog(Exception):
    """There is no log to read; the message says why, for people."""


class Line(NamedTuple):
    """One entry of a log. When it is not whole, the line goes on in the next entry of its stream."""

    time: str
    stream: str
    data: bytes
    whole: bool


class LogChunk(NamedTuple):
    """A stretch of a log: its entries, where it begins, and where the next read begins."""

    attempt: int
    lines: tuple[Line, ...]
    start: int
    next: int
    skipped: int  # bytes before `start` that were asked for and are gone
    ended: bool  # the attempt is over and this is the end of its log

    @property
    def data(self) -> bytes:
        """What the container wrote, both streams together."""
        return b"".join(line.data + b"\n" * line.whole for line in self.lines)

    @property
    def text(self) -> str:
        """`data` as text; what is not UTF-8 is shown as replacement characters."""
        return self.data.decode(errors="replace")


def attempt_numbers(pod_uid: str, container: str) -> list[int]:
    """Return the attempts of a container that still have files, in order."""
    return attempts.numbers(_layout().container(pod_uid, container))


def read(
    pod_uid: str, container: str, attempt: int | None = None, *, since_offset: int = 0, limit: int = CHUNK
) -> LogChunk:
    """Return the entries from an offset on, at most about `limit` bytes of log; NoLog when there is none.

    Without an attempt the latest is read. An offset in the middle of an entry
    begins with the next one.
    """
    number, directory = _directory(pod_uid, container, attempt)
    ended = (directory / "status.json").exists()  # looked at first: what is written later is not the end
    data, start, size = _bytes(directory, since_offset, max(limit, LEAST))
    usable = data[: data.rfind(b"\n") + 1]
    lines = tuple(line for raw in usable.split(b"\n")[:-1] if (line := _parse(raw)) is not None)
    following = start + len(usable)
    return LogChunk(
        number, lines, start, following, max(0, start - since_offset), ended and following >= size
    )


def tail(
    pod_uid: str,
    container: str,
    attempt: int | None = None,
    *,
    lines: int = 1000,
    most: int = TAIL_MOST,
) -> LogChunk:
    """Return the last lines of a log, with the offset at which following goes on; NoLog when there is none.

    Fewer lines are returned when they would take more than `most` bytes.
    """
    _, directory = _directory(pod_uid, container, attempt)
    end = _end(directory)
    most = min(end, max(LEAST, most))
    span = min(most, max(LEAST, lines * 160))
    while True:
        chunk = read(pod_uid, container, attempt, since_offset=end - span, limit=span + LEAST)
        whole = [index for index, line in enumerate(chunk.lines) if line.whole]
        if len(whole) > lines or span >= most:
            break
        span = min(most, span * 4)
    if len(whole) <= lines:
        return chunk
    # The piece that an unfinished last line has is shown beside the whole ones.
    return chunk._replace(lines=chunk.lines[whole[-lines - 1] + 1 :])


def why_absent(pod: Object) -> str:
    """Return in a sentence why a pod has no log (to be shown when NoLog was raised)."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    if any((one.get("containerID") or "").startswith(SIMULATED) for one in statuses):
        return "This pod ran on a simulated node: nothing was executed, so there is no output."
    if not (pod.get("spec") or {}).get("nodeName"):
        return "This pod has not been placed on a node yet, so there is no output."
    if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return "This pod has no output, or its log is older than the settings keep."
    return "This pod's container has not started yet, so there is no output."


def _layout() -> Layout:
    return Layout(settings.DATA)


def _directory(pod_uid: str, container: str, attempt: int | None) -> tuple[int, Path]:
    try:
        directory = _layout().container(pod_uid, container)
    except ValueError as error:
        raise NoLog(str(error)) from None
    known = attempts.numbers(directory)
    if attempt is None and known:
        attempt = known[-1]
    if attempt is None or attempt not in known:
        raise NoLog(
            f"Container {container} has no log of this attempt: it has not started, or its log was removed."
        )
    return attempt, directory / str(attempt)


def _end(directory: Path) -> int:
    for _ in range(3):
        known = segments(directory)
        if not known:
            return 0
        try:
            return known[-1][0] + (directory / known[-1][1]).stat().st_size
        except FileNotFoundError:  # rotated away meanwhile
            continue
    return 0


def _bytes(directory: Path, offset: int, limit: int) -> tuple[bytes, int, int]:
    """Return bytes from offset on (from the oldest kept if that is later), where they begin, and the log's end."""
    for _ in range(3):
        known = segments(directory)
        if not known:
            return b"", offset, offset
        try:
            return _read_segments(directory, known, offset, limit)
        except FileNotFoundError:  # rotated away meanwhile
            continue
    return b"", offset, offset + 1


def _read_segments(
    directory: Path, known: list[tuple[int, str]], offset: int, limit: int
) -> tuple[bytes, int, int]:
    end = known[-1][0] + (directory / known[-1][1]).stat().st_size
    begin = at = max(known[0][0], min(offset, end))
    parts = []
    for index, (start, name) in enumerate(known):
        following = known[index + 1][0] if index + 1 < len(known) else end
        if following <= at or limit <= 0:
            continue
        with (directory / name).open("rb") as file:
            file.seek(at - start)
            part = file.read(min(limit, following - at))
        parts.append(part)
        at += len(part)
        limit -= len(part)
        if at < following:
            break
    return b"".join(parts), begin, end


def _parse(raw: bytes) -> Line | None:
    parts = raw.split(b" ", 3)
    if len(parts) != 4 or parts[1] not in (b"stdout", b"stderr") or parts[2] not in (b"F", b"P"):
        return None  # the rest of an entry in whose middle the reading began
    return Line(parts[0].decode(errors="replace"), parts[1].decode(), parts[3], parts[2] == b"F")
