"""How much of request bodies the server takes at a time, so that its memory and its event loop stay free.

Small bodies are read, decoded and checked on the event loop: that is faster
than a thread. A large one goes to threads of its own, and only a few large
ones are in work at once, because an object takes many times the memory of its
text and of Python only one thread runs at a time; of one actor there is one,
so that nobody's flood stands before somebody else's large object. What waits,
waits as bytes, and of those there is a limit too.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from apiserver.http.threads import Pool
from kube.errors import TooManyRequests

LARGE = 64 * 1024  # bytes of JSON; a body of this size takes some milliseconds
LARGE_OTHER = 4 * 1024  # bytes of YAML or protobuf, which are read in Python
MAX_AT_ONCE = 2  # large bodies in work
MAX_WAITING = 50  # large bodies of one actor
MAX_HELD = 128 * 1024 * 1024  # bytes of bodies that wait
T = TypeVar("T")
_threads = Pool("api-bodies", MAX_AT_ONCE, 1)


class Intake:
    """The bodies that one server holds."""

    def __init__(self) -> None:
        self.held = 0
        self._work = asyncio.Semaphore(MAX_AT_ONCE)
        self._waiting: Counter[str] = Counter()
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def hold(self, size: int) -> None:
        """Count bytes that came in; TooManyRequests when there are too many of them."""
        if self.held + size > MAX_HELD:
            raise too_many()
        self.held += size

    async def begin(self, who: str) -> asyncio.Lock:
        """Wait until a large body of this actor may be worked on; return the turn that `end` gives back."""
        if self._waiting[who] >= MAX_WAITING:
            raise too_many()
        turn = self._turns.setdefault(who, asyncio.Lock())
        self._waiting[who] += 1
        try:
            await turn.acquire()
            try:
                await self._work.acquire()
            except BaseException:
                turn.release()
                raise
        finally:
            self._waiting[who] -= 1
            if not self._waiting[who]:
                del self._waiting[who]
        return turn

    def end(self, size: int, turn: asyncio.Lock | None) -> None:
        """Forget a body of this many bytes, and make room for the next large one."""
        self.held -= size
        if turn is not None:
            turn.release()
            self._work.release()


def too_many() -> TooManyRequests:
    """Return the refusal of a large body."""
    return TooManyRequests("Too many large requests are being served. Please wait and try again.", retry_after_s=1)


async def work(function: Callable[..., T], *arguments: Any) -> T:
    """Run what takes the processor for long, beside the event loop."""
    return await _threads.run(function, *arguments)
