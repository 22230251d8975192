"""Reading and writing descriptors from the event loop."""

from __future__ import annotations

import asyncio
import errno
import os
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

CHUNK = 64 * 1024
HELD_BYTES = 1 << 20  # buffered for a reader that is slower


async def read(fd: int, size: int = CHUNK) -> bytes:
    """Return what a descriptor has, waiting for it; b"" at its end."""
    while True:
        try:
            return os.read(fd, size)
        except BlockingIOError:
            await readable(fd)
        except OSError as error:
            if error.errno in (errno.EIO, errno.ECONNRESET):  # a terminal or a peer that is gone
                return b""
            raise


async def readable(fd: int) -> None:
    """Wait until a descriptor is readable, be it at its end."""
    loop = asyncio.get_running_loop()
    await _ready(loop.add_reader, loop.remove_reader, fd)


async def write(fd: int, data: bytes) -> None:
    """Write everything, waiting for room; BrokenPipeError when nobody reads it any more."""
    loop = asyncio.get_running_loop()
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BlockingIOError:
            await _ready(loop.add_writer, loop.remove_writer, fd)


async def _ready(add: Callable[..., Any], remove: Callable[[int], Any], fd: int) -> None:
    future = asyncio.get_running_loop().create_future()
    add(fd, _wake, future)
    try:
        await future
    finally:
        remove(fd)


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class Feeder:
    """Writes to a descriptor what comes in, so that the writer need not wait for each piece."""

    def __init__(
        self, fd: int, last_word: bytes = b"", written: Callable[[int], Awaitable[None]] | None = None
    ) -> None:
        self.fd = fd
        self.last_word = last_word  # the end of input for a terminal
        self._written = written  # is called with how many bytes were written
        self._parts: deque[bytes] = deque()
        self._size = 0
        self._is_closed = False
        self._changed = asyncio.Condition()

    async def feed(self, data: bytes) -> None:
        """Take a piece; waits when much is buffered already."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._size < HELD_BYTES or self._is_closed)
            if self._is_closed:
                return
            self._parts.append(data)
            self._size += len(data)
            self._changed.notify_all()

    async def close(self) -> None:
        """Take no more; run() ends once everything is written."""
        async with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    async def run(self) -> None:
        """Write until close(), or until nobody reads; then close the descriptor."""
        try:
            while (part := await self._next()) is not None:
                await write(self.fd, part)
                if self._written is not None:
                    await self._written(len(part))
            if self.last_word:
                await write(self.fd, self.last_word)
        except OSError:  # the reader has closed its end, which is its right
            await self.close()
        finally:
            self.release()

    def release(self) -> None:
        """Close the descriptor, if that has not been done."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    async def _next(self) -> bytes | None:
        async with self._changed:
            await self._changed.wait_for(lambda: self._parts or self._is_closed)
            if not self._parts:
                return None
            part = self._parts.popleft()
            self._size -= len(part)
            self._changed.notify_all()
            return part
