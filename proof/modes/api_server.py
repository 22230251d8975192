"""The API server of the cluster in this process, as those ask it who work on it from elsewhere.

It stands where `cluster.remote.connection.Connection` does: the application itself answers, without a socket. A watch
tells what there is to tell and ends, as one does whose time is over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

import msgspec

from apiserver.watch import follower
from cluster import access
from cluster.remote.http.request import JSON, Impersonation
from cluster.store import store
from kube import errors
from proof.harness.system_context import SystemContext
from proof.simulation.parts.server import Connection, Server
from proof.simulation.parts.virtual import VirtualClock
from proof.simulation.people.request import Request

PASS_US = 110_000  # longer than the follower rests between two passes
PASSES = 3  # in which a watch has begun, and has told what came before


class ApiServer:
    """The cluster's API server, which works on the database that is the default one when this is made."""

    def __init__(self) -> None:
        self.context = SystemContext.here()
        # Its loop has a time of its own, as a test's clock may stand still.
        self.time = VirtualClock()
        self.server = Server("api", self.time, {"system": access.SYSTEM})

    def close(self) -> None:
        """End, and every watch with it."""
        with self.context:
            self.server.die()

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        media_type: str = JSON,
        impersonation: Impersonation | None = None,
        answer_s: float = 0.0,
    ) -> bytes:
        """Return the body of the answer, or raise the refusal."""
        with self.context:
            answer = self.server.ask(_request(method, path, query, body, media_type))
        if answer.status >= 300:
            raise errors.of_status(answer.object, answer.status)
        return answer.body

    @contextmanager
    def stream(
        self,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        impersonation: Impersonation | None = None,
        silence_s: float = 0.0,
    ) -> Iterator[Iterator[bytes]]:
        """Hand out the lines of a watch up to what is there now."""
        with self.context:
            connection = self.server.connect(_request("GET", path, query))
            body = b"".join(self._chunks(connection))
            connection.leave()
            self.server.step()
        if connection.status >= 300:
            raise errors.of_status(msgspec.json.decode(body), connection.status)
        yield iter(body.splitlines())

    def _chunks(self, connection: Connection) -> Iterator[bytes]:
        """Yield what a watch says until its server has read the whole log, and had time to tell what was missed."""
        head, passes = store.revision(), 0
        while passes < PASSES and not connection.has_ended:
            passes += follower.position >= head
            self.server.step()
            while chunks := connection.take():
                yield from chunks
                self.server.step()
            self.time.go_on(PASS_US)
        yield from connection.take()


def _request(
    method: str, path: str, query: Mapping[str, str] | None, body: Any = None, media_type: str = JSON
) -> Request:
    target = f"{path}?{urlencode(query)}" if query else path
    return Request(actor="system", method=method, path=target, body=body, content_type=media_type)
