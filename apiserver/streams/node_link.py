"""`nodes/NAME/link`: the connection that a node on another machine keeps, so that the server can ask it (`node.link`)."""

from __future__ import annotations

import contextlib

from django.conf import settings
from starlette.responses import Response

from apiserver.http import routes
from apiserver.http.request import Request
from apiserver.http.rights_keeper import keeper as rights
from kube.errors import BadRequest
from kube.resources import NODES
from node.link.holder import Holder

GOING_AWAY = 1001
_held: dict[str, Holder] = {}  # of this process, by the name of the node


@routes.websocket(NODES, "link")
async def node_link(request: Request) -> None:
    """Hold the link of a node until it breaks, the node dials anew, or its right is gone."""
    await request.receive()  # the request to connect, which comes before anything else
    await request.send({"type": "websocket.accept"})

    async def send(message: bytes) -> None:
        await request.send({"type": "websocket.send", "bytes": message})

    async def receive() -> bytes | None:
        message = await request.receive()
        return None if message["type"] == "websocket.disconnect" else message.get("bytes") or b""

    name = request.info.name
    holder = Holder(settings.DATA, name, send)
    if (before := _held.get(name)) is not None:
        before.stop()
    _held[name] = holder
    try:
        with rights.holding(request, holder.stop):
            await holder.run(receive)
    finally:
        if _held.get(name) is holder:
            del _held[name]
    with contextlib.suppress(OSError, RuntimeError):  # it is closed
        await request.send({"type": "websocket.close", "code": GOING_AWAY, "reason": ""})


@routes.subresource(NODES, "link")
async def without_upgrade(request: Request) -> Response:
    """Refuse a request that is no WebSocket."""
    raise BadRequest("Upgrade request required: a node's agent keeps its link as a WebSocket.")
