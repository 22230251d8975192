"""uvicorn's HTTP protocol with what ASGI cannot say: a client that is gone, slow, or to be cut off.

ASGI cannot close a connection whose client takes nothing: closing waits for
what is buffered. And to hear that a client has gone it takes a task that waits
in `receive`. The protocol class here lets a watch do both without: it lies in
its scope's extensions.

It also ends connections whose peer has vanished without a word. Keepalive finds
those on which nothing is under way; where something is, the kernel would go on
sending it for a quarter of an hour. TCP_USER_TIMEOUT is no remedy: it also
ends a connection to somebody who is there, and does not read for a while.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Any, Protocol

from starlette.types import Scope

from apiserver.http.bounds import Bounded

EXTENSION = "volcano_ui.connection"
KEEPALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))
LOOK_S = 20.0
SILENT_MS = 60_000  # how long a peer may acknowledge nothing …
TRIES = 3  # … of what it was sent this often


class Carried(Protocol):
    """The watch that a connection carries, as far as the connection knows it."""

    def lost(self) -> None:
        """Hear that the client is gone."""

    def end(self) -> None:
        """Come to a clean end."""


class Connection(Bounded):
    """uvicorn's HTTP protocol; `stream` is the watch that it carries at the moment."""

    stream: Carried | None = None
    _look: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, with keepalive."""
        super().connection_made(transport)
        raw = transport.get_extra_info("socket")
        if raw is not None and raw.family in (socket.AF_INET, socket.AF_INET6):
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for name, value in KEEPALIVE:
                if hasattr(socket, name):
                    raw.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
            if hasattr(socket, "TCP_INFO"):
                self._look_later(raw)

    def handle_websocket_upgrade(self) -> None:
        """Hand the connection over; what can be done to it lies in its scope too."""
        super().handle_websocket_upgrade()
        scope = getattr(self.transport.get_protocol(), "scope", None)
        if scope is not None:
            scope["extensions"][EXTENSION] = self

    def _look_later(self, raw: socket.socket) -> None:
        self._look = self.loop.call_later(LOOK_S, self._look_at, raw)

    def _look_at(self, raw: socket.socket) -> None:
        """End the connection if its peer has vanished; of one that was upgraded nobody else tells when it ends."""
        if self.transport.is_closing():
            return
        if has_vanished(raw):
            self.abort()
        else:
            self._look_later(raw)

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        extensions: dict[str, Any] = {EXTENSION: self}
        self.scope["extensions"] = extensions

    def connection_lost(self, exc: Exception | None) -> None:
        """End, and the watch with it."""
        self.drop()
        if self._look is not None:
            self._look.cancel()
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


def abort(scope: Scope) -> None:
    """Close the connection of a request or an upgrade at once, where the server is ours to do it."""
    extension = (scope.get("extensions") or {}).get(EXTENSION)
    if isinstance(extension, Connection):
        extension.abort()


def has_vanished(raw: socket.socket) -> bool:
    """Say whether a peer acknowledges nothing any more, neither data nor the question whether there is room for it."""
    info = raw.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 60)
    retransmits, probes = info[2], info[3]
    (silent_ms,) = struct.unpack_from("=I", info, 56)  # tcpi_last_ack_recv
    return max(retransmits, probes) >= TRIES and bool(silent_ms >= SILENT_MS)
