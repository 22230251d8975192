"""The hub: one per web process, between the change log and the sockets.

It sleeps until a nudge says that something was committed, reads the log from
where it stopped, looks up which renderings watch what changed, renders each
once in a thread and offers the difference to all who read it. Bursts merge by
themselves: what arrives while a pass is under way, or within the pause that
follows it, is one pass. The pause grows with what a pass costs, from
`SHORTEST_PAUSE_S` to `LONGEST_PAUSE_S`, so that live pages take a bounded share of the machine.
A topic that costs much, as the timeline of thousands of pods does, rests longer, and delays no other.

A head tells the sockets that the log was read up to a revision. Heads come from
the loop that reads, so that a page which hears none knows that it is stale.

Nudges are hints. Without Redis the hub asks for the newest revision each second.
It runs only while there is a socket.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

from django.db import connections

from cluster import access, nudge
from cluster.connecting import connected
from cluster.outage import AWAY, Outage
from cluster.store import clock, store
from dashboard.live import messages, topics
from dashboard.live.rendering import Rendering, WatchIndex
from kube.errors import ApiError, Expired

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable

    from cluster.access import Actor
    from cluster.store import Change
    from dashboard.live.rendering import Subscriber
    from dashboard.live.topics import Parts
    from kube.resources import Resource

THREADS = 2  # as many renderings at a time; more would only wait for each other
SHORTEST_PAUSE_S = 0.03
LONGEST_PAUSE_S = 0.2
LOAD = 3.0  # a pause is this many times as long as the pass before it
REST = 6.0  # a topic rests this many times as long as it took to render
FREE_S = 0.03  # what takes no longer than this need not rest
LONGEST_REST_S = 4.0
HEAD_EVERY_S = 4.0  # pages call themselves stale after 12 s without one
POLL_S = 1.0  # without Redis
SWEEP_S = 4.0  # with Redis: a nudge may be lost
MOST_CHANGES = 2000  # beyond that many, everything that watches their kinds is rendered again
MOST_FAILURES = 5
FAILED = "This part of the page cannot be refreshed at present. Reload the page; if that fails too, look at the server's log."
T = TypeVar("T")
log = logging.getLogger(__name__)


class Hub:
    """Renderings and their readers in one event loop; every method but `_in_thread`'s work runs in it."""

    def __init__(self) -> None:
        self.revision = 0
        self.polling = True
        self.renders = 0
        self._renderings: dict[tuple[str, Hashable], Rendering] = {}
        self._sockets: set[Subscriber] = set()
        self._index = WatchIndex()
        self._stale: dict[Rendering, None] = {}
        self._head_told = 0.0
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._threads: ThreadPoolExecutor | None = None
        self._outage = Outage("following the log", log)

    # Sockets come and go.

    async def enter(self, socket: Subscriber) -> None:
        """Take a socket in; the first one starts the hub. Its first message is a head."""
        self._sockets.add(socket)
        if not self._tasks:
            self._threads = ThreadPoolExecutor(THREADS, "live")
            self._tasks = [asyncio.create_task(self._forever(step)) for step in (self._listen, self._follow)]
        if not self.revision:
            self.revision = await self.in_thread(store.revision)
        socket.offer(messages.head(self.revision, clock()))

    async def leave(self, socket: Subscriber) -> None:
        """Let a socket go with all its subscriptions; the last one stops the hub."""
        for rendering in [r for r in self._renderings.values() if socket in r.readers or socket in r.joining]:
            self._drop(rendering, socket)
        self._sockets.discard(socket)
        if not self._sockets:
            await self.stop()

    async def stop(self) -> None:
        """End the loops and close the threads' database connections."""
        tasks, self._tasks = self._tasks, []
        threads, self._threads = self._threads, None
        self.revision = 0
        # Asked again until it obeys: redis-py can swallow a cancellation while it connects.
        while tasks:
            for task in tasks:
                task.cancel()
            _, pending = await asyncio.wait(tasks, timeout=0.1)
            tasks = [*pending]
        if threads is not None:
            await asyncio.to_thread(_close, threads)

    async def join(self, socket: Subscriber, topic: str, revision: int, actor: Actor) -> Hashable:
        """Subscribe a socket whose page was made at a revision; return the scope of rights it reads in.

        Raise LookupError for a topic that does not exist.
        """
        name, params = topics.parse(topic)
        render = topics.find(name)
        if render is None:
            raise LookupError(f"There is no topic {name[:80]}.")
        scope = await self.in_thread(scope_of, actor)
        rendering = self._renderings.get((topic, scope))
        if rendering is None:
            rendering = Rendering(topic, scope, render, params, actor)
            self._renderings[topic, scope] = rendering
        fresh = rendering.revision >= 0 and rendering not in self._stale
        if fresh and rendering.up_to_date(revision):
            rendering.readers.add(socket)
            socket.offer(messages.parts(topic, rendering.revision, {}, None))
        else:
            rendering.readers.discard(socket)
            rendering.joining[socket] = revision
            self._mark(rendering)
        return scope

    def part(self, socket: Subscriber, topic: str, scope: Hashable) -> None:
        """End one subscription."""
        rendering = self._renderings.get((topic, scope))
        if rendering is not None:
            self._drop(rendering, socket)

    def head(self) -> str:
        """The message that says how far the log goes."""
        return messages.head(self.revision, clock())

    async def in_thread(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run work that asks the database in one of the hub's threads."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, connected, work, *arguments)

    # What the hub does by itself.

    async def _forever(self, step: Callable[[], Awaitable[None]]) -> None:
        """Take a step again and again. Whatever it raises is logged and no reason to end; meanwhile no head is sent."""
        while True:
            try:
                await step()
            except Exception as error:
                if isinstance(error, AWAY):
                    self._outage.lasts(error)
                else:
                    log.exception("live hub failed", extra={"step": step.__name__})
                await asyncio.sleep(POLL_S)
                self._mark(*self._renderings.values())  # what the step would have marked is not known
                self._wake.set()

    async def _listen(self) -> None:
        """Wake up at each nudge; while Redis is away, let `_follow` poll."""
        await nudge.hear(self._heard)
        self.polling = True
        await asyncio.sleep(POLL_S)

    def _heard(self, revision: int) -> None:
        self.polling = False
        self._wake.set()

    async def _follow(self) -> None:
        """Read the log, render what is stale, pause in proportion."""
        # Not wait_for, which in Python 3.11 can swallow a cancellation.
        with suppress(TimeoutError):
            async with asyncio.timeout(self._patience()):
                await self._wake.wait()
        self._wake.clear()
        begun = time.monotonic()
        await self._read_log()
        await self._render_stale()
        self._tell_heads()
        spent = time.monotonic() - begun
        await asyncio.sleep(min(max(SHORTEST_PAUSE_S, spent * LOAD), LONGEST_PAUSE_S))

    def _patience(self) -> float:
        """How long to sleep without a nudge: until the next poll, or until a stale topic has rested."""
        longest = POLL_S if self.polling else SWEEP_S
        soonest = min((rendering.rests_until for rendering in self._stale), default=None)
        return longest if soonest is None else min(max(soonest - time.monotonic(), 0), longest)

    def _tell_heads(self) -> None:
        if time.monotonic() - self._head_told >= HEAD_EVERY_S:
            self._head_told = time.monotonic()
            text = self.head()
            for socket in self._sockets:
                socket.offer(text)

    async def _read_log(self) -> None:
        now = clock()
        self._mark(*(r for r in self._renderings.values() if r.again is not None and r.again <= now))
        kinds = self._index.kinds()
        head, changes = await self.in_thread(_news, self.revision, kinds, self._index.owned())
        self._outage.over()
        self.revision = head
        if changes is None:
            self._mark(*self._index.all_of(kind.id for kind in kinds))
            return
        for change in changes:
            self._mark(*self._index.match(change))

    def _mark(self, *renderings: Rendering) -> None:
        for rendering in renderings:
            self._stale[rendering] = None
            if rendering.joining:
                self._wake.set()

    async def _render_stale(self) -> None:
        """Render what is stale now and need not rest; what becomes stale meanwhile is for the next pass."""
        now = time.monotonic()
        stale, self._stale = self._stale, {}
        queue = []
        for rendering in stale:
            if rendering.joining or rendering.rests_until <= now:
                queue.append(rendering)
            else:
                self._stale[rendering] = None
        queue.reverse()
        await asyncio.gather(*(self._work(queue) for _ in range(min(THREADS, len(queue)))))

    async def _work(self, queue: list[Rendering]) -> None:
        while queue:
            await self._refresh(queue.pop())

    async def _refresh(self, rendering: Rendering) -> None:
        if rendering.deserted:
            return
        try:
            revision, parts, spent = await self.in_thread(_render, rendering)
            rendering.rests_until = time.monotonic() + _rest(spent)
            self.renders += 1
            if not rendering.deserted:
                self._index.put(rendering, parts.watches)
                rendering.take(revision, parts)
        except ApiError as error:
            self._refuse(rendering, error.message)
        except AWAY as error:
            log.warning("topic put off", extra={"topic": rendering.topic, "error": str(error)})
            self._fail(rendering)
        except Exception:
            # Whatever is wrong with a topic must not keep the others from their changes.
            log.exception("topic failed", extra={"topic": rendering.topic})
            self._fail(rendering)

    def _fail(self, rendering: Rendering) -> None:
        rendering.failures += 1
        if rendering.failures >= MOST_FAILURES:
            self._refuse(rendering, FAILED)
        else:
            rendering.rests_until = time.monotonic() + POLL_S
            self._stale[rendering] = None

    def _refuse(self, rendering: Rendering, why: str) -> None:
        rendering.refuse(why)
        self._forget(rendering)

    def _drop(self, rendering: Rendering, socket: Subscriber) -> None:
        rendering.readers.discard(socket)
        rendering.joining.pop(socket, None)
        if rendering.deserted:
            self._forget(rendering)

    def _forget(self, rendering: Rendering) -> None:
        self._index.put(rendering, ())
        self._stale.pop(rendering, None)
        if self._renderings.get((rendering.topic, rendering.scope)) is rendering:
            del self._renderings[rendering.topic, rendering.scope]


def scope_of(actor: Actor) -> Hashable:
    """Return what two readers must have in common to be shown the same: roles, and the name where that matters.

    A submitter may do things to his own objects only, so what he is shown is his alone.
    """
    grants = access.grants(actor)
    personal = any(role == access.Role.SUBMITTER for role in grants.roles.values())
    return frozenset(grants.roles.items()), actor.groups, grants.name if personal else ""


def _news(after: int, kinds: list[Resource], owned: frozenset[str]) -> tuple[int, list[Change] | None]:
    """Return the newest revision and the changes since; None when there are too many or history is gone."""
    head = store.revision()
    if head == after or not kinds:
        return head, []
    if not 0 <= head - after <= MOST_CHANGES:
        return head, None
    try:
        changes = store.changes(after, kinds, limit=MOST_CHANGES, until=head)
    except Expired:
        return head, None
    for change in changes:
        if change.resource in owned:
            _ = change.object  # decoded here, in the thread, and kept
    return head, changes


def _render(rendering: Rendering) -> tuple[int, Parts, float]:
    """Return the revision, the parts, and the processor time that they took, in seconds."""
    begun = time.thread_time()
    with store.reading() as revision:
        parts = rendering.render(topics.TopicRequest(rendering.actor, rendering.params))
    return revision, parts, time.thread_time() - begun


def _rest(spent: float) -> float:
    return min(spent * REST, LONGEST_REST_S) if spent > FREE_S else 0.0


def _close(threads: ThreadPoolExecutor) -> None:
    # The barrier makes each of the threads take exactly one of these.
    barrier = threading.Barrier(THREADS)

    def close() -> None:
        barrier.wait()
        connections.close_all()

    for done in [threads.submit(close) for _ in range(THREADS)]:
        done.result()
    threads.shutdown()


_hubs: WeakKeyDictionary[asyncio.AbstractEventLoop, Hub] = WeakKeyDictionary()


def current() -> Hub:
    """Return the hub of the running event loop."""
    loop = asyncio.get_running_loop()
    hub = _hubs.get(loop)
    if hub is None:
        hub = _hubs[loop] = Hub()
    return hub
