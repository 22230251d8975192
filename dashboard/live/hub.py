"""The hub: one per web process, between the change log and the sockets.

It follows the log, looks up which renderings watch a change, renders each
once in a thread and offers the difference to all its readers. Changes of a burst are taken
together, as in every follower, and live pages take a bounded share of the machine.
A topic that costs much, such as a timeline of hundreds of pods, rests longer, and delays no other.

A head is a message that the log was read up to a revision. Heads come from
the loop that reads it, so that a page which gets none is stale, and shows that.

The hub runs only while there is a socket.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Hashable, Sequence
from weakref import WeakKeyDictionary

from django.conf import settings

from cluster import access, clock
from cluster.access import Actor
from cluster.runtime.follower import Follower, Pace, Wanted
from cluster.runtime.outage import AWAY
from cluster.runtime.room import Room
from cluster.store import Change, store
from dashboard.live import messages, topics
from dashboard.live.rendering import Rendering, Subscriber, WatchIndex
from dashboard.live.rights_keeper import RightsKeeper
from dashboard.live.topics import Parts
from kube.errors import ApiError

REST = 6.0  # a topic rests this many times as long as it took to render
FREE_S = 0.03  # what takes no longer than this need not rest
LONGEST_REST_S = 4.0
HEAD_EVERY_S = 4.0  # pages call themselves stale after 12 s without one
MAX_FAILURES = 5
FAILED = "This part of the page cannot be refreshed at present. Reload the page; if that fails too, look at the server's log."
log = logging.getLogger(__name__)


class Hub(Follower):
    """Renderings and their readers in one event loop; every method but `in_thread`'s work runs in it."""

    pace = Pace(shortest_s=0.03, longest_s=0.2, load=3.0)
    batch = most = 2000  # with more changes than that, everything is rendered again
    renderers = 2  # renderings at a time; more would only wait for each other
    threads = renderers + 1  # so that neither the log nor rights wait for a long rendering

    def __init__(self) -> None:
        super().__init__()
        self.renders = 0
        self.rights = RightsKeeper(self.in_thread)
        self.room = Room(settings.QUEUE_MEGABYTES << 20)
        self._renderings: dict[tuple[str, Hashable], Rendering] = {}
        self._sockets: set[Subscriber] = set()
        self._index = WatchIndex()
        self._stale: dict[Rendering, None] = {}
        self._head_sent = 0.0

    # Sockets come and go.

    async def enter(self, socket: Subscriber) -> None:
        """Add a socket and send it a head; the first one starts the hub."""
        self._sockets.add(socket)
        await self.start()
        socket.offer(self.head())

    async def leave(self, socket: Subscriber) -> None:
        """Remove a socket with all its subscriptions; the last one stops the hub."""
        for rendering in [r for r in self._renderings.values() if socket in r.readers or socket in r.joining]:
            self._drop(rendering, socket)
        self._sockets.discard(socket)
        if not self._sockets:
            await self.stop()

    async def join(self, socket: Subscriber, topic: str, revision: int, actor: Actor) -> Hashable:
        """Subscribe a socket whose page was rendered at a revision; return the scope of rights in which it reads.

        Raise LookupError for a topic that does not exist.
        """
        name, params = topics.parse(topic)
        render = topics.find(name)
        if render is None:
            raise LookupError(f"There is no topic {name[:80]}.")
        scope = await self.in_thread(access.scope, actor)
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
        return messages.head(self.position, clock.milliseconds())

    # What the hub does by itself.

    def wanted(self) -> Wanted:
        """Changes of the kinds that are watched; those of kinds that are watched by owner are decoded for that."""
        return Wanted(self._index.kinds(), self._index.owned())

    def patience(self) -> float:
        """How long to sleep without a nudge: until the next look, or until a stale topic has rested."""
        longest = super().patience()
        soonest = min((rendering.rests_until for rendering in self._stale), default=None)
        return longest if soonest is None else min(max(soonest - clock.monotonic(), 0), longest)

    async def take(self, changes: Sequence[Change]) -> None:
        """Render what is stale, and send heads when it is time."""
        now = clock.milliseconds()
        self._mark(*(r for r in self._renderings.values() if r.again is not None and r.again <= now))
        for change in changes:
            self._mark(*self._index.match(change))
        await self._render_stale()
        self._send_heads()

    def lose(self) -> None:
        """Render everything again: it is not known which renderings the lost changes make stale."""
        self._mark(*self._renderings.values())

    def _send_heads(self) -> None:
        if clock.monotonic() - self._head_sent >= HEAD_EVERY_S:
            self._head_sent = clock.monotonic()
            text = self.head()
            for socket in self._sockets:
                socket.offer(text)

    def _mark(self, *renderings: Rendering) -> None:
        for rendering in renderings:
            self._stale[rendering] = None
            if rendering.joining:
                self.wake()

    async def _render_stale(self) -> None:
        """Render what is stale now and need not rest; what becomes stale meanwhile is for the next pass."""
        now = clock.monotonic()
        stale, self._stale = self._stale, {}
        queue = []
        for rendering in stale:
            if rendering.joining or rendering.rests_until <= now:
                queue.append(rendering)
            else:
                self._stale[rendering] = None
        queue.reverse()
        await asyncio.gather(*(self._work(queue) for _ in range(min(self.renderers, len(queue)))))

    async def _work(self, queue: list[Rendering]) -> None:
        while queue:
            await self._refresh(queue.pop())

    async def _refresh(self, rendering: Rendering) -> None:
        if rendering.deserted:
            return
        try:
            revision, parts, spent = await self.in_thread(_render, rendering)
            rendering.rests_until = clock.monotonic() + _rest(spent)
            self.renders += 1
            if not rendering.deserted:
                self._index.put(rendering, parts.watches)
                rendering.take(revision, parts)
        except Outgrown:
            # Each reader joins again, in his present scope of rights.
            self._forget(rendering)
            for socket in (*rendering.readers, *rendering.joining):
                socket.rejoin(rendering.topic)
        except ApiError as error:
            self._refuse(rendering, error.message)
        except AWAY as error:
            log.warning("topic put off", extra={"topic": rendering.topic, "error": str(error)})
            self._fail(rendering)
        except Exception:
            # A defect of one topic must not stop the others.
            log.exception("topic failed", extra={"topic": rendering.topic})
            self._fail(rendering)

    def _fail(self, rendering: Rendering) -> None:
        rendering.failures += 1
        if rendering.failures >= MAX_FAILURES:
            self._refuse(rendering, FAILED)
        else:
            rendering.rests_until = clock.monotonic() + self.pace.poll_s
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


class Outgrown(Exception):
    """The rights of the actor in whose name a topic is rendered have changed, so others may not read the result."""


def _render(rendering: Rendering) -> tuple[int, Parts, float]:
    """Return the revision, the parts, and the processor time that they took, in seconds; or raise Outgrown."""
    if access.scope(rendering.actor) != rendering.scope:
        raise Outgrown
    begun = time.thread_time()
    with store.reading() as revision:
        parts = rendering.render(topics.TopicRequest(rendering.actor, rendering.params))
    return revision, parts, time.thread_time() - begun


def _rest(spent: float) -> float:
    return min(spent * REST, LONGEST_REST_S) if spent > FREE_S else 0.0


_hubs: WeakKeyDictionary[asyncio.AbstractEventLoop, Hub] = WeakKeyDictionary()


def current() -> Hub:
    """Return the hub of the running event loop."""
    loop = asyncio.get_running_loop()
    hub = _hubs.get(loop)
    if hub is None:
        hub = _hubs[loop] = Hub()
    return hub
