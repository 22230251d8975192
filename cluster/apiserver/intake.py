"""How much of request bodies the server takes at a time, so that its memory and its event loop stay free.

Small bodies are read, decoded and checked on the event loop: that is faster
than a thread. A large one goes to threads of its own, and only a few large
ones are in work at once, because an object takes many times the memory of its
text. What waits, waits as bytes, and of those there is a limit too.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from kube.errors import TooManyRequests

if TYPE_CHECKING:
    from collections.abc import Callable

LARGE = 64 * 1024  # bytes; a body of this size takes some milliseconds
MOST_AT_ONCE = 4  # large bodies in work
MOST_HELD = 128 * 1024 * 1024  # bytes of bodies that wait
T = TypeVar("T")
_threads = ThreadPoolExecutor(2, "api-bodies")


class Intake:
    """The bodies that one server holds."""

    def __init__(self) -> None:
        self.held = 0
        self._work = asyncio.Semaphore(MOST_AT_ONCE)

    def hold(self, size: int) -> None:
        """Count bytes that came in; TooManyRequests when there are too many of them."""
        if self.held + size > MOST_HELD:
            raise TooManyRequests(
                "Too many large requests are being served. Please wait and try again.", retry_after_s=1
            )
        self.held += size

    async def begin(self) -> None:
        """Wait until a large body may be worked on."""
        await self._work.acquire()

    def end(self, size: int, *, begun: bool) -> None:
        """Forget a body of this many bytes, and make room for the next large one."""
        self.held -= size
        if begun:
            self._work.release()


async def work(function: Callable[..., T], *arguments: Any) -> T:
    """Run what takes the processor for long, beside the event loop."""
    return await asyncio.get_running_loop().run_in_executor(_threads, function, *arguments)
