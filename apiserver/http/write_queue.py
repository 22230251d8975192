"""The queue in front of the one thread that writes.

Actors take turns. Whoever's turn it is has the first of his calls carried
out, together with all calls that wait and say that they can be: requests that
wait at the same time have no order among each other, so that they may be
answered in any. The thread may ask for those that came while it waited itself,
as it does for the log's lock.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

from cluster.store.connections import connected

MAX_TOGETHER = 100  # calls of one turn: some 50 ms in which others wait


@dataclass(eq=False)
class Call:
    """Something to be done: the function is given the items of all that is done together, and returns their outcomes.

    With the items comes a function that returns those that wait by now; whoever calls it
    must do these as well, and return their outcomes behind the others. An
    outcome that is an exception is raised in the caller's place. Calls of one
    `kind` can be done together; one of None is done alone.
    """

    function: Callable[[Sequence[Any], Callable[[], Sequence[Any]]], Sequence[Any]]
    item: Any
    kind: Hashable = None
    future: asyncio.Future[Any] | None = None

    @property
    def is_wanted(self) -> bool:
        """Whether somebody waits for the outcome still."""
        return self.future is not None and not self.future.done()

    def end(self, outcome: Any) -> None:
        """Hand the outcome to whoever waits."""
        if self.future is None or self.future.done():
            return
        if isinstance(outcome, BaseException):
            self.future.set_exception(outcome)
        else:
            self.future.set_result(outcome)


class WriteQueue:
    """Calls that wait for a thread, which does nothing here but its work and to ask for more of it."""

    def __init__(self, name: str) -> None:
        self.executor = ThreadPoolExecutor(1, name)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting = _Waiting()
        self._is_working = False

    async def run(self, actor: str, call: Call) -> Any:
        """Return the outcome of an actor's call, or raise it."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # what another loop waited for is of no use any more
            self._loop, self._waiting, self._is_working = loop, _Waiting(), False
        call.future = loop.create_future()
        self._waiting.add(actor, call)
        if not self._is_working:
            self._work()
        return await call.future

    def _work(self) -> None:
        """Have the thread do what is next, if there is anything."""
        calls = self._waiting.next()
        self._is_working = bool(calls)
        if calls and self._loop is not None:
            items, more = [call.item for call in calls], partial(self._waiting.more, calls)
            done = self._loop.run_in_executor(self.executor, connected, calls[0].function, items, more)
            done.add_done_callback(partial(self._end, calls))

    def _end(self, calls: Sequence[Call], done: asyncio.Future[Sequence[Any]]) -> None:
        self._work()
        error = done.exception()
        outcomes = done.result() if error is None else [error] * len(calls)
        for call, outcome in zip(calls, outcomes, strict=True):
            call.end(outcome)


class _Waiting:
    """What nobody has begun, by actor; the next turn is the first one's. The loop and the thread share it."""

    def __init__(self) -> None:
        self._calls: dict[str, deque[Call]] = {}
        self._lock = threading.Lock()

    def add(self, actor: str, call: Call) -> None:
        """Put a call behind the actor's others."""
        with self._lock:
            self._calls.setdefault(actor, deque()).append(call)

    def next(self) -> list[Call]:
        """Take the calls of the next turn."""
        with self._lock:
            while self._calls:
                actor = next(iter(self._calls))
                calls = self._calls.pop(actor)
                first = calls.popleft()
                if calls:
                    self._calls[actor] = calls
                if first.is_wanted:
                    return [first, *self._like(first, MAX_TOGETHER - 1)]
        return []

    def more(self, calls: list[Call]) -> list[Any]:
        """Take the calls that came since and can be done together with these; return their items."""
        with self._lock:
            alike = self._like(calls[0], MAX_TOGETHER - len(calls))
        calls += alike
        return [call.item for call in alike]

    def _like(self, first: Call, most: int) -> list[Call]:
        alike: list[Call] = []
        if first.kind is None:
            return alike
        for actor, calls in list(self._calls.items()):
            left = deque[Call]()
            for call in calls:
                fits = call.kind == first.kind and call.is_wanted and len(alike) < most
                (alike if fits else left).append(call)
            if left:
                self._calls[actor] = left
            else:
                del self._calls[actor]
        return alike
