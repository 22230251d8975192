"""The node's end of a link: dials the server again and again. Works in a thread of its own beside the agent (`node.agent.daemon.Companion`)."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import ssl
import threading
from contextlib import suppress
from urllib.parse import quote

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from cluster import clock
from cluster.runtime.outage import Outage
from node import usage
from node.faults import Faults
from node.link import frames, request_handler
from node.link.frames import BadFrame, Frame, Kind
from node.link.wire import NODE_READS, LinkLost, Wire
from node.membership import Server
from node.paths import Layout

BEAT_S = 10.0
RETRY_S, LONGEST_RETRY_S = 0.25, 5.0  # from a try that failed to the next
OPEN_S = 10.0
SILENT_S = 20.0  # a server that answers no ping for so long is gone
log = logging.getLogger(__name__)


class Dialer:
    """Holds a link to the server of a cluster, which sends its requests to this node over it."""

    def __init__(self, server: Server, node: str, layout: Layout) -> None:
        self._server = server
        self._node = node
        self._layout = layout
        self._outage = Outage("the link by which the server reads logs and runs commands here", log)
        self._faults = Faults("the link by which the server reads logs and runs commands here", log)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._main: asyncio.Task[None] | None = None
        self._is_stopped = False
        self._thread = threading.Thread(target=self._run, name="link", daemon=True)

    def start(self) -> None:
        """Begin to dial."""
        self._thread.start()

    def stop(self) -> None:
        """Let go of the link; commands that run by it end."""
        self._is_stopped = True
        if self._loop is not None and self._main is not None:
            with suppress(RuntimeError):  # it has ended by itself
                self._loop.call_soon_threadsafe(self._main.cancel)
        if self._thread.is_alive():
            self._thread.join(2.0)

    def _run(self) -> None:
        with suppress(asyncio.CancelledError):
            asyncio.run(self._redial())

    async def _redial(self) -> None:
        self._loop, self._main = asyncio.get_running_loop(), asyncio.current_task()
        wait_s = RETRY_S
        while not self._is_stopped:
            begun = clock.monotonic()
            try:
                await self._serve_link()
            except (OSError, WebSocketException, BadFrame, TimeoutError, ValueError) as error:
                self._outage.lasts(error)
            except Exception as error:
                self._faults.note(error)
            # A link that lasted a while is dialled again quickly; a server that refuses ever less often.
            wait_s = RETRY_S if clock.monotonic() - begun > LONGEST_RETRY_S else min(2 * wait_s, LONGEST_RETRY_S)
            await asyncio.sleep(wait_s * random.uniform(0.5, 1.0))  # noqa: S311  so that nodes do not come together

    async def _serve_link(self) -> None:
        """Dial, and answer requests until the link breaks."""
        server = self._server
        address = f"{server.url.rstrip('/')}/api/v1/nodes/{quote(self._node)}/link".replace("http", "ws", 1)
        async with connect(
            address,
            additional_headers={"Authorization": f"Bearer {server.token}"},
            ssl=ssl.create_default_context(cadata=server.ca or None) if address.startswith("wss:") else None,
            compression=None,
            proxy=None,  # as for all requests of this node
            max_size=frames.LARGEST_FRAME,
            open_timeout=OPEN_S,
            ping_interval=BEAT_S,
            ping_timeout=SILENT_S,
            close_timeout=1.0,
        ) as connection:
            self._outage.over()
            await self._answer(connection)

    async def _answer(self, connection: ClientConnection) -> None:
        async def send(message: bytes) -> None:
            try:
                await connection.send(message)
            except WebSocketException:
                raise LinkLost from None

        wire = Wire(send, NODE_READS)
        running = {asyncio.ensure_future(self._beat(wire))}
        try:
            async for message in connection:
                if isinstance(message, str):
                    raise BadFrame("A message of text is no frame.")
                frame = wire.on_message(message)
                if frame is None:
                    continue
                if frame.kind != Kind.OPEN:
                    raise BadFrame("A server has no signs of life to give.")
                work = request_handler.answer(wire.begin(frame.conversation), frames.json_of(frame.data))
                task = asyncio.ensure_future(work)
                running.add(task)
                task.add_done_callback(running.discard)
        finally:
            wire.lose()
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def _beat(self, wire: Wire) -> None:
        """Send heartbeats, with this machine's use where that was measured again."""
        sent_at = 0
        with suppress(LinkLost):
            while True:
                figures = await asyncio.to_thread(usage.read, self._layout, clock.milliseconds())
                fresh = figures if figures.get("at", 0) != sent_at else {}
                sent_at = figures.get("at", sent_at)
                # As many figures as a frame has room for.
                payload = {name: fresh[name] for name in ("containers", "machine", "devices") if name in fresh}
                data = json.dumps(payload).encode()
                await wire.send(Frame(Kind.BEAT, data=data if len(data) <= frames.MAX_JSON else b"{}"))
                await asyncio.sleep(BEAT_S)
