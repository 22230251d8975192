"""The API server's process: the real application, asked without a socket."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import msgspec

from apiserver.http import handlers  # noqa: F401  registers who answers what
from apiserver.http.app import App
from tests.simulation.processes import Process
from tests.simulation.virtual import VirtualLoop

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cluster.access import Actor
    from tests.simulation.client import Request
    from tests.simulation.virtual import VirtualClock

ACTOR = "x-actor"


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

    def step(self) -> None:
        self.loop.turn()

    def ask(self, request: Request) -> Answer:
        """Answer a request; whatever kills the process is raised."""
        parts: list[Any] = []

        async def send(message: Any) -> None:
            parts.append(message)

        task = self.loop.create_task(self.app(_scope(request), _body(request), send))
        self.loop.turn()
        if not task.done():
            task.cancel()
            self.loop.turn()
            raise AssertionError(f"{request.method} {request.path} waits for something")
        task.result()
        status = next(p["status"] for p in parts if p["type"] == "http.response.start")
        return Answer(
            status, b"".join(p.get("body", b"") for p in parts if p["type"] == "http.response.body")
        )

    def die(self) -> None:
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            self.loop.turn()
        self.loop.close()


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


def _body(request: Request) -> Any:
    body = b"" if request.body is None else msgspec.json.encode(request.body)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive
