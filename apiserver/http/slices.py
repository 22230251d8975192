"""What a client sends, taken in slices, so that none of them can keep the event loop for itself.

A quarter of a megabyte may arrive at once, and can be forty thousand frames of
a WebSocket, or as many requests, each of which is some work.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from uvicorn._types import ASGIReceiveEvent, ASGISendEvent
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.datastructures import Headers
from websockets.frames import Frame

PIECE = 2048  # bytes that are taken without a look at the clock
SLICE_S = 0.001
MAX_MESSAGES = 64  # of a WebSocket, that wait for the application; one is collected behind them


class Sliced:
    """Mixed into a protocol of uvicorn's: others have their turn between two slices of what came in."""

    transport: asyncio.Transport
    loop: asyncio.AbstractEventLoop
    _rest = b""
    _turn: asyncio.Handle | None = None
    _holds = False  # whether reading is paused from here

    def take(self, data: bytes) -> None:
        """Work on a piece."""
        raise NotImplementedError

    def is_busy(self) -> bool:
        """Whether what came so far must be answered first; `go_on` is called after that."""
        return False

    def is_paused(self) -> bool:
        """Whether reading is paused for uvicorn's own reasons."""
        raise NotImplementedError

    def heir(self) -> asyncio.Protocol | None:
        """Return the protocol that the connection was upgraded to; what is left is for that."""
        return None

    def data_received(self, data: bytes) -> None:
        """Take what came, or keep it for the next turn."""
        self._rest += data
        if self._turn is None:
            self.go_on()

    def go_on(self) -> None:
        """Take a slice of what is left, and leave the remainder for the next turn."""
        self._turn = None
        data, at, until = self._rest, 0, time.perf_counter() + SLICE_S
        self._rest = b""
        while at < len(data) and not (at and time.perf_counter() > until):
            if self.is_busy() or self.transport.is_closing() or self.heir() is not None:
                break
            self.take(data[at : at + PIECE])
            at += PIECE
        rest = data[at:] + self._rest
        heir = self.heir()
        if rest and heir is not None:
            heir.data_received(rest)
        elif rest and not self.transport.is_closing():
            self._rest = rest
            self._holds = True
            self.transport.pause_reading()
            if not self.is_busy():
                self._turn = self.loop.call_soon(self.go_on)
        elif self._holds:
            self._holds = False
            if not self.is_paused():
                self.transport.resume_reading()

    def drop(self) -> None:
        """Forget what is left, because nobody waits for it."""
        self._rest = b""
        if self._turn is not None:
            self._turn.cancel()
            self._turn = None


class Socket(Sliced, WebSocketsSansIOProtocol):
    """uvicorn's WebSocket protocol, in slices; nothing is collected for fragments without content, or for pings."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        # uvicorn leaves the choice of a subprotocol to the application; the library only checks that each is a token, and
        # kubectl's `SPDY/3.1+portforward.k8s.io` is none.
        self.conn.process_subprotocol = _no_subprotocol  # type: ignore[method-assign,assignment]

    def take(self, data: bytes) -> None:
        """Work on a piece."""
        WebSocketsSansIOProtocol.data_received(self, data)

    def is_paused(self) -> bool:
        """Whether the application has not taken the last message yet."""
        return self.read_paused

    def is_busy(self) -> bool:
        """Whether the application has many messages to take first."""
        return self.queue.qsize() >= MAX_MESSAGES

    async def receive(self) -> ASGIReceiveEvent:
        """Give the next message to the application, and go on with what was sent after those that wait."""
        message = await super().receive()
        if self._rest and self._turn is None and not self.is_busy():
            self._turn = self.loop.call_soon(self.go_on)
        return message

    async def send(self, message: ASGISendEvent) -> None:
        """Send what the application says. A refusal in words ends the handshake: otherwise uvicorn logs that it has not ended."""
        await super().send(message)
        self.handshake_complete = self.handshake_complete or self.close_sent

    def handle_cont(self, event: Frame) -> None:
        """Take a fragment."""
        if event.data or event.fin:
            super().handle_cont(event)

    def handle_ping(self) -> None:
        """Answer a ping, unless its sender takes no answers."""
        output = self.conn.data_to_send()
        if self.writable.is_set():
            self.transport.write(b"".join(output))

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self.drop()
        super().connection_lost(exc)


def _no_subprotocol(_: Headers) -> None:
    """Choose none, as uvicorn has the library do."""
