"""The server's side of a connection, and what a watch needs of it beyond ASGI.

ASGI cannot close a connection whose client takes nothing: closing waits for
what is buffered. And to hear that a client has gone it takes a task that waits
in `receive`. The protocol class here lets a watch do both without: it lies in
its scope's extensions.
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


class Connection(Bounded):
    """uvicorn's HTTP protocol; `stream` is the watch that it carries at the moment."""

    stream: Stream | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, with keepalive."""
        super().connection_made(transport)
        raw = transport.get_extra_info("socket")
        if raw is not None and raw.family in (socket.AF_INET, socket.AF_INET6):
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for name, value in KEEPALIVE:
                if hasattr(socket, name):
                    raw.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        extensions: dict[str, Any] = {EXTENSION: self}
        self.scope["extensions"] = extensions

    def connection_lost(self, exc: Exception | None) -> None:
        """End, and the watch with it."""
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
