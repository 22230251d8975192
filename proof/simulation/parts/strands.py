"""Threads of a program that run in turns: each goes on only while the world waits for it, so nothing hangs on the machine.

A strand runs until it waits: it sleeps, or what it wants of another one is not there yet. It stands where
`threading.Thread` does, and `Line` where `queue.Queue` does.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from cluster import clock
from proof.simulation.parts.faults import Killed

T = TypeVar("T")
_own = threading.local()


class Strand:
    """One of them. What ends it is raised where it was let go on."""

    def __init__(
        self, *, target: Callable[..., Any], name: str, args: tuple[Any, ...] = (), daemon: bool = True
    ) -> None:
        self.name = name
        self.due: float | None = None  # the monotonic second at which it goes on by itself
        self._waits_for: Callable[[], bool] = lambda: True
        self._error: BaseException | None = None
        self._is_killed = self._has_ended = False
        self._turn, self._pause = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, args=(target, args), name=name, daemon=daemon)

    def start(self) -> None:
        """Begin when it is let."""
        self._thread.start()

    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return not self._has_ended

    @property
    def is_ready(self) -> bool:
        """Whether it can go on."""
        return self.is_alive() and ((self.due is not None and self.due <= clock.monotonic()) or self._waits_for())

    def go_on(self) -> None:
        """Let it run until it waits, or ends."""
        self._turn.release()
        self._pause.acquire()
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def kill(self) -> None:
        """End it where it waits."""
        self._is_killed = True
        if self.is_alive():
            self._turn.release()
            self._pause.acquire()
        self._thread.join()

    def wait(self, is_there: Callable[[], bool], due: float | None = None) -> None:
        """Wait, in its own thread, until something is there or a monotonic second has come."""
        self._waits_for, self.due = is_there, due
        self._hand_over()
        self._waits_for, self.due = (lambda: True), None

    def _hand_over(self) -> None:
        self._pause.release()
        self._turn.acquire()
        if self._is_killed:
            raise Killed

    def _run(self, target: Callable[..., Any], args: tuple[Any, ...]) -> None:
        _own.strand = self
        self._turn.acquire()
        try:
            if not self._is_killed:
                target(*args)
        except BaseException as error:
            self._error = None if self._is_killed else error
        finally:
            self._has_ended = True
            self._pause.release()


def wait(is_there: Callable[[], bool], due: float | None = None) -> None:
    """Let the strand that asks wait; only strands can."""
    _own.strand.wait(is_there, due)


def sleep(seconds: float) -> None:
    """Let the strand that asks rest."""
    wait(lambda: False, clock.monotonic() + seconds)


class Line(Generic[T]):
    """What strands hand to each other, in order; who puts waits for room, and who gets for something to get."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: deque[T] = deque()

    def put(self, item: T) -> None:
        """Put something in, as soon as there is room."""
        if len(self._waiting) >= self._most:
            wait(lambda: len(self._waiting) < self._most)
        self._waiting.append(item)

    def get(self) -> T:
        """Take the first, as soon as there is one."""
        if not self._waiting:
            wait(lambda: bool(self._waiting))
        return self._waiting.popleft()

    def empty(self) -> bool:
        """Whether nothing waits."""
        return not self._waiting
