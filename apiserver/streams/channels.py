"""The channels of an upgraded connection: several streams in one WebSocket (reference: kubernetes-api §3.7).

The first byte of a message is the number of its channel. In the base64
variants messages are text: a digit, then base64. From v4 on the last word of
the server is a Status, before it was a line of text; v5 can close a channel.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Collection
from typing import Any, NamedTuple

from apiserver.http.request import Request
from kube.errors import BadRequest
from kube.meta import Object

STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
NORMAL, PROTOCOL_ERROR, POLICY = 1000, 1002, 1008  # why a WebSocket is closed
LONGEST_REASON = 120  # characters of the reason, which has 123 bytes


class Gone(Exception):
    """The client has gone."""


class Protocol(NamedTuple):
    """How one subprotocol writes messages."""

    name: str
    base64: bool = False
    status: bool = True  # the last word is a Status


PROTOCOLS = {
    one.name: one
    for one in (
        Protocol("v5.channel.k8s.io"),
        Protocol("v4.channel.k8s.io"),
        Protocol("v4.base64.channel.k8s.io", base64=True),
        Protocol("channel.k8s.io", status=False),
        Protocol("base64.channel.k8s.io", base64=True, status=False),
        Protocol("", status=False),
    )
}


def chosen(request: Request, served: Collection[str]) -> str:
    """Return the first subprotocol of the client's that is served; BadRequest when it wants none of these."""
    for name in request.scope.get("subprotocols") or [""]:
        if name in served:
            return str(name)
    ours = ", ".join(name for name in served if name)
    raise BadRequest(f"unable to upgrade: none of the subprotocols is served; these are: {ours}")


class Messages:
    """One upgraded connection. What it does raises Gone when the client has gone."""

    def __init__(self, request: Request, subprotocol: str) -> None:
        self._receive = request.receive
        self._send = request.send
        self._subprotocol = subprotocol
        self.is_finished = False

    async def accept(self) -> None:
        """Upgrade the connection."""
        await self._receive()  # the request to connect, which comes before anything else
        await self._say({"type": "websocket.accept", "subprotocol": self._subprotocol or None})

    async def receive_message(self) -> bytes | None:
        """Return the next message; None when the client has gone."""
        message = await self._receive()
        if message["type"] == "websocket.disconnect":
            return None
        return message.get("bytes") or (message.get("text") or "").encode()

    async def send_message(self, data: bytes) -> None:
        """Send a message; waits while the client is slower."""
        await self._say({"type": "websocket.send", "bytes": data})

    async def close(self, code: int = NORMAL, reason: str = "") -> None:
        """Close the connection, with a reason for a person as far as there is room for it."""
        self.is_finished = True
        await self._say({"type": "websocket.close", "code": code, "reason": reason[:LONGEST_REASON]})

    async def _say(self, message: dict[str, Any]) -> None:
        try:
            await self._send(message)
        except OSError:
            raise Gone from None


class Channels(Messages):
    """One upgraded connection with channels."""

    def __init__(self, request: Request, protocol: Protocol) -> None:
        super().__init__(request, protocol.name)
        self.protocol = protocol

    @classmethod
    def negotiate(cls, request: Request) -> Channels:
        """Choose the first subprotocol of the client's that is known; BadRequest when it wants none of ours."""
        return cls(request, PROTOCOLS[chosen(request, PROTOCOLS)])

    async def receive(self) -> tuple[int, bytes] | None:
        """Return the channel and content of the next message; None when the client has gone."""
        while (message := await self.receive_message()) is not None:
            content = self._read(message)
            if content is not None:
                return content
        return None

    def _read(self, data: bytes) -> tuple[int, bytes] | None:
        if not data:
            return None
        if not self.protocol.base64:
            return data[0], data[1:]
        try:
            return data[0] - ord("0"), base64.b64decode(data[1:])
        except binascii.Error:
            return None

    async def send(self, channel: int, data: bytes) -> None:
        """Send a message; waits while the client is slower."""
        if self.protocol.base64:
            text = f"{channel}{base64.b64encode(data).decode()}"
            await self._say({"type": "websocket.send", "text": text})
        else:
            await self.send_message(bytes([channel]) + data)

    async def finish(self, status: Object) -> None:
        """Say how it ended, and close."""
        if self.protocol.status:
            await self.send(ERROR, json.dumps(status).encode())
        elif status["status"] != "Success":
            await self.send(ERROR, status["message"].encode())
        await self.close()
