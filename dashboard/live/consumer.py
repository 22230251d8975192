"""The live socket: reads what a page asks for, and hands it what the hub offers.

A page's socket has no more power than its session: who logs out, is
deactivated or loses a right is noticed by the hub's `rights_keeper`. What a client
may cost is bounded by size, number and rate; a client that does not read fast enough is cut off, and comes back to the whole state.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Hashable
from typing import Any

import msgspec
from channels.generic.websocket import AsyncWebsocketConsumer

from cluster import clock
from dashboard.live import hub, messages, streams
from dashboard.live.rights_keeper import SocketRights
from dashboard.live.streams import Stream, StreamRequest
from dashboard.live.topics import parse
from kube.errors import ApiError

MOST_BYTES = 16 * 1024
MOST_SUBSCRIPTIONS = 32
BURST = 100  # messages of a client at once …
RATE = 20.0  # … and in a second, in the long run
MOST_WAITING = 100  # messages for a client that does not read
MOST_WAITING_CHARS = 8_000_000

LOGGED_OUT = 4401
TOO_SLOW = 4408
TOO_MUCH = 4413
UNREADABLE = 4400
DEFECT = 1011
log = logging.getLogger(__name__)


class LiveConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]  # Channels has no types
    """One tab's socket."""

    async def connect(self) -> None:
        await self.accept()
        user = self.scope["user"]
        self.hub = hub.current()
        self.actor = self.hub.rights.actor(user)
        self.topics: dict[str, Hashable] = {}  # the scope of rights in which each is read; None: to be joined anew
        self.streams: dict[str, tuple[asyncio.Task[None], Stream, StreamRequest]] = {}
        self.shelf = self.hub.room.shelf(self.actor.name, self._too_slow)
        self.waiting: deque[str] = deque()
        self.waiting_chars = 0
        self.allowance, self.last_message = float(BURST), clock.monotonic()
        self.cut = False
        self.ended = False
        self.something = asyncio.Event()
        self.tasks = [asyncio.create_task(self._write())]
        if not user.is_authenticated:
            # Accepted first: only then does a browser learn the reason and stop asking.
            await self._end(LOGGED_OUT)
            return
        self.hub.rights.enter(self)
        await self.hub.enter(self)

    async def disconnect(self, code: int) -> None:
        for task in [*self.tasks, *(task for task, _, _ in self.streams.values())]:
            task.cancel()
        self.shelf.close()
        self.hub.rights.leave(self)
        await self.hub.leave(self)

    async def _end(self, code: int) -> None:
        """Close once: messages that were sent before the client learnt of it are still being read."""
        if not self.ended:
            self.ended = True
            await self.close(code)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if self.ended:
            return
        text = text_data if text_data is not None else bytes_data or b""
        now = clock.monotonic()
        self.allowance = min(BURST, self.allowance + (now - self.last_message) * RATE) - 1
        self.last_message = now
        if len(text) > MOST_BYTES or self.allowance < 0:
            await self._end(TOO_MUCH)
            return
        try:
            message = messages.read(text)
        except msgspec.MsgspecError:
            await self._end(UNREADABLE)
            return
        if not self.actor.user_id:
            return
        if isinstance(message, messages.Subscribe):
            await self._subscribe(message)
        elif isinstance(message, messages.Unsubscribe):
            self._unsubscribe(message.id)
        else:
            self.offer(self.hub.head())

    async def _subscribe(self, message: messages.Subscribe) -> None:
        self._unsubscribe(message.id)
        if len(self.topics) + len(self.streams) >= MOST_SUBSCRIPTIONS:
            self.offer(messages.denied(message.id, f"A page may follow {MOST_SUBSCRIPTIONS} things at most."))
        elif message.stream:
            self._open(message.id, message.stream)
        elif message.topic != message.id:
            self.offer(messages.denied(message.id, "The id of a topic is the topic itself."))
        else:
            await self._join(message.topic, message.revision)

    async def _join(self, topic: str, revision: int) -> None:
        try:
            self.topics[topic] = await self.hub.join(self, topic, revision, self.actor)
        except LookupError as error:
            self.offer(messages.denied(topic, str(error.args[0])))

    def _unsubscribe(self, name: str) -> None:
        if name in self.topics:
            self.hub.part(self, name, self.topics.pop(name))
        elif name in self.streams:
            self.streams.pop(name)[0].cancel()

    # Streams.

    def _open(self, name: str, address: str) -> None:
        kind, params = parse(address)
        stream = streams.find(kind)
        if stream is None:
            self.offer(messages.denied(name, f"There is no stream {kind[:80]}."))
            return
        request = streams.StreamRequest(self.actor, params)
        self.streams[name] = asyncio.create_task(self._flow(name, stream, request)), stream, request

    async def _flow(self, name: str, stream: Stream, request: StreamRequest) -> None:
        try:
            await self.hub.in_thread(stream.may, request)
            items: AsyncGenerator[Any, None] = stream.items(request)  # type: ignore[assignment]
            try:
                async for item in items:
                    if self.ended:
                        return
                    await self._send_now(messages.log(name, item))
            finally:
                await items.aclose()
            self.offer(messages.log(name, {"end": True}))
        except ApiError as error:
            self.offer(messages.denied(name, error.message))
        except Exception:
            log.exception("stream failed", extra={"stream": name})
            self.offer(messages.denied(name, hub.FAILED))

    # What the hub calls, and what goes on beside it.

    def offer(self, text: str) -> None:
        """Queue a message without waiting; a client that leaves too many unread is cut off."""
        if self.cut:
            return
        self.waiting.append(text)
        self.waiting_chars += len(text)
        self.something.set()
        if len(self.waiting) > MOST_WAITING or self.waiting_chars > MOST_WAITING_CHARS:
            self._too_slow()
        else:
            self.shelf.put(text)

    def _too_slow(self) -> None:
        self.cut = True
        self.waiting.clear()
        self.shelf.clear()
        self.tasks.append(asyncio.create_task(self._end(TOO_SLOW)))

    def rejoin(self, topic: str) -> None:
        """Subscribe to a topic anew: the hub has ended the subscription, because somebody's rights have changed."""
        if topic in self.topics:
            self.topics[topic] = None
            self.hub.rights.wake()

    async def _write(self) -> None:
        while True:
            await self.something.wait()
            self.something.clear()
            while self.waiting and not self.ended:
                text = self.waiting.popleft()
                self.waiting_chars -= len(text)
                await self.send(text_data=text)
                self.shelf.remove(text)

    async def _send_now(self, text: str) -> None:
        """Send what waits for nothing else; who does not take it holds it meanwhile."""
        self.shelf.put(text)
        try:
            await self.send(text_data=text)
        finally:
            self.shelf.remove(text)

    # What its rights keeper asks and tells.

    def flowing(self) -> dict[str, tuple[Stream, StreamRequest]]:
        """Return the streams that go on, by name."""
        return {name: (stream, request) for name, (task, stream, request) in self.streams.items() if not task.done()}

    async def heed(self, standing: SocketRights) -> None:
        """Read topics with the rights of now, and end what these do not allow any more."""
        if not standing.is_known or not standing.has_session:
            # In a task: the client may take its time, and others are looked after next.
            code = LOGGED_OUT if standing.is_known else DEFECT
            self.tasks.append(asyncio.create_task(self._end(code)))
            return
        for topic, scope in [*self.topics.items()]:
            if scope != standing.scope:
                self.hub.part(self, topic, scope)
                await self._join(topic, 0)
        for name, why in standing.denied.items():
            if name in self.streams:
                self._unsubscribe(name)
                self.offer(messages.denied(name, why))
