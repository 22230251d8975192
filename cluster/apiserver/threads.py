"""The database from the event loop: readers side by side, writers one after the other.

SQLite has one write lock, and a writer that finds it taken sleeps and tries
again; a queue in front of it is fair and wakes at once. PostgreSQL orders the
writers by a row lock in the same way.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from django.db import connections

from cluster.connecting import connected

if TYPE_CHECKING:
    from collections.abc import Callable

READERS = 4
T = TypeVar("T")
_readers = ThreadPoolExecutor(READERS, "api-read")
_writer = ThreadPoolExecutor(1, "api-write")


async def read(function: Callable[..., T], *arguments: Any) -> T:
    """Run what only reads."""
    return await asyncio.get_running_loop().run_in_executor(_readers, connected, function, *arguments)


async def write(function: Callable[..., T], *arguments: Any) -> T:
    """Run what may write."""
    return await asyncio.get_running_loop().run_in_executor(_writer, connected, function, *arguments)


def close() -> None:
    """Close the connections of all threads; the threads stay."""
    for pool, size in ((_readers, READERS), (_writer, 1)):
        for done in [pool.submit(connections.close_all) for _ in range(size)]:
            done.result()
