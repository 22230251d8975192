"""The live socket: reads a page's subscriptions, and sends what the hub offers.

A socket has the rights of its session: the hub's `rights_keeper` notices a user who logs out, is
deactivated or loses a right. The cost of a client is bounded by size, number and rate of messages; a client
that does not read fast enough is cut off, and gets the whole state when it connects again.
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

MAX_BYTES = 16 * 1024
MAX_SUBSCRIPTIONS = 32
BURST = 100  # messages of a client at once …
RATE = 20.0  # … and in a second, in the long run
MAX_WAITING = 100  # messages for a client that does not read
MAX_WAITING_CHARS = 8_000_000

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
        self.topics: dict[str, Hashable] = {}  # the scope of rights in which each is read; None: to be joined again
        self.streams: dict[str, tuple[asyncio.Task[None], Stream, StreamRequest]] = {}
        self.shelf = self.hub.room.shelf(self.actor.name, self._too_slow)
        self.waiting: deque[str] = deque()
        self.waiting_chars = 0
        self.allowance, self.last_message = float(BURST), clock.monotonic()
        self.cut = False
        self.ended = False
        self.has_messages = asyncio.Event()
        self.tasks = [asyncio.create_task(self._write())]
        if not user.is_authenticated:
            # Accepted first: only then does a browser get the code, and stop connecting.
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
        """Close once: messages that the client sent before it got the close may still be read."""
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
        if len(text) > MAX_BYTES or self.allowance < 0:
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
        if len(self.topics) + len(self.streams) >= MAX_SUBSCRIPTIONS:
            self.offer(messages.denied(message.id, f"A page may follow {MAX_SUBSCRIPTIONS} things at most."))
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
        self.has_messages.set()
        if len(self.waiting) > MAX_WAITING or self.waiting_chars > MAX_WAITING_CHARS:
            self._too_slow()
        else:
            self.shelf.put(text)

    def _too_slow(self) -> None:
        self.cut = True
        self.waiting.clear()
        self.shelf.clear()
        self.tasks.append(asyncio.create_task(self._end(TOO_SLOW)))

    def rejoin(self, topic: str) -> None:
        """Subscribe to a topic again: the hub has ended the subscription because some reader's rights have changed."""
        if topic in self.topics:
            self.topics[topic] = None
            self.hub.rights.wake()

    async def _write(self) -> None:
        while True:
            await self.has_messages.wait()
            self.has_messages.clear()
            while self.waiting and not self.ended:
                text = self.waiting.popleft()
                self.waiting_chars -= len(text)
                await self.send(text_data=text)
                self.shelf.remove(text)

    async def _send_now(self, text: str) -> None:
        """Send a text past the queue; until the client has taken it, it counts on the client's shelf."""
        self.shelf.put(text)
        try:
            await self.send(text_data=text)
        finally:
            self.shelf.remove(text)

    # What the rights keeper calls.

    def open_streams(self) -> dict[str, tuple[Stream, StreamRequest]]:
        """Return the streams that still run, by name."""
        return {name: (stream, request) for name, (task, stream, request) in self.streams.items() if not task.done()}

    async def apply_rights(self, rights: SocketRights) -> None:
        """Join topics again whose scope of rights has changed, and end what the rights do not allow any more."""
        if not rights.was_checked or not rights.has_session:
            # In a task: the client may be slow, and the next sockets must not wait for it.
            code = LOGGED_OUT if rights.was_checked else DEFECT
            self.tasks.append(asyncio.create_task(self._end(code)))
            return
        for topic, scope in [*self.topics.items()]:
            if scope != rights.scope:
                self.hub.part(self, topic, scope)
                await self._join(topic, 0)
        for name, why in rights.denied.items():
            if name in self.streams:
                self._unsubscribe(name)
                self.offer(messages.denied(name, why))
