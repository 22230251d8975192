"""How an installation of these pages asks the API server of the world: it stands where `cluster.remote.connection` does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import urlencode

import msgspec

from cluster.remote.http.request import JSON, Impersonation, Unreachable
from kube import errors
from kube.errors import Expired
from proof.harness.answers import Answer, met
from proof.harness.system_context import SystemContext
from proof.simulation.parts import strands, troubles
from proof.simulation.parts.faults import Steps
from proof.simulation.parts.server import Connection, Server, Wrong
from proof.simulation.parts.troubles import Troubles
from proof.simulation.people.request import Request
from proof.simulation.story import Trouble

T = TypeVar("T")
URL = "https://cluster"
INSTALLED = "volcano-ui"  # as whom it asks
ANSWER_S = 30.0


class Asking:
    """The way to the API server, which may fail; `rest` lets all others work for so many microseconds."""

    def __init__(
        self,
        cluster: SystemContext,
        server: Callable[[], Server | None],
        steps: Steps,
        met_with: Troubles,
        rest: Callable[[int], None],
    ) -> None:
        self._cluster, self._server, self._steps = cluster, server, steps
        self._troubles, self._rest = met_with, rest
        self._watches: list[Watch] = []

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        media_type: str = JSON,
        impersonation: Impersonation | None = None,
        answer_s: float = ANSWER_S,
    ) -> bytes:
        """Return the body of the answer, or raise the refusal, or that there was none."""
        request = _request(method, path, query, body, media_type)
        self._steps.asks()
        trouble = self._troubles.next(reads_on="continue" in (query or ()))
        answer = self._meet(trouble, answer_s, lambda: self._ask(request))
        self._steps.answered()
        return answer

    @contextmanager
    def stream(
        self,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        impersonation: Impersonation | None = None,
        silence_s: float = ANSWER_S,
    ) -> Iterator[Iterator[bytes]]:
        """Hand out the lines of a watch as they come, until it ends or is cut."""
        self._steps.asks()
        request = _request("GET", path, query)
        watch = self._meet(self._troubles.next(reads_on=True), silence_s, lambda: self._open(request))
        self._watches.append(watch)
        try:
            watch.begin()
            yield watch.lines()
        finally:
            self._watches.remove(watch)
            watch.leave()

    def cut(self) -> None:
        """Cut the watches that are open."""
        for watch in self._watches:
            watch.is_cut = True

    def _meet(self, trouble: Trouble | None, answer_s: float, do: Callable[[], T]) -> T:
        if trouble is None:
            return do()
        if trouble.what == troubles.FORGOTTEN:
            raise Expired("too old resource version")
        if trouble.what == troubles.SLOW:
            return self._slowly(min(trouble.us, round(answer_s * 1e6)), do)
        return met(Answer(trouble.what), do)

    def _slowly(self, us: int, do: Callable[[], T]) -> T:
        """Do something in the middle of a time in which all others work."""
        self._rest(us // 2)
        done = do()
        self._rest(us - us // 2)
        return done

    def _reached(self) -> Server:
        server = self._server()
        if server is None:
            raise Unreachable(URL, "connection refused")
        return server

    def _ask(self, request: Request) -> bytes:
        server = self._reached()
        with self._cluster, self._steps.apart():
            answer = server.ask(request)
        if answer.status >= 500:
            raise Wrong(f"{request.method} {request.path}: {answer.status} {answer.body.decode()}")
        if answer.status >= 300:
            raise errors.of_status(answer.object, answer.status)
        return answer.body

    def _open(self, request: Request) -> Watch:
        server = self._reached()
        with self._cluster, self._steps.apart():
            return Watch(server, server.connect(request), self._cluster)


class Watch:
    """A watch as its client holds it, which is a strand."""

    def __init__(self, server: Server, connection: Connection, cluster: SystemContext) -> None:
        self._server, self._connection, self._cluster = server, connection, cluster
        self.is_cut = False

    @property
    def has_events(self) -> bool:
        """Whether there is something to take, or nothing will come any more."""
        return bool(self._connection.chunks) or self._connection.has_ended or self.is_cut

    def begin(self) -> None:
        """Wait for the server to agree, or raise its refusal."""
        if not self._connection.status:
            strands.wait(lambda: bool(self._connection.status) or self._connection.has_ended or self.is_cut)
        if self._connection.status < 300:
            return
        strands.wait(lambda: self._connection.has_ended or self.is_cut)
        body = b"".join(self._connection.take())
        raise errors.of_status(msgspec.json.decode(body) if body else {}, self._connection.status)

    def lines(self) -> Iterator[bytes]:
        """Yield lines; what is cut off is dropped."""
        rest = b""
        while True:
            if not self.has_events:
                strands.wait(lambda: self.has_events)
            *lines, rest = (rest + b"".join(self._connection.take())).split(b"\n")
            yield from lines
            if self.is_cut or self._server.loop.is_closed():
                raise Unreachable(URL, "it closed the connection", sent=True)
            if self._connection.has_ended and not self._connection.chunks:
                return

    def leave(self) -> None:
        """Let the server know that nobody listens any more."""
        with self._cluster:
            self._connection.leave()


def _request(
    method: str, path: str, query: Mapping[str, str] | None, body: Any = None, media_type: str = JSON
) -> Request:
    target = f"{path}?{urlencode(query)}" if query else path
    return Request(actor=INSTALLED, method=method, path=target, body=body, content_type=media_type)
