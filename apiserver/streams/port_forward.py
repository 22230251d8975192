"""`pods/portforward`: connections to ports of a pod, over the one that a client has upgraded (§3.7).

Two protocols carry them. kubectl tunnels SPDY through a WebSocket and opens streams in pairs, for data and for errors, a
pair for each connection. Clients in Python name the ports before and have two channels for each, for one connection.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial

from starlette.responses import Response

from apiserver.http import routes, threads
from apiserver.http.request import Request
from apiserver.streams import admission, channels, containers
from apiserver.streams.channels import POLICY, Channels, Gone, Protocol
from apiserver.streams.forward import Forward, NoConnection
from apiserver.streams.spdy_forward import TUNNEL, SpdyForward
from cluster.store import store
from kube.errors import BadRequest
from kube.meta import Object
from kube.resources import PODS
from node.link import relay

MOST = 500  # upgraded connections at a time
MAX_OF_ONE = 250  # of one actor: who leaks them must not keep others out
MAX_PORTS = 100  # of one connection with channels, which are numbered in a byte
CHANNELS = {name: Protocol(name, status=False) for name in ("v4.channel.k8s.io", "portforward.k8s.io", "")}
WITHOUT_UPGRADE = (
    f"Upgrade request required: ports are forwarded over WebSocket ({TUNNEL} and v4.channel.k8s.io), and SPDY without it is "
    "not served; use kubectl 1.31 or later, set KUBECTL_PORT_FORWARD_WEBSOCKETS=true for 1.30, or take a client that speaks "
    "WebSocket."
)
_open: Counter[str] = Counter()


@routes.websocket(PODS, "portforward")
async def pod_port_forward(request: Request) -> None:
    """Forward ports until the client goes or loses the right, and where the client named them until all have ended."""
    protocol = channels.chosen(request, (TUNNEL, *CHANNELS))
    ports = [] if protocol == TUNNEL else _ports(request.query.getlist("ports"))
    pod = await _pod(request)
    talk: SpdyForward | ChannelForward
    if protocol == TUNNEL:
        talk = SpdyForward(request, pod)
    else:
        talk = ChannelForward(request, CHANNELS[protocol], pod, ports)
    what = "clients forward ports"
    with admission.counted(_open, request.actor.name, MOST, MAX_OF_ONE, what):
        await threads.write(admission.note, request, pod, f"ports {', '.join(map(str, ports))}" if ports else "")
        async with admission.permitted(request, talk) as lost:
            await talk.run(lost)


@routes.subresource(PODS, "portforward")
async def without_upgrade(request: Request) -> Response:
    """Refuse a request that is no WebSocket, for what else is wrong with it first."""
    await _pod(request)
    raise BadRequest(WITHOUT_UPGRADE)


async def _pod(request: Request) -> Object:
    pod = (await threads.read(store.get, PODS, request.info.namespace, request.info.name)).object
    containers.check_running(pod)
    return pod


def _ports(parameters: list[str]) -> list[int]:
    """Return the ports that a client names; BadRequest when one is none, or when there are none or too many."""
    words = [word for text in parameters for word in text.split(",")]
    if not words:
        raise BadRequest("you must specify at least 1 port to forward, as ?ports=8080")
    if len(words) > MAX_PORTS:
        raise BadRequest(f"{len(words)} ports are too many for one connection, which has channels for {MAX_PORTS}")
    for word in words:
        if not (word.isdecimal() and word.isascii() and len(word) <= 5 and 0 < int(word) < 1 << 16):
            raise BadRequest(f'"{word[:20]}" is no port: a number from 1 to 65535 is wanted')
    return [int(word) for word in words]


class ChannelForward(Channels):
    """Ports by channels: of the n-th, 2n carries data and 2n+1 what went wrong; each begins with the port's number."""

    def __init__(self, request: Request, protocol: Protocol, pod: Object, ports: list[int]) -> None:
        super().__init__(request, protocol)
        self._pod, self._ports, self._who = pod, ports, request.actor.name
        self._forwards = [Forward(partial(self._deliver, number)) for number in range(len(ports))]

    async def run(self, lost: asyncio.Event) -> None:
        """Forward until the client goes, all connections have ended, or the right is lost."""
        try:
            await self.accept()
            for number, port in enumerate(self._ports):
                await self.send(2 * number, port.to_bytes(2, "little"))
                await self.send(2 * number + 1, port.to_bytes(2, "little"))
            async with relay.tasks() as begin:
                works = [begin(self._forward(number)) for number in range(len(self._ports))]
                over = begin(asyncio.wait(works, return_when=asyncio.FIRST_EXCEPTION))
                client = begin(self._listen())
                await asyncio.wait({over, client, begin(lost.wait())}, return_when=asyncio.FIRST_COMPLETED)
                if not client.done() and not lost.is_set():
                    await self.close()
        except Gone:
            pass

    async def finish(self, status: Object) -> None:
        """Say on the channels for errors why it ended, and close."""
        for number in range(len(self._ports)):
            await self.send(2 * number + 1, status["message"].encode())
        await self.close(POLICY, status["message"])

    async def _listen(self) -> None:
        while (message := await self.receive()) is not None:
            number, is_error = divmod(message[0], 2)
            if not is_error and number < len(self._forwards):
                await self._forwards[number].feed(message[1])

    async def _deliver(self, number: int, data: bytes) -> None:
        if data:
            await self.send(2 * number, data)
        else:  # no message says that one way has ended, so the client is not to be waited for: it waits itself
            await self._forwards[number].end_input()

    async def _forward(self, number: int) -> None:
        try:
            await self._forwards[number].run(self._pod, self._ports[number], self._who)
        except NoConnection as error:
            await self.send(2 * number + 1, str(error).encode())
