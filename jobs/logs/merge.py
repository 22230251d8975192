"""Lines of many logs as one sequence, in the order of their times.

Each log keeps its own order, also where its clock was set back, and nothing of it is left out: a line whose
time is earlier than the one before it in its log follows that one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from typing import Generic, NamedTuple, Protocol, TypeVar

MOST_PIECES = 10  # times as many as lines are read


class Printed(Protocol):
    """A line, or a piece of one, as the order needs it: its time as logs write it, what was printed, and whether the line ends with it."""

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
    """A line and whose it is."""

    log: Log
    line: L


class Newest(NamedTuple, Generic[L]):
    """The last lines of many logs, the oldest first; is_cut when a limit left out older ones that were asked for."""

    entries: list[Entry[L]]
    is_cut: bool


def oldest_first(sequences: Iterable[Iterable[Entry[L]]]) -> Iterator[Entry[L]]:
    """Yield the entries of all sequences by their times; each is read only as far as it is needed."""
    return merge(*sequences, key=lambda entry: entry.line.time)


def newest(backwards: Sequence[Iterable[Entry[L]]], *, lines: int, size: int, since: str = "") -> Newest[L]:
    """Return the last lines of logs, each of which is read backwards and only as far as it is needed.

    At most so many lines of at most `size` bytes, and none before the time `since`; one is returned however long it is.
    The pieces of a line count as one, so that an hour of a progress bar does not fill the page.
    """
    entries: list[Entry[L]] = []
    number = 0
    # Of lines of one moment, those of the first log come first in the end.
    for entry in merge(*reversed(backwards), key=lambda entry: entry.line.time, reverse=True):
        if entry.line.time < since:
            break
        size -= len(entry.line.data)
        number += entry.line.whole
        if entries and (number > lines or size < 0 or len(entries) == lines * MOST_PIECES):
            return Newest(entries[::-1], is_cut=True)
        entries.append(entry)
    return Newest(entries[::-1], is_cut=False)
