"""One connection to a port of a pod, and what passes over it both ways, whatever protocol the client speaks."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from weakref import WeakValueDictionary

from apiserver.streams import admission
from apiserver.streams.node_connection import Connected, begin
from kube.errors import ApiError
from kube.meta import Object
from node import pipes

MOST = 500  # at a time; each holds two descriptors and at most `pipes.HELD_BYTES`
MAX_OF_ONE = 250  # of one actor: who leaks them must not keep others out
# Connections to a port that are being made: the sockets of shims and agents hold ten requests, of all who ask.
AT_ONCE = 2
REFUSED = "connection refused"  # as the system says it
_open: Counter[str] = Counter()
_turns: WeakValueDictionary[tuple[str, int], asyncio.Semaphore] = WeakValueDictionary()


class NoConnection(Exception):
    """The pod does not take the connection; the message says why, for a person."""


class Forward:
    """A connection to a port: fed by the client, it delivers what the pod sends, and b"" at the end of that.

    `deliver` waits while the client is slower; `written` hears how many bytes the pod's side has taken.
    """

    def __init__(
        self, deliver: Callable[[bytes], Awaitable[None]], written: Callable[[int], Awaitable[None]] | None = None
    ) -> None:
        self._deliver = deliver
        self._feeder = pipes.Feeder(-1, written=written)

    async def feed(self, data: bytes) -> None:
        """Take bytes for the pod, which may be more than it takes now; waits when much is held back already."""
        await self._feeder.feed(data)

    async def end_input(self) -> None:
        """Take no more: the pod is to read the end of the client's bytes."""
        await self._feeder.close()

    async def run(self, pod: Object, port: int, who: str) -> None:
        """Connect for an actor, and carry until both ways have ended; NoConnection when there is none."""
        try:
            what = "connections to ports of pods are open"
            with admission.counted(_open, who, MOST, MAX_OF_ONE, what):
                async with _connection(pod, port) as connected:
                    await self._carry(connected)
        except ConnectionError as error:
            raise NoConnection(_problem(pod, port, str(error))) from None
        except ApiError as error:
            raise NoConnection(_problem(pod, port, error.message)) from None

    async def _carry(self, connected: socket.socket) -> None:
        feeding = asyncio.ensure_future(self._feed(connected))
        try:
            while data := await pipes.read(connected.fileno()):
                await self._deliver(data)
            await self._deliver(b"")
            await feeding
        finally:
            feeding.cancel()
            await asyncio.gather(feeding, return_exceptions=True)
            self._feeder.release()

    async def _feed(self, connected: socket.socket) -> None:
        self._feeder.fd = connected.dup().detach()
        await self._feeder.run()  # it closes its own descriptor, and the socket is still to be read
        with contextlib.suppress(OSError):  # the pod has closed it
            connected.shutdown(socket.SHUT_WR)


@contextlib.asynccontextmanager
async def _connection(pod: Object, port: int) -> AsyncIterator[socket.socket]:
    turn = _turns.setdefault((pod["metadata"]["uid"], port), asyncio.Semaphore(AT_ONCE))
    with contextlib.ExitStack() as stack:
        async with turn:
            node = await begin(Connected.start, pod, port)
            stack.callback(node.close)
            connected = await node.answer()
        yield connected


def _problem(pod: Object, port: int, why: str) -> str:
    # Its localhost is tried as well, but only where that is its own.
    address = pod["status"].get("podIP") or "its address"
    remedy = f": no program of the pod listens at this port of {address}" if why == REFUSED else ""
    return f"error forwarding port {port} to pod {pod['metadata']['name']}: {why}{remedy}"
