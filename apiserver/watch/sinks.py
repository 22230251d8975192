"""Where a watch goes: into the answer of a request, or into a WebSocket as one message per event."""

from __future__ import annotations

import asyncio

from starlette.types import Message, Receive, Scope, Send

from apiserver.watch.connection import EXTENSION, Carried, Connection

GONE = ("http.disconnect", "websocket.disconnect")


class _Sink:
    """What both have in common: hearing that the client has gone."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        extension = (scope.get("extensions") or {}).get(EXTENSION)
        self._connection: Connection | None = extension if isinstance(extension, Connection) else None
        self._listening: asyncio.Task[None] | None = None

    def attach(self, stream: Carried) -> None:
        """Tell the stream when the client goes or the server stops."""
        if self._connection is not None:
            self._connection.stream = stream
        else:
            self._listening = asyncio.create_task(self._listen(stream))

    def detach(self) -> None:
        """Tell it nothing more."""
        if self._connection is not None:
            self._connection.stream = None
        if self._listening is not None:
            self._listening.cancel()

    def abort(self) -> bool:
        """Close the connection at once, if it can be."""
        if self._connection is None:
            return False
        self._connection.abort()
        return True

    async def _listen(self, stream: Carried) -> None:
        message: Message = {"type": ""}
        while message["type"] not in GONE:
            message = await self._receive()
        stream.lost()


class HttpSink(_Sink):
    """The body of an answer; its headers go out at once."""

    def __init__(
        self, scope: Scope, receive: Receive, send: Send, status: int, headers: list[tuple[bytes, bytes]]
    ) -> None:
        super().__init__(scope, receive, send)
        self._start: Message = {"type": "http.response.start", "status": status, "headers": headers}

    async def open(self) -> None:
        """Send the headers."""
        await self._send(self._start)
        # Some servers keep the headers until there is a body.
        await self._send({"type": "http.response.body", "body": b"", "more_body": True})

    async def send(self, lines: bytes) -> None:
        """Send lines, or a piece of them."""
        await self._send({"type": "http.response.body", "body": lines, "more_body": True})

    async def close(self) -> None:
        """Send the last chunk."""
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})


class SocketSink(_Sink):
    """A WebSocket: a text message for each event."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        super().__init__(scope, receive, send)
        self._rest = b""

    def attach(self, stream: Carried) -> None:
        """Listen for the end: an upgraded connection tells nobody else of it."""
        self._listening = asyncio.create_task(self._listen(stream))

    async def open(self) -> None:
        """Accept."""
        await self._send({"type": "websocket.accept"})

    async def send(self, lines: bytes) -> None:
        """Send the events that are complete; the beginning of another waits for its end."""
        *whole, self._rest = (self._rest + lines).split(b"\n")
        for line in whole:
            await self._send({"type": "websocket.send", "text": line.decode()})

    async def close(self) -> None:
        """Close as after work that is done."""
        await self._send({"type": "websocket.close", "code": 1000})
