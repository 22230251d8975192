"""The API server's process: the real application, asked without a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

import msgspec

from apiserver import handlers  # noqa: F401  registers who answers what
from apiserver.app import App
from cluster.access import Actor
from proof.simulation.parts.processes import Process
from proof.simulation.parts.virtual import VirtualClock, VirtualLoop
from proof.simulation.people.client import Request

ACTOR = "x-actor"
UNREAD = 20  # chunks that a connection holds for a client that takes nothing


class Wrong(AssertionError):
    """Something that no invariant of the log says: an answer that must not be."""


class Answer(msgspec.Struct):
    """What came back; status 0 when the connection ended without an answer."""

    status: int
    body: bytes = b""

    @property
    def object(self) -> Any:
        """The JSON of the body; None without one."""
        return msgspec.json.decode(self.body) if self.body else None


class Server(Process):
    """The API server. Its event loop works when a request comes or something is due."""

    def __init__(self, name: str, clock: VirtualClock, actors: Mapping[str, Actor]) -> None:
        super().__init__(name)
        self.clock = clock
        self.loop = VirtualLoop(clock)
        self.app = App(self._authenticate)
        self.actors = actors

    async def _authenticate(self, headers: Any) -> Actor:
        return self.actors[headers[ACTOR]]

    @property
    def is_ready(self) -> bool:
        return self.loop.due is not None and self.loop.due <= self.clock.monotonic()

    @property
    def due(self) -> float | None:
        return self.loop.due

    @property
    def is_serving(self) -> bool:
        return self.loop.is_running()

    def step(self) -> None:
        self.loop.turn()

    def ask(self, request: Request) -> Answer:
        """Answer a request; whatever kills the process is raised."""
        parts: list[Any] = []

        async def send(message: Any) -> None:
            parts.append(message)

        self.loop.do(self.app(_scope(request), _receive(request, self.loop.create_future()), send))
        status = next(p["status"] for p in parts if p["type"] == "http.response.start")
        return Answer(status, b"".join(p.get("body", b"") for p in parts if p["type"] == "http.response.body"))

    def connect(self, request: Request) -> Connection:
        """Begin to answer a watch."""
        connection = Connection(self.loop)
        receive = _receive(request, connection.left)
        task = self.loop.create_task(self.app(_scope(request), receive, connection.send))
        task.add_done_callback(connection.end)
        self.loop.turn()
        return connection

    def die(self) -> None:
        self.loop.end()


class Connection:
    """A watch as its client holds it: what has come and is not taken yet."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self.status = 0
        self.chunks: list[bytes] = []
        self.has_ended = False
        self.left: asyncio.Future[None] = loop.create_future()
        self._room: asyncio.Future[None] | None = None

    def take(self) -> list[bytes]:
        """Take what has come; then there is room for more."""
        taken, self.chunks = self.chunks, []
        if self._room is not None and not self._room.done():
            self._room.set_result(None)
        return taken

    def leave(self) -> None:
        """Let the server know that nobody listens any more."""
        if not self._loop.is_closed() and not self.left.done():
            self.left.set_result(None)

    # The server's side.

    async def send(self, message: Any) -> None:
        """Take a part of the answer, when there is room for it."""
        if len(self.chunks) >= UNREAD and not self.has_ended:
            self._room = self._loop.create_future()
            await self._room
        self.status = message.get("status", self.status)
        if chunk := message.get("body"):
            self.chunks.append(chunk)

    def end(self, task: asyncio.Task[None]) -> None:
        """Note that nothing more comes."""
        self.has_ended = True
        if not task.cancelled():
            task.exception()  # what kills the server is told elsewhere


def _scope(request: Request) -> dict[str, Any]:
    path, _, query = request.path.partition("?")
    headers = [(ACTOR.encode(), request.actor.encode()), (b"user-agent", b"simulation")]
    if request.body is not None:
        headers += [(b"content-type", request.content_type.encode())]
    else:
        headers += [(b"content-length", b"0")]
    return {
        "type": "http",
        "method": request.method,
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": headers,
        "http_version": "1.1",
        "scheme": "https",
        "server": ("127.0.0.1", 8443),
        "client": ("127.0.0.1", 1),
        "extensions": {},
    }


def _receive(request: Request, left: asyncio.Future[None]) -> Any:
    """Return what hears the client: its request, and then that it has gone."""
    bodies = [b"" if request.body is None else msgspec.json.encode(request.body)]

    async def receive() -> dict[str, Any]:
        if bodies:
            return {"type": "http.request", "body": bodies.pop(), "more_body": False}
        await left
        return {"type": "http.disconnect"}

    return receive
