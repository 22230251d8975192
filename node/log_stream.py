"""A container's log as it comes, for the event loop: files are read in threads, and inotify reports new lines."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from cluster.backend import LogText
from node import inotify, logs, shim_claims
from node.logs import Raw
from node.shim.crilog import PREFIX

CHUNK = 512 * 1024
# After little was found, followers wait so long before they look again: a chatty container costs them no more.
PACE_S = 0.05
# Between a follower's checks whether the shim of a quiet log was killed; an orderly end is reported at once.
ALIVE_S = 10.0
T = TypeVar("T")
# Reading files must not hold up requests that query the database, nor the event loop.
_files = ThreadPoolExecutor(4, "node-log")


def start_of(directory: Path, options: LogText) -> int:
    """Return the offset of the first requested entry; FileNotFoundError when the log was removed."""
    begin = 0
    if options.tail_lines is not None:
        begin = logs.tail_offset(directory, options.tail_lines)
    if options.since_us is not None:
        begin = max(begin, logs.time_offset(directory, options.since_us))
    directory.stat()
    return begin


async def text(directory: Path, begin: int, options: LogText) -> AsyncIterator[bytes]:
    """Yield the requested part of an instance's log; when it is followed, until that instance ends."""
    remaining, fresh = options.limit_bytes, True
    async for raw in entries(directory, begin, follow=options.follow):
        part, fresh = logs.rendered(raw.data, stream=options.stream, times=options.timestamps, fresh=fresh)
        if remaining is not None:
            part = part[:remaining]
            remaining -= len(part)
        if part:
            yield part
        if remaining == 0:
            return


async def output(directory: Path, begin: int) -> AsyncIterator[list[tuple[str, bytes]]]:
    """Yield what an instance writes from an offset on, as (stream, bytes), until it ends."""
    async for raw in entries(directory, begin, follow=True):
        pieces = []
        for entry in raw.data.split(b"\n")[:-1]:
            stream = entry[PREFIX - 9 : PREFIX - 3].decode()
            pieces.append((stream, entry[PREFIX:] + b"\n" * (entry[PREFIX - 2] == ord("F"))))
        yield pieces


async def entries(directory: Path, offset: int, *, follow: bool) -> AsyncIterator[Raw]:
    """Yield the entries of a log from an offset to its end: as it is at first, or once the instance has ended."""
    end = None if follow else await on_files(logs.end_of, directory)
    is_over = False
    with inotify.of_loop().waiting(directory) as waiter:
        while end is None or offset < end:
            waiter.clear()
            limit = CHUNK if end is None else min(CHUNK, end - offset)
            try:
                raw = await on_files(logs.read_raw, directory, offset, limit)
            except FileNotFoundError:  # removed while it is read
                return
            offset = raw.next
            if raw.data:
                yield raw
            if raw.ended or (not raw.data and (end is not None or is_over)):
                return
            if not raw.data:
                # Where nobody is left to write any more, one last look is enough.
                await waiter.changed(ALIVE_S)
                is_over = not (waiter.event.is_set() or bool(await on_files(shim_claims.shim_of, directory)))
            elif follow and len(raw.data) < CHUNK // 2:
                await asyncio.sleep(PACE_S)


async def on_files(function: Callable[..., T], *arguments: Any) -> T:
    """Run what reads files."""
    return await asyncio.get_running_loop().run_in_executor(_files, function, *arguments)
