"""Reading what containers printed, from offsets that stay valid while the log rotates.

An offset counts the bytes of the log since the attempt began, so a reader that
remembers where it was goes on there, and sees how much it missed when that
part has been rotated away. Only the files are needed: logs are readable while
the pod runs, and after it is gone until retention removes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from django.conf import settings

from cluster.backend import Line, LogChunk, NoLog
from kube.kinds.pod import ENDED
from kube.meta import Object
from node import attempts
from node.attempt import time_text
from node.paths import Layout
from node.shim.crilog import PIECE, PREFIX, segments

CHUNK = 256 * 1024
LEAST = 2 * PIECE  # one entry always fits
TAIL_MOST = 4 * 1024 * 1024
SIMULATED = "simulated://"
TIME = 27  # characters of an entry's time; in the middle of one it has fewer


class Raw(NamedTuple):
    """A stretch of a log as it is on disk: whole entries, where they begin, and where the next read begins."""

    data: bytes
    start: int
    next: int
    ended: bool  # the attempt is over and this is the end of its log


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
    return chunk_of(*stretch(pod_uid, container, attempt, since_offset, limit))


def stretch(pod_uid: str, container: str, attempt: int | None, since_offset: int, limit: int) -> tuple[int, Raw, int]:
    """Return the attempt, what `read` returns as it is on disk, and the requested offset."""
    number, directory = _directory(pod_uid, container, attempt)
    return number, read_raw(directory, since_offset, limit), since_offset


def chunk_of(attempt: int, raw: Raw, requested: int, before: int | None = None) -> LogChunk:
    """Return what was read from the requested offset; with `before` only the lines that begin before that."""
    lines = tuple(_lines(raw))
    chunk = LogChunk(attempt, lines, raw.start, raw.next, raw.ended, max(0, raw.start - requested))
    if before is None:
        return chunk
    earlier = tuple(line for line in lines if line.offset < before)
    return chunk._replace(lines=earlier, next=max(chunk.start, min(chunk.next, before)))


def _lines(raw: Raw) -> Iterator[Line]:
    offset = raw.start
    for entry in raw.data.split(b"\n")[:-1]:
        if (line := _parse(entry, offset)) is not None:
            yield line
        offset += len(entry) + 1


def read_raw(directory: Path, since_offset: int, limit: int = CHUNK) -> Raw:
    """Return the entries of an attempt from an offset on as they are on disk, at most about `limit` bytes."""
    ended = (directory / "status.json").exists()  # looked at first: what is written later is not the end
    data, start, size = _bytes(directory, since_offset, max(limit, LEAST))
    usable = data[: data.rfind(b"\n") + 1]
    following = start + len(usable)
    return Raw(usable, start, following, ended and following >= size)


def tail(
    pod_uid: str,
    container: str,
    attempt: int | None = None,
    *,
    lines: int = 1000,
    most: int = TAIL_MOST,
    before: int | None = None,
) -> LogChunk:
    """Return the last lines of a log, with the offset at which following goes on; NoLog when there is none.

    `before` is where an entry begins: then the lines before it are meant, and following goes on there.
    Fewer lines are returned when they would take more than `most` bytes.
    """
    return chunk_of(*last_stretch(pod_uid, container, attempt, lines, most, before), before=before)


def last_stretch(
    pod_uid: str, container: str, attempt: int | None, lines: int, most: int, before: int | None
) -> tuple[int, Raw, int]:
    """Return the attempt, what `tail` is made of as it is on disk, and the offset at which it should begin."""
    number, directory = _directory(pod_uid, container, attempt)
    end = end_of(directory) if before is None else before
    begin = tail_offset(directory, lines, most=most, end=end)
    return number, read_raw(directory, begin, end - begin + LEAST), begin


def end_of(directory: Path) -> int:
    """Return the offset at which the log of an attempt ends for now."""
    for _ in range(3):
        listed = segments(directory)
        if not listed:
            return 0
        try:
            return listed[-1][0] + (directory / listed[-1][1]).stat().st_size
        except FileNotFoundError:  # rotated away meanwhile
            continue
    return 0


def tail_offset(directory: Path, lines: int, *, most: int | None = None, end: int | None = None) -> int:
    """Return where the last lines of an attempt's log begin, or of its part before `end`, reading it backwards.

    The pieces that an unfinished last line has so far come beside the whole
    ones. With `most` it is the first entry of at most so many bytes instead,
    if that comes later.
    """
    end = end_of(directory) if end is None else end
    oldest = _first(directory)
    first = oldest if most is None else max(oldest, end - max(LEAST, most))
    at, missing = end, lines
    while at > first:
        block = max(first, at - CHUNK)
        data, start, _ = _bytes(directory, block, at - block)
        if start > block:  # rotated away meanwhile
            return start
        # Entries that begin in this block; what is before the first of them belongs to the block before.
        skip = 0 if block == oldest else data.find(b"\n") + 1
        entries = data[skip:].split(b"\n")[:-1]
        ends = [index for index, entry in enumerate(entries) if entry[PREFIX - 2 : PREFIX - 1] == b"F"]
        if len(ends) > missing:
            before = entries[: ends[-missing - 1] + 1]
            return block + skip + sum(map(len, before)) + len(before)
        missing -= len(ends)
        following = block + skip
        if following >= at:  # no entry begins here, which no log of ours has
            break
        at = following
    return at


def offset_at(pod_uid: str, container: str, attempt: int, since_us: int) -> int:
    """Return where the entries of a time and later begin in an attempt's log; NoLog when there is none."""
    _, directory = _directory(pod_uid, container, attempt)
    return time_offset(directory, since_us)


def time_offset(directory: Path, since_us: int) -> int:
    """Return where the entries of a time and later begin; the clock is taken to have gone forward."""
    since = time_text(since_us).encode()
    low, high = _first(directory), end_of(directory)
    while high - low > CHUNK:
        middle = (low + high) // 2
        data, start, _ = _bytes(directory, middle, LEAST)
        at = data.find(b"\n") + 1
        if start > middle or not at:  # rotated away meanwhile
            low = start
            break
        low, high = (start + at, high) if data[at : at + len(since)] < since else (low, middle)
    data, low, _ = _bytes(directory, low, high - low + LEAST)
    for entry in data.split(b"\n")[:-1]:
        if entry[: len(since)] >= since:
            break
        low += len(entry) + 1
    return low


def rendered(data: bytes, *, stream: str = "", times: bool = False, fresh: bool = True) -> tuple[bytes, bool]:
    """Return what a container wrote from entries of its log, and whether what follows begins a new line.

    stream limits it to "stdout" or "stderr". With times each line has its time
    before it, to nine digits as kubelets write it; fresh says whether the first
    entry begins a line.
    """
    entries = data.split(b"\n")
    del entries[-1]
    if stream:
        wanted = stream.encode()
        entries = [entry for entry in entries if entry[PREFIX - 9 : PREFIX - 3] == wanted]
    # Most stretches hold whole lines only, and logs are long: these two are several times faster than the loop.
    if entries and not (b" P " in data and any(entry[PREFIX - 2] == ord("P") for entry in entries)):
        if not times:
            return b"\n".join([entry[PREFIX:] for entry in entries]) + b"\n", True
        if fresh:
            lines = [b"%b000Z %b" % (entry[: PREFIX - 11], entry[PREFIX:]) for entry in entries]
            return b"\n".join(lines) + b"\n", True
    parts = []
    for entry in entries:
        if times and fresh:
            parts.append(entry[: PREFIX - 11] + b"000Z ")
        fresh = entry[PREFIX - 2] == ord("F")
        parts.append(entry[PREFIX:] + b"\n" * fresh)
    return b"".join(parts), fresh


def why_absent(pod: Object) -> str:
    """Return in a sentence why a pod has no log (to be shown when NoLog was raised)."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    if any((one.get("containerID") or "").startswith(SIMULATED) for one in statuses):
        return "This pod ran on a simulated node: nothing was executed, so there is no output."
    if not (pod.get("spec") or {}).get("nodeName"):
        return "This pod has not been placed on a node yet, so there is no output."
    if (pod.get("status") or {}).get("phase") in ENDED:
        return "This pod has no output, or its log is older than the settings keep."
    return "This pod's container has not started yet, so there is no output."


def _layout() -> Layout:
    return Layout(settings.DATA)


def _directory(pod_uid: str, container: str, attempt: int | None) -> tuple[int, Path]:
    try:
        directory = _layout().container(pod_uid, container)
    except ValueError as error:
        raise NoLog(str(error)) from None
    numbers = attempts.numbers(directory)
    if attempt is None and numbers:
        attempt = numbers[-1]
    if attempt is None or attempt not in numbers:
        raise NoLog(f"Container {container} has no log of this attempt: it has not started, or its log was removed.")
    return attempt, directory / str(attempt)


def _first(directory: Path) -> int:
    listed = segments(directory)
    return listed[0][0] if listed else 0


def _bytes(directory: Path, offset: int, limit: int) -> tuple[bytes, int, int]:
    """Return bytes from offset on (from the oldest segment if that is later), where they begin, and the log's end."""
    for _ in range(3):
        listed = segments(directory)
        if not listed:
            return b"", offset, offset
        try:
            return _read_segments(directory, listed, offset, limit)
        except FileNotFoundError:  # rotated away meanwhile
            continue
    return b"", offset, offset + 1


def _read_segments(directory: Path, listed: list[tuple[int, str]], offset: int, limit: int) -> tuple[bytes, int, int]:
    end = listed[-1][0] + (directory / listed[-1][1]).stat().st_size
    begin = at = max(listed[0][0], min(offset, end))
    parts = []
    for index, (start, name) in enumerate(listed):
        following = listed[index + 1][0] if index + 1 < len(listed) else end
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


def _parse(raw: bytes, offset: int) -> Line | None:
    parts = raw.split(b" ", 3)
    if (
        len(parts) != 4
        or len(parts[0]) != TIME
        or parts[1] not in (b"stdout", b"stderr")
        or parts[2] not in (b"F", b"P")
    ):
        return None  # the rest of an entry in whose middle the reading began
    return Line(parts[0].decode(errors="replace"), parts[1].decode(), parts[3], parts[2] == b"F", offset)
