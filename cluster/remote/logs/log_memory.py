"""What a process remembers of the logs that it reads: how far they go, and their last lines.

All readers share it: the right to a log is checked for each of them before they come here.
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
AWAY_S = 2.0  # for which nothing is requested of a cluster that did not answer
MAX_SIZE = 32 * 1024 * 1024  # of lines that are remembered
MAX_LOGS = 20_000
T = TypeVar("T")


class LogMemory:
    """Reads logs, and remembers what it need not read again. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ends: dict[LogName, End] = {}
        self._blocks: OrderedDict[LogName, tuple[float, Block]] = OrderedDict()
        self._size = 0
        self._away_until, self._away = 0.0, ""

    def due(self, targets: Mapping[LogName, LogTarget]) -> list[LogName]:
        """Return the logs whose ends must be checked."""
        instances = {log: target.instance for log, target in targets.items()}
        with self._lock:
            return log_ends.due(self._ends, instances, clock.monotonic())

    def look(self, log: LogName, target: LogTarget) -> None:
        """Check how far a log goes; of a new one the last lines are read at once."""
        before = self.end(log)
        try:
            if before is None:
                self._read_back(log, target, FIRST_LINES)
                return
            last = self._ask(lambda: log_reading.last_line(target))
        except NoLog as error:
            if isinstance(error, Refused) and target.impersonation is not None:
                return  # others may read it
            self._note(log, log_ends.after_failure(before, str(error), clock.monotonic()))
            return
        is_final = target.instance.has_ended
        self._note(log, log_ends.after_answer(before, last, clock.monotonic(), is_final=is_final))

    def end(self, log: LogName) -> End | None:
        """Return the end of a log as last checked, None before that."""
        with self._lock:
            return self._ends.get(log)

    def reasons(self, uid: str) -> list[str]:
        """Return why there are no logs of a pod."""
        with self._lock:
            return log_ends.reasons(self._ends, uid)

    def read_on(self, log: LogName, target: LogTarget, offset: int, most: int) -> Stretch:
        """Return the lines from an offset on; NoLog when the log cannot be had."""
        stretch = self._ask(lambda: log_reading.read_on(target, offset, most))
        if stretch.is_all:
            end = End(stretch.end, stretch.last, clock.monotonic(), target.instance.has_ended)
            self._note(log, end)
        return stretch

    def block(self, log: LogName, target: LogTarget, before: int | None, lines: int) -> Block:
        """Return a log's last lines, read just now or, for those before an offset, with that offset among them."""
        with self._lock:
            at, cached = self._blocks.get(log, (0.0, None))
        if cached is not None:
            is_fresh = clock.monotonic() - at < FRESH_S
            if is_fresh or (before is not None and before <= cached.end):
                return cached
        return self._read_back(log, target, max(lines, FIRST_LINES))

    def longer(self, log: LogName, target: LogTarget, block: Block) -> Block:
        """Return more of the last lines of a log than a block has."""
        return self._read_back(log, target, 2 * block.requested)

    def _read_back(self, log: LogName, target: LogTarget, lines: int) -> Block:
        block = self._ask(lambda: log_reading.last_lines(target, lines))
        now = clock.monotonic()
        self._note(log, End(block.end, block.last, now, target.instance.has_ended))
        with self._lock:
            _, before = self._blocks.pop(log, (0.0, None))
            self._size += block.size - (before.size if before else 0)
            self._blocks[log] = now, block
            while self._size > MAX_SIZE and len(self._blocks) > 1:
                self._size -= self._blocks.popitem(last=False)[1][1].size
        return block

    def _ask(self, request: Callable[[], T]) -> T:
        """Send a request, unless the cluster has just not answered: each log would wait as long for that."""
        with self._lock:
            if clock.monotonic() < self._away_until:
                raise Away(self._away)
        try:
            return request()
        except Away as error:
            with self._lock:
                self._away_until, self._away = clock.monotonic() + AWAY_S, str(error)
            raise

    def _note(self, log: LogName, end: End) -> None:
        with self._lock:
            self._ends.pop(log, None)
            self._ends[log] = end
            while len(self._ends) > MAX_LOGS:
                self._ends.pop(next(iter(self._ends)))
