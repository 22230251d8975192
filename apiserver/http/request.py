"""A request on its way through the API server."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Callable
from typing import Any, TypeVar

from starlette.datastructures import Headers, QueryParams
from starlette.types import Receive, Scope, Send

from apiserver.http import bodies, forms, intake
from apiserver.http.bodies import Decoded
from apiserver.http.forms import PLAIN, Form
from apiserver.http.path import RequestInfo
from cluster.access import Actor
from kube.errors import BadRequest, RequestEntityTooLarge
from kube.meta import Object

LARGEST_BODY = 3 * 1024 * 1024  # bytes (§2.3)
MAX_WARNINGS = 50
DISCARDED_WITHIN_S = 2.0
T = TypeVar("T")


class Request:
    """One request: what it is about, who sends it, in which form the answer is wanted.

    `now` is the time at which it came, in epoch milliseconds. `warnings` go
    out with the answer, as `Warning` headers.
    """

    def __init__(self, scope: Scope, receive: Receive, send: Send, info: RequestInfo, now: int) -> None:
        self.scope = scope
        self.receive = receive
        self.send = send
        self.info = info
        self.now = now
        self.method: str = scope.get("method", "GET")
        self.path = info.path
        self.headers = Headers(scope=scope)
        self.query = QueryParams(scope["query_string"])
        self.warnings: list[str] = []
        self.form: Form = PLAIN
        self.actor: Actor
        self.intake: intake.Intake | None = None
        self._body: bytes | None = None
        self._held = 0
        self._large = False
        self._turn: asyncio.Lock | None = None
        self._read = self.method in ("GET", "HEAD")

    @property
    def unread(self) -> bool:
        """Whether a body may still be on its way."""
        return not self._read and self.headers.get("content-length", "") != "0"

    @functools.cached_property
    def user_agent(self) -> str:
        """Who says to be asking; "" when nobody does."""
        return self.headers.get("user-agent", "")

    @property
    def content_type(self) -> str:
        """The media type of the body, without parameters."""
        return bodies.media_type(self.headers.get("content-type", ""))

    def negotiate(self) -> None:
        """Choose the form of the answer; NotAcceptable when the client takes none of ours."""
        self.form = forms.negotiate(self.headers.get("accept", ""), self.query, self.user_agent)

    def warn(self, text: str) -> None:
        """Let the client show a warning to its user, once."""
        if text not in self.warnings and len(self.warnings) < MAX_WARNINGS:
            self.warnings.append(text)

    async def body(self) -> bytes:
        """Return the whole body; RequestEntityTooLarge as soon as it grows past the limit."""
        if self._body is not None:
            return self._body
        length = self.headers.get("content-length", "")
        if length.isdigit() and int(length) > LARGEST_BODY:
            raise too_large()
        parts, size, more = [], 0, True
        while more:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise BadRequest("The client closed the connection before the body was complete.")
            part = message.get("body", b"")
            size += len(part)
            if size > LARGEST_BODY:
                raise too_large()
            if self.intake is not None:
                self.intake.hold(len(part))
                self._held += len(part)
            parts.append(part)
            more = message.get("more_body", False)
        self._read = True
        self._body = b"".join(parts)
        return self._body

    async def decoded(self, content_type: str = "") -> Decoded:
        """Return the body read by its Content-Type or the given one, with the fields that it gives twice."""
        body = await self.body()
        kind = content_type or self.content_type
        self._large = len(body) > (intake.LARGE if kind == bodies.JSON else intake.LARGE_OTHER)
        if self._large and self.intake is not None and self._turn is None:
            self._turn = await self.intake.begin(self.actor.name)
        return await self.work(bodies.decode, kind, body)

    async def work(self, function: Callable[..., T], *arguments: Any) -> T:
        """Do something with what was sent: beside the event loop when that is large."""
        if self._large:
            return await intake.work(function, *arguments)
        return function(*arguments)

    def release(self) -> None:
        """Say that the request is answered, so that others find room."""
        if self.intake is not None and (self._held or self._turn):
            self.intake.end(self._held, self._turn)
            self._held, self._turn = 0, None

    async def discard(self) -> None:
        """Take in a body that nobody wants, so that closing the connection does not take the answer with it.

        A client that waits to be told to go on sends none; one that sends too much, or too slowly, is not waited for.
        """
        if not self.unread or self.headers.get("expect"):
            return
        size, more = 0, True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DISCARDED_WITHIN_S):
                while more and size <= LARGEST_BODY:
                    message = await self.receive()
                    size += len(message.get("body", b""))
                    more = message.get("more_body", False)
        self._read = not more

    async def object(self) -> Object:
        """Return the body as an object."""
        return bodies.as_object((await self.decoded()).value)


def too_large() -> RequestEntityTooLarge:
    """Return the refusal of a body that is too large."""
    return RequestEntityTooLarge(
        f"Request entity too large: limit is {LARGEST_BODY}. Keep large data in a file or a volume and name it in the object."
    )
