"""A bound on what comes before a request's body, which uvicorn's faster protocol does not have.

A header that never ends would otherwise be collected in memory, before anybody
is asked for a token.
"""

from __future__ import annotations

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LARGEST_HEAD = 64 * 1024  # bytes of request line and headers; what is read at once may lie above


class Bounded(HttpToolsProtocol):
    """uvicorn's HTTP protocol; a head beyond the limit is answered with 400, and the connection closed."""

    _head: int | None = 0  # bytes of the head so far; None once it is complete
    _began = False  # whether the head began in what came last, behind the end of another request

    def data_received(self, data: bytes) -> None:
        """Take what came, unless the head has grown too large."""
        self._began = False
        super().data_received(data)
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
