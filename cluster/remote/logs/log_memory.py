"""What a process remembers of the logs that it reads: how far they go, and their last lines.

All readers share it: the right to a log is looked at for each of them before anything is asked here.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TypeVar

from cluster import clock
from cluster.backend import NoLog
from cluster.remote.logs import log_ends, log_reading
from cluster.remote.logs.log_ends import End, LogName
from cluster.remote.logs.log_offsets import Block
from cluster.remote.logs.log_reading import Away, LogTarget, Refused, Stretch

FIRST_LINES = 200  # of a log that is looked at for the first time
FRESH_S = 2.0  # so long what was read of the end of a log counts as its end
AWAY_S = 2.0  # for which nothing is asked of a cluster that did not answer
MOST_SIZE = 32 * 1024 * 1024  # of lines that are remembered
MOST_LOGS = 20_000
T = TypeVar("T")


class LogMemory:
    """Reads logs, and remembers what it need not read again. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ends: dict[LogName, End] = {}
        self._blocks: OrderedDict[LogName, tuple[float, Block]] = OrderedDict()
        self._size = 0
        self._away_until, self._away = 0.0, ""

    def due(self, places: Mapping[LogName, LogTarget]) -> list[LogName]:
        """Return which logs must be asked for their ends."""
        instances = {log: place.instance for log, place in places.items()}
        with self._lock:
            return log_ends.due(self._ends, instances, clock.monotonic())

    def look(self, log: LogName, place: LogTarget) -> None:
        """Ask how far a log goes; of one that is new its last lines are read at once."""
        before = self.end(log)
        try:
            if before is None:
                self._read_back(log, place, FIRST_LINES)
                return
            last = self._asking(lambda: log_reading.last_line(place))
        except NoLog as error:
            if isinstance(error, Refused) and place.impersonation is not None:
                return  # others may read it
            self._note(log, log_ends.failed(before, str(error), clock.monotonic()))
            return
        is_final = place.instance.has_ended
        self._note(log, log_ends.seen(before, last, clock.monotonic(), is_final=is_final))

    def end(self, log: LogName) -> End | None:
        """Return what is known of the end of a log."""
        with self._lock:
            return self._ends.get(log)

    def reasons(self, uid: str) -> list[str]:
        """Return why there are no logs of a pod."""
        with self._lock:
            return log_ends.reasons(self._ends, uid)

    def read_on(self, log: LogName, place: LogTarget, offset: int, most: int) -> Stretch:
        """Return the lines from an offset on; NoLog when the log cannot be had."""
        found = self._asking(lambda: log_reading.read_on(place, offset, most))
        if found.is_all:
            end = End(found.end, found.last, clock.monotonic(), place.instance.has_ended)
            self._note(log, end)
        return found

    def block(self, log: LogName, place: LogTarget, before: int | None, lines: int) -> Block:
        """Return a log's last lines, read just now or, for those before an offset, with that offset among them."""
        with self._lock:
            at, known = self._blocks.get(log, (0.0, None))
        if known is not None:
            is_fresh = clock.monotonic() - at < FRESH_S
            if is_fresh or (before is not None and before <= known.end):
                return known
        return self._read_back(log, place, max(lines, FIRST_LINES))

    def longer(self, log: LogName, place: LogTarget, block: Block) -> Block:
        """Return more of the last lines of a log than a block has."""
        return self._read_back(log, place, 2 * block.asked)

    def _read_back(self, log: LogName, place: LogTarget, lines: int) -> Block:
        block = self._asking(lambda: log_reading.last_lines(place, lines))
        now = clock.monotonic()
        self._note(log, End(block.end, block.last, now, place.instance.has_ended))
        with self._lock:
            _, before = self._blocks.pop(log, (0.0, None))
            self._size += block.size - (before.size if before else 0)
            self._blocks[log] = now, block
            while self._size > MOST_SIZE and len(self._blocks) > 1:
                self._size -= self._blocks.popitem(last=False)[1][1].size
        return block

    def _asking(self, ask: Callable[[], T]) -> T:
        """Ask the cluster, unless it has just not answered: each log would wait as long for that."""
        with self._lock:
            if clock.monotonic() < self._away_until:
                raise Away(self._away)
        try:
            return ask()
        except Away as error:
            with self._lock:
                self._away_until, self._away = clock.monotonic() + AWAY_S, str(error)
            raise

    def _note(self, log: LogName, end: End) -> None:
        with self._lock:
            self._ends.pop(log, None)
            self._ends[log] = end
            while len(self._ends) > MOST_LOGS:
                self._ends.pop(next(iter(self._ends)))
