"""The lines with which a reader of logs begins: the last ones of all, the first, or those around one line.

`nodes` always queries the nodes on the reader's behalf (`Backend.nodes_for`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from cluster.backend import Line, LogChunk, LogExtent, Nodes, NoLog
from jobs.logs import merge
from jobs.logs.merge import Entry, Log, Newest
from kube.errors import BadRequest
from kube.meta import parse_time

STEP_LINES = 200  # read at a time when a log is read backwards
STEP_BYTES = 32 * 1024


class Limits(NamedTuple):
    """How much is shown at first: at most so many lines and bytes."""

    lines: int
    size: int


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of many logs together.

    `offsets` is where reading continues in each log. `before` is how many earlier bytes of the logs are kept and not
    shown, None if there are some but their number is unknown. `lost` is how many bytes were dropped by rotation.
    `is_cut` says that a limit left out earlier lines that were requested by `since`, `has_more` that it left out
    later lines.
    """

    entries: list[Entry[Line]]
    offsets: dict[Log, int] = field(default_factory=dict)
    before: int | None = 0
    lost: int = 0
    is_cut: bool = False
    has_more: bool = False


class Mark(NamedTuple):
    """A line as links name it: its log, and the offset at which it begins there."""

    log: Log
    offset: int

    @classmethod
    def read(cls, text: str) -> Mark | None:
        """Read `UID.CONTAINER.ATTEMPT.OFFSET`; None for "", raise BadRequest for anything else."""
        if not text:
            return None
        parts = text.rsplit(".", 3)
        if len(parts) != 4 or not all(each.isascii() and each.isdigit() and len(each) < 16 for each in parts[2:]):
            raise BadRequest("The address names no line of a log: copy the link to the line once more.")
        return cls(Log(parts[0], parts[1], int(parts[2])), int(parts[3]))


def log_of(extent: LogExtent) -> Log:
    """Return the log of an extent."""
    return Log(extent.uid, extent.container, extent.attempt)


def tail(nodes: Nodes, extents: Sequence[LogExtent], limits: Limits, since: str = "") -> Window:
    """Return the last lines of logs together, none of them before the time `since`."""
    offsets = {log_of(each): each.end for each in extents}
    backwards = []
    for attempts in _by_container(extents):
        last = log_of(attempts[-1])
        chunk = _last(nodes, last, None)
        if chunk is not None:
            offsets[last] = chunk.next
        backwards.append(_backwards(nodes, attempts, chunk))
    newest = merge.newest(backwards, lines=limits.lines, size=limits.size, since=since)
    return Window(
        newest.entries,
        offsets,
        before=_before(nodes, extents, newest.entries, offsets, is_cut=newest.is_cut),
        lost=sum(each.first for each in extents),
        is_cut=newest.is_cut and bool(since),
    )


def around(nodes: Nodes, extents: Sequence[LogExtent], mark: Mark, limits: Limits) -> Window | None:
    """Return the lines around a marked one, half before and half after it; None if that is not kept."""
    if mark.log not in map(log_of, extents):
        return None
    try:
        line = next(iter(nodes.read_log(*mark.log, since_offset=mark.offset, most=1).lines), None)
    except NoLog:
        return None
    if line is None or line.offset != mark.offset:
        return None
    starts = _starts(nodes, extents, mark, line.time)
    half = Limits(limits.lines // 2, limits.size // 2)
    backwards = [_read_back(nodes, attempts, starts) for attempts in _by_container(extents)]
    earlier = merge.newest(backwards, lines=half.lines, size=half.size)
    # Of several lines of the same time, the marked one comes first.
    ours_first = sorted(extents, key=lambda each: log_of(each)[:2] != mark.log[:2])
    return _onwards(nodes, ours_first, starts, earlier, half)


def head(nodes: Nodes, extents: Sequence[LogExtent], limits: Limits) -> Window:
    """Return the first kept lines of logs together."""
    return _onwards(nodes, extents, {log_of(each): each.first for each in extents}, Newest([], is_cut=False), limits)


def _onwards(
    nodes: Nodes, extents: Sequence[LogExtent], starts: dict[Log, int], earlier: Newest[Line], limits: Limits
) -> Window:
    """Return a window of earlier lines and of those from `starts` on."""
    offsets = dict(starts)
    forwards = [_forwards(nodes, attempts, offsets) for attempts in _by_container(extents)]
    later, has_more = _first_of(forwards, limits)
    entries = earlier.entries + later
    return Window(
        entries,
        offsets,
        before=_before(nodes, extents, entries, starts, is_cut=earlier.is_cut),
        lost=sum(each.first for each in extents),
        has_more=has_more,
    )


def _by_container(extents: Sequence[LogExtent]) -> list[list[LogExtent]]:
    return [list(group) for _, group in groupby(extents, key=lambda each: (each.uid, each.container))]


def _last(nodes: Nodes, log: Log, before: int | None) -> LogChunk | None:
    try:
        return nodes.tail_log(*log, lines=STEP_LINES, most=STEP_BYTES, before=before)
    except NoLog:  # removed meanwhile
        return None


def _backwards(nodes: Nodes, attempts: Sequence[LogExtent], chunk: LogChunk | None) -> Iterator[Entry[Line]]:
    """Yield a container's lines, newest first; chunk is the end of the last attempt's log."""
    *earlier, last = attempts
    yield from _back_from(nodes, log_of(last), chunk)
    for extent in reversed(earlier):
        yield from _back_from(nodes, log_of(extent), _last(nodes, log_of(extent), None))


def _read_back(nodes: Nodes, attempts: Sequence[LogExtent], starts: dict[Log, int]) -> Iterator[Entry[Line]]:
    for extent in reversed(attempts):
        log = log_of(extent)
        yield from _back_from(nodes, log, _last(nodes, log, starts[log]))


def _back_from(nodes: Nodes, log: Log, chunk: LogChunk | None) -> Iterator[Entry[Line]]:
    while chunk is not None and chunk.lines:
        for line in reversed(chunk.lines):
            yield Entry(log, line)
        chunk = _last(nodes, log, chunk.start) if chunk.start else None


def _forwards(nodes: Nodes, attempts: Sequence[LogExtent], offsets: dict[Log, int]) -> Iterator[Entry[Line]]:
    """Yield a container's lines from the offsets of its attempts on, and advance the offsets."""
    for extent in attempts:
        log = log_of(extent)
        try:
            while (chunk := nodes.read_log(*log, since_offset=offsets[log], most=STEP_BYTES)).lines:
                offsets[log] = chunk.next
                for line in chunk.lines:
                    yield Entry(log, line)
        except NoLog:  # removed meanwhile
            continue


def _first_of(sequences: Sequence[Iterator[Entry[Line]]], limits: Limits) -> tuple[list[Entry[Line]], bool]:
    """Return the first entries of all sequences, and whether there are more."""
    entries: list[Entry[Line]] = []
    number, size = 0, limits.size
    for entry in merge.oldest_first(sequences):
        size -= len(entry.line.data)
        is_full = number == limits.lines or len(entries) == limits.lines * merge.MAX_PIECES
        if entries and (is_full or size < 0):
            return entries, True
        entries.append(entry)
        number += entry.line.whole
    return entries, False


def _starts(nodes: Nodes, extents: Sequence[LogExtent], mark: Mark, time: str) -> dict[Log, int]:
    """Return where each log stood when the line was printed."""
    since_us = parse_time(f"{time[:19]}Z") * 1000 + int(f"{time[20:-1]:0<6}"[:6])
    starts = {}
    for extent in extents:
        log = log_of(extent)
        try:
            starts[log] = nodes.log_offset(*log, since_us)
        except NoLog:  # removed meanwhile
            starts[log] = extent.end
    return {**starts, mark.log: mark.offset}


def _before(
    nodes: Nodes, extents: Sequence[LogExtent], entries: Sequence[Entry[Line]], offsets: dict[Log, int], *, is_cut: bool
) -> int | None:
    """Return how many bytes of the logs are kept before their first entries; None if there are some, but not how many."""
    if not nodes.offsets_are_bytes:
        return None if is_cut else 0
    first: dict[Log, int] = {}
    for log, line in entries:
        first.setdefault(log, line.offset)
    return sum(max(0, first.get(log, offsets[log]) - each.first) for each in extents for log in (log_of(each),))
