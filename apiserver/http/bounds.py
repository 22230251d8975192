"""Bounds on what uvicorn's faster protocol takes without asking, before anybody is asked for a token.

A header that never ends would be collected in memory, and requests that are
sent without waiting for their answers would be too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from apiserver.http.slices import Sliced

if TYPE_CHECKING:
    import asyncio

LARGEST_HEAD = 64 * 1024  # bytes of request line and headers; what is read at once may lie above


class Bounded(Sliced, HttpToolsProtocol):
    """uvicorn's HTTP protocol; a head beyond the limit is answered with 400, and the connection closed."""

    _head: int | None = 0  # bytes of the head so far; None once it is complete
    _began = False  # whether the head began in what came last, behind the end of another request

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

    def on_headers_complete(self) -> None:
        """End the head."""
        self._head = None
        super().on_headers_complete()
