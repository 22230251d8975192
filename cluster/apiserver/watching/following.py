"""The follower: one per API server process, between the log and everybody who watches it.

It sleeps until a nudge says that something was committed, reads the log from
where it stopped and hands each batch to its listeners, in the event loop and
in order. It reads in a thread of its own, so that long lists in the readers'
threads delay no watch. What arrives while a pass is under way, or within the
short pause after it, is one batch.

Nudges are hints. Without Redis the log is read each second.
"""

from __future__ import annotations

import asyncio
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from django.db import connections

from cluster import nudge
from cluster.apiserver.watching.selection import Entry
from cluster.apiserver.watching.window import Window
from cluster.connecting import connected
from cluster.outage import AWAY, Outage
from cluster.store import log as history
from cluster.store import store
from kube.errors import Expired, Timeout

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from cluster.store import Change

BATCH = 256  # changes that one pass hands on at most; a pass keeps the event loop to itself
SHORTEST_PAUSE_S = 0.01
LONGEST_PAUSE_S = 0.1
POLL_S = 1.0  # without Redis
SWEEP_S = 4.0  # with Redis: a nudge may be lost
FRESH_S = 3.0  # how long a request waits for a revision of the near future (§4.2)
T = TypeVar("T")
log = logging.getLogger(__name__)


class Follower:
    """Reads the log for one event loop; every method but the reading itself runs in it."""

    def __init__(self) -> None:
        self.position = 0
        self.window = Window()
        self.polling = True
        self._batches: list[tuple[Callable[[Sequence[Entry]], None], Callable[[], None]]] = []
        self._wake = asyncio.Event()
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._starting: asyncio.Lock | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._outage = Outage("following the log", log)

    def listen(self, callback: Callable[[Change], None], lost: Callable[[], None] = lambda: None) -> None:
        """Call back for each change from here on, in order, in the event loop.

        `lost` is called instead when retention was faster than the follower:
        whoever keeps a state must read it again.
        """

        def each(entries: Sequence[Entry]) -> None:
            for entry in entries:
                callback(entry.change)

        self.listen_in_batches(each, lost)

    def listen_in_batches(
        self, callback: Callable[[Sequence[Entry]], None], lost: Callable[[], None] = lambda: None
    ) -> None:
        """The same, with all changes of a pass in one call."""
        self._batches.append((callback, lost))

    async def start(self) -> None:
        """Begin to follow from the newest revision on; nothing happens when it does already."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # another loop's locks and tasks are of no use here
            self._loop, self._tasks = loop, []
            self._starting, self._wake = asyncio.Lock(), asyncio.Event()
        if self._tasks:
            return
        assert self._starting is not None  # noqa: S101  set with the loop
        async with self._starting:
            if self._tasks:
                return
            self._thread = ThreadPoolExecutor(1, "follower")
            self.position = await self._read(store.revision)
            self.window = Window(self.position)
            self._tasks = [asyncio.create_task(self._forever(step)) for step in (self._listen, self._follow)]

    async def stop(self) -> None:
        """End, and close the thread's database connection. Listeners stay, for another start."""
        tasks, self._tasks = self._tasks, []
        # Asked again until they obey: redis-py can swallow a cancellation while it connects.
        while tasks:
            for task in tasks:
                task.cancel()
            _, pending = await asyncio.wait(tasks, timeout=0.1)
            tasks = [*pending]
        for _, future in self._waiting:
            future.cancel()
        self._waiting.clear()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.submit(connections.close_all)
            await asyncio.to_thread(thread.shutdown)

    async def reach(self, revision: int, within_s: float = FRESH_S) -> None:
        """Wait until everything up to a revision was handed on; Timeout when that does not happen."""
        if revision <= self.position:
            return
        reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((revision, reached))
        self._wake.set()
        try:
            async with asyncio.timeout(within_s):
                await reached
        except TimeoutError:
            raise Timeout.too_large_resource_version(revision, self.position) from None
        finally:
            self._waiting = [each for each in self._waiting if each[1] is not reached]

    async def _forever(self, step: Callable[[], Awaitable[None]]) -> None:
        """Take a step again and again; whatever it raises is logged and no reason to end."""
        while True:
            try:
                await step()
            except Exception as error:
                if isinstance(error, AWAY):
                    self._outage.lasts(error)
                else:
                    log.exception("follower failed", extra={"step": step.__name__})
                await asyncio.sleep(POLL_S)
                self._wake.set()

    async def _listen(self) -> None:
        """Wake up at each nudge; while Redis is away, let `_follow` poll."""
        await nudge.hear(self._heard)
        self.polling = True
        await asyncio.sleep(POLL_S)

    def _heard(self, revision: int) -> None:
        self.polling = False
        if revision > self.position:
            self._wake.set()

    async def _follow(self) -> None:
        """Read on, hand on, pause in proportion."""
        # Not wait_for, which in Python 3.11 can swallow a cancellation.
        with suppress(TimeoutError):
            async with asyncio.timeout(POLL_S if self.polling else SWEEP_S):
                await self._wake.wait()
        self._wake.clear()
        begun = time.monotonic()
        try:
            changes = await self._read(_next, self.position)
        except Expired:
            self._lose(await self._read(store.revision))
            return
        self._outage.over()
        if changes:
            self._hand_on([Entry(change) for change in changes])
        if len(changes) == BATCH:
            self._wake.set()
        spent = time.monotonic() - begun
        await asyncio.sleep(min(max(SHORTEST_PAUSE_S, spent), LONGEST_PAUSE_S))

    def _hand_on(self, entries: Sequence[Entry]) -> None:
        self.position = entries[-1].change.revision
        self.window.add(entries)
        for callback, _ in self._batches:
            try:
                callback(entries)
            except Exception:
                # One listener's defect must not keep the others from their changes.
                log.exception("a listener failed")
        for entry in entries:
            entry.release()
        self._tell_waiting()

    def _lose(self, head: int) -> None:
        """Go on from the head: what came before it is forgotten already."""
        log.warning("history was forgotten before it was read", extra={"after": self.position, "head": head})
        self.position, self.window = head, Window(head)
        for _, lost in self._batches:
            lost()
        self._tell_waiting()

    def _tell_waiting(self) -> None:
        for revision, reached in self._waiting:
            if revision <= self.position and not reached.done():
                reached.set_result(None)

    async def _read(self, work: Callable[..., T], *arguments: Any) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, connected, work, *arguments)


def _next(after: int) -> list[Change]:
    return history.after(after, limit=BATCH, previous=True)


follower = Follower()
