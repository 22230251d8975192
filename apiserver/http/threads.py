"""The database from the event loop: readers side by side, writers one after the other.

SQLite has one write lock, and a writer that finds it taken sleeps and tries
again; a queue in front of it is fair and wakes at once. PostgreSQL orders the
writers by a row lock in the same way. What of one kind waits in the queue at the same
time is written together: the lock, the transaction and its commit cost the
same for one as for many (design: store, "Requests that wait are written together").

Fair means fair to actors: they take turns, so that nobody waits behind all
that somebody else asks for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from django.db import connections

from apiserver.http.write_queue import Call, WriteQueue
from cluster.store.connections import connected

T = TypeVar("T")
R = TypeVar("R")
asking: ContextVar[str] = ContextVar("asking", default="")  # the name of the actor that is worked for


class Pool:
    """Threads that actors share. At most `share` calls of one are in its queue: enough that no thread waits for them."""

    def __init__(self, name: str, size: int, share: int) -> None:
        self.size = size
        self._share = share
        self.executor = ThreadPoolExecutor(size, name)
        self._turns: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run a function when it is the actor's turn."""
        turn = self._turns.setdefault(asking.get(), asyncio.Semaphore(self._share))
        async with turn:
            return await asyncio.get_running_loop().run_in_executor(self.executor, function, *arguments)


_readers = Pool("api-read", 4, 3)
_writer = WriteQueue("api-write")


async def read(function: Callable[..., T], *arguments: Any) -> T:
    """Run what only reads."""
    return await _readers.run(connected, function, *arguments)


async def write(function: Callable[..., T], *arguments: Any, **options: Any) -> T:
    """Run what may write."""

    def alone(*_: object) -> list[T]:
        return [function(*arguments, **options)]

    done: T = await _writer.run(asking.get(), Call(alone, None))
    return done


async def write_together(
    function: Callable[[Sequence[T], Callable[[], Sequence[T]]], Sequence[R | Exception]], item: T, kind: Hashable
) -> R:
    """Have an item written together with those of the same function and kind that wait; return or raise its outcome.

    The function is called as that of a `Call`.
    """
    outcome: R = await _writer.run(asking.get(), Call(function, item, (function, kind)))
    return outcome


def close() -> None:
    """Close the connections of all threads; the threads stay."""
    for executor, size in ((_readers.executor, _readers.size), (_writer.executor, 1)):
        for done in [executor.submit(connections.close_all) for _ in range(size)]:
            done.result()
