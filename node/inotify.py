"""Waiting for files to change: one inotify descriptor for all who wait in an event loop.

A follower of a log holds no thread and makes no calls while its log is quiet.
Where the kernel has no inotify left to give, followers poll four times a
second.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import struct
import weakref
from collections.abc import Iterator
from pathlib import Path

LOOK_AGAIN_S = 0.25
IN_MODIFY = 0x2
IN_MOVED_TO = 0x80
IN_CREATE = 0x100
IN_DELETE_SELF = 0x400
IN_Q_OVERFLOW = 0x4000
IN_IGNORED = 0x8000
MASK = IN_MODIFY | IN_MOVED_TO | IN_CREATE | IN_DELETE_SELF
EVENT = struct.Struct("iIII")  # watch, mask, cookie, length of the name
BUFFER = 64 * 1024
_libc = ctypes.CDLL(None, use_errno=True)


class Waiter:
    """One follower's wait for a directory."""

    def __init__(self, *, blind: bool) -> None:
        self.event = asyncio.Event()
        self.blind = blind

    async def changed(self, timeout: float) -> None:
        """Return when something has changed since the last clear(), or after a while."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(timeout, LOOK_AGAIN_S) if self.blind else timeout):
                await self.event.wait()

    def clear(self) -> None:
        """Reset: from now on changes count. To be called before reading the files."""
        self.event.clear()


class Changes:
    """The directories that the followers of one event loop wait for."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._waiters: dict[int, set[Waiter]] = {}
        self._fd = _libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd >= 0:
            loop.add_reader(self._fd, self._on_ready)
            weakref.finalize(self, os.close, self._fd)

    @contextlib.contextmanager
    def waiting(self, directory: Path) -> Iterator[Waiter]:
        """Wait for a directory as long as the block lasts."""
        watch = _libc.inotify_add_watch(self._fd, os.fsencode(directory), MASK) if self._fd >= 0 else -1
        waiter = Waiter(blind=watch < 0)
        if watch >= 0:
            self._waiters.setdefault(watch, set()).add(waiter)
        try:
            yield waiter
        finally:
            self._leave(watch, waiter)

    def _leave(self, watch: int, waiter: Waiter) -> None:
        others = self._waiters.get(watch)
        if others is not None:
            others.discard(waiter)
            if not others:
                del self._waiters[watch]
                _libc.inotify_rm_watch(self._fd, watch)

    def _on_ready(self) -> None:
        try:
            data = os.read(self._fd, BUFFER)
        except BlockingIOError:
            return
        offset = 0
        while offset < len(data):
            watch, mask, _, length = EVENT.unpack_from(data, offset)
            offset += EVENT.size + length
            if mask & IN_Q_OVERFLOW:
                concerned = [waiter for waiters in self._waiters.values() for waiter in waiters]
            elif mask & IN_IGNORED:  # the directory is gone, and its watch with it
                concerned = list(self._waiters.pop(watch, ()))
                for waiter in concerned:
                    waiter.blind = True
            else:
                concerned = list(self._waiters.get(watch, ()))
            for waiter in concerned:
                waiter.event.set()


_by_loop: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Changes] = weakref.WeakKeyDictionary()


def of_loop() -> Changes:
    """Return the running event loop's."""
    loop = asyncio.get_running_loop()
    changes = _by_loop.get(loop)
    if changes is None:
        changes = _by_loop[loop] = Changes(loop)
    return changes
