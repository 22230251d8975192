"""A line in which processes and threads of one machine wait for their turn, by a lock on a file.

The kernel wakes who waits, about in the order of coming, and takes the lock from whoever dies.
"""

from __future__ import annotations

import fcntl
import os
import threading

from cluster import clock

# Threads of this process wait for each other first, which costs less than the file; by the line's path.
_of_process: dict[str, threading.Lock] = {}


class Line:
    """A thread's entry to the line, which it uses again and again."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._process = _of_process.setdefault(path, threading.Lock())
        self._file = -1
        self._has_turn = False

    def enter(self, timeout_s: float) -> bool:
        """Wait for the turn; say whether it came in time. Whoever has it already keeps it."""
        if self._has_turn:
            return True
        due = clock.monotonic() + timeout_s
        if not self._process.acquire(timeout=timeout_s):
            return False
        try:
            self._has_turn = self._lock(due)
        finally:
            if not self._has_turn:
                self._process.release()
        return self._has_turn

    def _lock(self, due: float) -> bool:
        if self._file < 0:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return self._wait(due)
        return True

    def _wait(self, due: float) -> bool:
        # The kernel knows no time limit for this wait, so a thread of its own does it.
        waiter = _Waiter(self._file)
        try:
            came = waiter.wait(due - clock.monotonic())
        except BaseException:
            if self._has_come(waiter):
                fcntl.flock(self._file, fcntl.LOCK_UN)
            raise
        return came or self._has_come(waiter)

    def _has_come(self, waiter: _Waiter) -> bool:
        """Wait no longer; say whether the lock came all the same. If not, the file is the waiter's."""
        if waiter.give_up():
            self._file = -1
        return self._file >= 0

    def leave(self) -> None:
        """Give the turn to the next."""
        if self._has_turn:
            self._has_turn = False
            fcntl.flock(self._file, fcntl.LOCK_UN)
            self._process.release()

    def close(self) -> None:
        """Give up the turn and the place."""
        self.leave()
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


class _Waiter(threading.Thread):
    """Waits for the lock of an open file, which is closed when it comes too late."""

    def __init__(self, file: int) -> None:
        super().__init__(name="line", daemon=True)
        self._file = file
        self._came = threading.Event()
        self._given_up = False
        self._deciding = threading.Lock()
        self.start()

    def run(self) -> None:
        fcntl.flock(self._file, fcntl.LOCK_EX)
        with self._deciding:
            if self._given_up:
                os.close(self._file)
            else:
                self._came.set()

    def wait(self, timeout_s: float) -> bool:
        """Wait for the lock; say whether it came."""
        return self._came.wait(timeout_s)

    def give_up(self) -> bool:
        """Want the lock no more; False when it has come."""
        with self._deciding:
            self._given_up = not self._came.is_set()
            return self._given_up
