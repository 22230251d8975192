"""Following the log from an event loop.

A follower sleeps until a nudge says that something was committed, reads the log from where it stopped, in a thread of
its own, and takes what it read in the event loop, in order. What arrives while a pass is under way, or within the pause
after it, is one pass; the pause grows with what a pass costs, so that a follower uses a bounded share of the machine.

Nudges are hints. Without Redis the log is read each second, with Redis every few seconds, since a nudge may be lost.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Container, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, ClassVar, NamedTuple, TypeVar

from django.db import connections

from cluster import clock
from cluster.runtime import nudge
from cluster.runtime.outage import AWAY, Outage
from cluster.store import Change, log, store
from cluster.store.connections import connected
from kube.errors import Expired, Timeout
from kube.resources import Resource

REACH_S = 3.0  # how long one waits for a revision of the near future (reference: kubernetes-api §4.2)
T = TypeVar("T")


class Pace(NamedTuple):
    """How often a follower reads, in seconds."""

    shortest_s: float  # the pause after a pass
    longest_s: float
    load: float  # a pause is this many times as long as the pass before it
    poll_s: float = 1.0  # between two looks without Redis, and before a step that failed is tried again
    sweep_s: float = 4.0  # between two looks with Redis


class Wanted(NamedTuple):
    """What a pass reads: changes of these kinds (None: of all), and whose JSON is decoded in the thread already."""

    kinds: Sequence[Resource] | None = None
    decoded: Container[str] = ()


class Follower(ABC):
    """Reads the log for one event loop; everything but the reading itself runs in it."""

    pace: ClassVar[Pace]
    batch: ClassVar[int]  # changes that one pass takes at most
    most: ClassVar[int | None] = None  # unread revisions beyond which all are given up as lost
    previous: ClassVar[bool] = False  # whether changes come with what they replaced
    threads: ClassVar[int] = 1

    def __init__(self) -> None:
        self.position = 0
        self.polling = True
        self._wake = asyncio.Event()
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._starting = asyncio.Lock()
        self._threads: ThreadPoolExecutor | None = None
        self._log = logging.getLogger(type(self).__module__)
        self._outage = Outage("following the log", self._log)

    @abstractmethod
    async def take(self, changes: Sequence[Change]) -> None:
        """Take the changes of a pass, in order; there may be none. `position` is behind them already.

        When it fails, `lose` is called.
        """

    @abstractmethod
    def lose(self) -> None:
        """Take note that changes before `position` will not come: whoever keeps a state must read it anew."""

    def wanted(self) -> Wanted:
        """Return what the next pass reads."""
        return Wanted()

    def patience(self) -> float:
        """Return how many seconds to sleep when no nudge comes."""
        return self.pace.poll_s if self.polling else self.pace.sweep_s

    async def start(self) -> None:
        """Begin to follow from the newest revision on; nothing happens when it does already."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # another loop's locks and tasks are of no use here
            self._loop, self._tasks = loop, []
            self._starting, self._wake = asyncio.Lock(), asyncio.Event()
        async with self._starting:
            if self._tasks:
                return
            self._threads = self._threads or ThreadPoolExecutor(self.threads, "follower")
            self.begin(await self.in_thread(store.revision))
            self._tasks = [asyncio.create_task(self._forever(step)) for step in (self._listen, self._follow)]

    def begin(self, revision: int) -> None:
        """Stand at a revision: what comes after it is taken."""
        self.position = revision

    async def stop(self) -> None:
        """End, and close the threads' database connections."""
        tasks, self._tasks = self._tasks, []
        threads, self._threads = self._threads, None
        # Asked again until they obey: redis-py can swallow a cancellation while it connects.
        while tasks:
            for task in tasks:
                task.cancel()
            _, pending = await asyncio.wait(tasks, timeout=0.1)
            tasks = [*pending]
        for _, future in self._waiting:
            future.cancel()
        self._waiting.clear()
        if threads is not None:
            await asyncio.to_thread(_close, threads, self.threads)

    def wake(self) -> None:
        """Have a pass begin as soon as the pause after the last one is over."""
        self._wake.set()

    async def reach(self, revision: int, within_s: float = REACH_S) -> None:
        """Wait until everything up to a revision was taken; Timeout when that does not happen."""
        if revision <= self.position:
            return
        reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((revision, reached))
        self.wake()
        try:
            async with asyncio.timeout(within_s):
                await reached
        except TimeoutError:
            raise Timeout.too_large_resource_version(revision, self.position) from None
        finally:
            self._waiting = [each for each in self._waiting if each[1] is not reached]

    async def in_thread(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run work that asks the database in a thread of the follower's."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, connected, work, *arguments)

    async def _forever(self, step: Callable[[], Awaitable[None]]) -> None:
        """Take a step again and again; whatever it raises is logged and no reason to end."""
        while True:
            try:
                await step()
            except Exception as error:
                if isinstance(error, AWAY):
                    self._outage.lasts(error)
                else:
                    self._log.exception("following the log failed", extra={"step": step.__name__})
                await asyncio.sleep(self.pace.poll_s)
                self.wake()

    async def _listen(self) -> None:
        """Wake up at each nudge; while Redis is away, let `_follow` poll."""
        await nudge.listen(self._on_nudge)
        self.polling = True
        await asyncio.sleep(self.pace.poll_s)

    def _on_nudge(self, revision: int) -> None:
        self.polling = False
        if revision > self.position:
            self.wake()

    async def _follow(self) -> None:
        """Read on, have it taken, pause in proportion."""
        # Not wait_for, which in Python 3.11 can swallow a cancellation.
        with suppress(TimeoutError):
            async with asyncio.timeout(self.patience()):
                await self._wake.wait()
        self._wake.clear()
        begun = clock.monotonic()
        await self._pass()
        spent = clock.monotonic() - begun
        await asyncio.sleep(min(max(self.pace.shortest_s, spent * self.pace.load), self.pace.longest_s))

    async def _pass(self) -> None:
        position, changes = await self.in_thread(self._read, self.position, self.wanted())
        self._outage.over()
        if changes is None:
            self._log.warning("changes were not read", extra={"after": self.position, "until": position})
            self.begin(position)
            self.lose()
        self.position = position
        try:
            await self.take(changes or ())
        except Exception:
            self.lose()
            raise
        if changes and len(changes) == self.batch:
            self.wake()
        for revision, reached in self._waiting:
            if revision <= self.position and not reached.done():
                reached.set_result(None)

    def _read(self, after: int, wanted: Wanted) -> tuple[int, list[Change] | None]:
        """Return the changes after a revision and up to where they go; None for changes that are given up."""
        kinds, decoded = wanted
        head = store.revision()
        if head == after or (kinds is not None and not kinds):
            return head, []
        if head < after or (self.most is not None and head - after > self.most):
            return head, None
        try:
            changes = log.after(after, kinds, limit=self.batch, until=head, previous=self.previous)
        except Expired:
            return head, None
        for change in changes:
            if change.resource in decoded:
                _ = change.object  # kept by the change
        return changes[-1].revision if len(changes) == self.batch else head, changes


def _close(threads: ThreadPoolExecutor, count: int) -> None:
    # The barrier makes each of the threads take exactly one of these.
    barrier = threading.Barrier(count)

    def close() -> None:
        barrier.wait()
        connections.close_all()

    for done in [threads.submit(close) for _ in range(count)]:
        done.result()
    threads.shutdown()
