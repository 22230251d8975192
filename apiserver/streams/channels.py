"""The channels of an upgraded connection: several streams in one WebSocket (reference: kubernetes-api §3.7).

The first byte of a message is the number of its channel. In the base64
variants messages are text: a digit, then base64. From v4 on the last word of
the server is a Status, before it was a line of text; v5 can close a channel.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import TYPE_CHECKING, Any, NamedTuple

from kube.errors import BadRequest

if TYPE_CHECKING:
    from apiserver.http.request import Request
    from kube.meta import Object

STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
NORMAL = 1000


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


class Channels:
    """One upgraded connection."""

    def __init__(self, request: Request, protocol: Protocol) -> None:
        self._receive = request.receive
        self._send = request.send
        self.protocol = protocol
        self.is_finished = False

    @classmethod
    def negotiate(cls, request: Request) -> Channels:
        """Choose the first subprotocol of the client's that is known; BadRequest when it wants none of ours."""
        offered = request.scope.get("subprotocols") or [""]
        for name in offered:
            if name in PROTOCOLS:
                return cls(request, PROTOCOLS[name])
        ours = ", ".join(name for name in PROTOCOLS if name)
        raise BadRequest(f"unable to upgrade: none of the subprotocols is served; these are: {ours}")

    async def accept(self) -> None:
        """Upgrade the connection; this and what follows raises Gone when the client has gone."""
        await self._receive()  # the request to connect, which comes before anything else
        await self._say({"type": "websocket.accept", "subprotocol": self.protocol.name or None})

    async def receive(self) -> tuple[int, bytes] | None:
        """Return the channel and content of the next message; None when the client has gone."""
        while True:
            message = await self._receive()
            if message["type"] == "websocket.disconnect":
                return None
            found = self._read(message.get("bytes") or (message.get("text") or "").encode())
            if found is not None:
                return found

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
            await self._say({"type": "websocket.send", "bytes": bytes([channel]) + data})

    async def finish(self, status: Object) -> None:
        """Say how it ended, and close."""
        self.is_finished = True
        if self.protocol.status:
            await self.send(ERROR, json.dumps(status).encode())
        elif status["status"] != "Success":
            await self.send(ERROR, status["message"].encode())
        await self._say({"type": "websocket.close", "code": NORMAL, "reason": ""})

    async def _say(self, message: dict[str, Any]) -> None:
        try:
            await self._send(message)
        except OSError:
            raise Gone from None
