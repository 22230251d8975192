"""Bounds on what uvicorn's faster protocol takes without asking, before anybody is asked for a token.

A header that never ends would be collected in memory, and requests that are
sent without waiting for their answers would be too. And the time that a head
may take is bounded: before it is complete, no handler is there that could.
"""

from __future__ import annotations

import asyncio
from typing import cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from apiserver.http.slices import Sliced

LARGEST_HEAD = 64 * 1024  # bytes of request line and headers; what is read at once may lie above
HEAD_S = 10.0  # from the first byte of a head, or from the connection's begin, to its end
TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class Bounded(Sliced, HttpToolsProtocol):
    """uvicorn's HTTP protocol; a head beyond the limit is answered with 400, and the connection closed."""

    _head: int | None = 0  # bytes of the head so far; None once it is complete
    _began = False  # whether the head began in what came last, behind the end of another request
    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, and wait for a request."""
        super().connection_made(transport)
        self._await_head()

    def is_busy(self) -> bool:
        """Whether a request waits for the answer to the one before."""
        return bool(self.pipeline)

    def is_paused(self) -> bool:
        """Whether a request waits, or a body that is not read yet."""
        return self.flow.read_paused

    def heir(self) -> asyncio.Protocol | None:
        """Return the WebSocket that the connection has become."""
        current = self.transport.get_protocol()
        return cast("asyncio.Protocol", current) if current != self else None

    def on_response_complete(self) -> None:
        """Go on with what was sent after the request."""
        super().on_response_complete()
        if self._rest and self._turn is None and not self.is_busy():
            self._turn = self.loop.call_soon(self.go_on)

    def take(self, data: bytes) -> None:
        """Work on a piece, unless the head has grown too large."""
        self._began = False
        HttpToolsProtocol.data_received(self, data)
        if self._head is None or self._began or self.transport.is_closing():
            return
        self._head += len(data)
        if self._head > LARGEST_HEAD:
            self.send_400_response("Request header fields too large.")

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self._head, self._began = 0, True
        self._await_head()

    def on_headers_complete(self) -> None:
        """End the head."""
        self._head = None
        self._got_head()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing more."""
        self._got_head()
        super().connection_lost(exc)

    def _await_head(self) -> None:
        self._got_head()
        self._late = self.loop.call_later(HEAD_S, self._too_slow)

    def _got_head(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _too_slow(self) -> None:
        self._late = None
        if self.transport.is_closing():
            return
        # Browsers connect ahead of a request: an answer to none would be taken for that of the first.
        if self._head or self._began:
            self.transport.write(TOO_SLOW)
        self.transport.close()
