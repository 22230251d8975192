"""Lines of many logs as one sequence, in order of time.

Each log keeps its own order, even if its clock was set back: a line with an earlier time than the line before it in the
same log still follows that line. No line is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from typing import Generic, NamedTuple, Protocol, TypeVar

MAX_PIECES = 10  # at most this many times as many pieces as lines are read


class Printed(Protocol):
    """A line or a piece of one: its time as logs write it, what was printed, and whether the line ends here (`whole`)."""

    @property
    def time(self) -> str: ...

    @property
    def data(self) -> bytes: ...

    @property
    def whole(self) -> bool: ...


L = TypeVar("L", bound=Printed)


class Log(NamedTuple):
    """One attempt to run a container of a pod, which has a log of its own."""

    uid: str
    container: str
    attempt: int


class Entry(NamedTuple, Generic[L]):
    """A line and its log."""

    log: Log
    line: L


class Newest(NamedTuple, Generic[L]):
    """The last lines of many logs, the oldest first; `is_cut`: a limit left out older lines that were asked for."""

    entries: list[Entry[L]]
    is_cut: bool


def oldest_first(sequences: Iterable[Iterable[Entry[L]]]) -> Iterator[Entry[L]]:
    """Yield the entries of all sequences in order of time; each sequence is read only as far as needed."""
    return merge(*sequences, key=lambda entry: entry.line.time)


def newest(backwards: Sequence[Iterable[Entry[L]]], *, lines: int, size: int, since: str = "") -> Newest[L]:
    """Return the last lines of logs; each log is read backwards, and only as far as needed.

    Return at most `lines` lines with `size` bytes in all, and none before the time `since`; the newest entry is returned
    however long it is. The pieces of a line count as one line, so that an hour of a progress bar does not fill the page.
    """
    entries: list[Entry[L]] = []
    number = 0
    # Reversed here and again below, so that lines of the same time end up in the order of the logs.
    for entry in merge(*reversed(backwards), key=lambda entry: entry.line.time, reverse=True):
        if entry.line.time < since:
            break
        size -= len(entry.line.data)
        number += entry.line.whole
        if entries and (number > lines or size < 0 or len(entries) == lines * MAX_PIECES):
            return Newest(entries[::-1], is_cut=True)
        entries.append(entry)
    return Newest(entries[::-1], is_cut=False)
