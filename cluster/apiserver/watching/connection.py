"""The server's side of a connection, and what a watch needs of it beyond ASGI.

ASGI cannot close a connection whose client takes nothing: closing waits for
what is buffered. And to hear that a client has gone it takes a task that waits
in `receive`. The protocol class here lets a watch do both without: it lies in
its scope's extensions.

It also bounds the time that the head of a request may take: before it is
complete, no handler is there that could.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

from cluster.apiserver.bounds import Bounded

if TYPE_CHECKING:
    import asyncio

    from cluster.apiserver.watching.stream import Stream

EXTENSION = "volcano_ui.connection"
# A peer that vanished without a word is noticed within a minute, also on a watch that is silent.
KEEPALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))
HEAD_S = 20.0  # from the first byte of a head, or from the connection's begin, to its end
TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class Connection(Bounded):
    """uvicorn's HTTP protocol; `stream` is the watch that it carries at the moment."""

    stream: Stream | None = None
    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, with keepalive."""
        super().connection_made(transport)
        raw = transport.get_extra_info("socket")
        if raw is not None and raw.family in (socket.AF_INET, socket.AF_INET6):
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for name, value in KEEPALIVE:
                if hasattr(socket, name):
                    raw.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        self._await_head()

    def handle_websocket_upgrade(self) -> None:
        """Hand the connection over."""
        self._got_head()
        super().handle_websocket_upgrade()

    def _await_head(self) -> None:
        self._got_head()
        self._late = self.loop.call_later(HEAD_S, self._too_slow)

    def _got_head(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _too_slow(self) -> None:
        self._late = None
        if not self.transport.is_closing():
            self.transport.write(TOO_SLOW)
            self.transport.close()

    def on_headers_complete(self) -> None:
        """Answer the request."""
        self._got_head()
        super().on_headers_complete()

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self._await_head()
        extensions: dict[str, Any] = {EXTENSION: self}
        self.scope["extensions"] = extensions

    def connection_lost(self, exc: Exception | None) -> None:
        """End, and the watch with it."""
        self._got_head()
        self.drop()
        super().connection_lost(exc)
        if self.stream is not None:
            self.stream.lost()

    def shutdown(self) -> None:
        """End the watch cleanly when the server stops."""
        super().shutdown()
        if self.stream is not None:
            self.stream.end()

    def abort(self) -> None:
        """Close the connection without sending what is buffered."""
        self.transport.abort()
