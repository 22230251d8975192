"""Offsets into logs of which a server tells only the time of each line.

Embedded nodes count bytes. An API server hands out a log from a moment on, in
whole seconds, or its last lines. So an offset here is the millisecond of a line with the number
of lines of that same millisecond before it. It grows with the log, is the same however the line
was reached, fits into 15 digits, which every reader keeps exactly, and stays valid while the log rotates.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import dropwhile
from typing import NamedTuple

from kube.meta import now_text, parse_time, timestamp

BEGIN = 1_577_836_800_000  # 2020-01-01, in epoch ms: no log is older, and the offsets fit until 2051
LINES = 1000  # of one millisecond; those from that one on have one offset and are read together
LINE_SIZE = 250  # bytes that a line takes in memory beside what was printed
LEAD_MS = 1000  # lines of both streams may be written a little out of order, also around a whole second
_STAMP = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)(?: |$)")


class TimedLine(NamedTuple):
    """A line as a server hands it out: its moment in epoch ms (0 without one), its time in UTC, and what was printed."""

    moment: int
    time: str
    data: bytes


class PlacedLine(NamedTuple):
    """A line and its offset; one without a time of its own has that of its moment."""

    offset: int
    time: str
    data: bytes


def read_line(line: bytes) -> TimedLine:
    """Split a line of a log with timestamps; a server's own remark has none."""
    stamp = _STAMP.match(line)
    if stamp is None:
        return TimedLine(0, "", line)
    second, digits, zone = (part.decode() for part in stamp.groups(b""))
    try:
        moment = parse_time(f"{second}{zone}")
    except ValueError:
        return TimedLine(0, "", line)
    micros = f"{digits:0<6}"[:6]
    # Written as our own logs write it: times are compared as texts.
    time = f"{timestamp(moment)[:19]}.{micros}Z"
    return TimedLine(moment + int(micros) // 1000, time, line[stamp.end() :])


def offset_of(moment: int, count: int = 0) -> int:
    """Return the offset of the line of a moment (epoch ms) that has `count` others of that moment before it."""
    return max(0, moment - BEGIN) * LINES + min(count, LINES - 1)


def since_time(offset: int) -> str:
    """Return the second from which a log must be read to find an offset in it."""
    return timestamp(offset // LINES + BEGIN - LEAD_MS)


def numbered(lines: Iterable[TimedLine]) -> Iterator[tuple[TimedLine, PlacedLine]]:
    """Yield each line also with its offset; the lines are those from a whole second on, or from the beginning of the log.

    A line whose clock went back, or which has no time, belongs to the moment before it.
    """
    reached, count = BEGIN, -1
    for line in lines:
        count = count + 1 if line.moment <= reached else 0
        reached = max(line.moment, reached)
        yield line, PlacedLine(offset_of(reached, count), line.time or now_text(reached), line.data)


def from_next_second(lines: Sequence[TimedLine]) -> Sequence[TimedLine]:
    """Leave out the lines of the first second, of which the last lines of a log may be only a part."""
    if not lines:
        return lines
    first = lines[0].moment // 1000
    return list(dropwhile(lambda line: line.moment // 1000 <= first, lines))


class Block(NamedTuple):
    """The last lines of a log: `requested` is how many were asked for, `last` the last one as the server wrote it."""

    lines: Sequence[PlacedLine]
    last: TimedLine | None
    is_all: bool  # nothing before these can be had
    requested: int
    size: int  # bytes that it takes, about

    @classmethod
    def of(cls, lines: Iterable[TimedLine], last: TimedLine | None, requested: int, *, is_all: bool) -> Block:
        """Return a block of lines that begin with a whole second or with the log."""
        placed = [line for _, line in numbered(lines)]
        return cls(placed, last, is_all, requested, sum(LINE_SIZE + len(line.data) for line in placed))

    @property
    def end(self) -> int:
        """The offset behind its lines."""
        return self.lines[-1].offset + 1 if self.lines else 0

    def tail(self, lines: int, most: int, before: int | None) -> tuple[Sequence[PlacedLine], int] | None:
        """Return the last so many lines (before an offset) of at most so many bytes, and the offset at which they begin.

        One is returned however long it is, and those of one offset are not parted. None when the log must be
        read further back to know them; the offset 0 says that nothing is before them.
        """
        end = len(self.lines)
        while before is not None and end and self.lines[end - 1].offset >= before:
            end -= 1
        begin, size = end, 0
        while begin and (begin == end or self._may_take(begin, end, size, lines, most)):
            begin -= 1
            size += len(self.lines[begin].data)
        if begin or self.is_all:
            return self.lines[begin:end], self.lines[begin].offset if begin else 0
        return None

    def _may_take(self, begin: int, end: int, size: int, lines: int, most: int) -> bool:
        """Whether the line before those that are taken is one more of them."""
        line = self.lines[begin - 1]
        if line.offset == self.lines[begin].offset:
            return True
        return end - begin < lines and size + len(line.data) <= most
