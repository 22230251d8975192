"""`pods/log`: what a container printed, as text, and what it goes on to print (reference: kubernetes-api §3.7)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

from starlette.datastructures import QueryParams
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from apiserver.http import query, routes, threads
from apiserver.http.request import Request
from apiserver.http.rights_keeper import keeper as rights
from apiserver.streams import containers
from apiserver.watch import connection
from cluster.api import backend
from cluster.backend import LogText, NodeAway, NoLog
from cluster.store import store
from kube import errors
from kube.errors import BadRequest, Invalid, ServiceUnavailable, TooManyRequests
from kube.meta import parse_time
from kube.resources import PODS

STREAMS = ("All", "Stderr", "Stdout")
MAX_FOLLOWERS = 1000  # at a time
MAX_OF_ONE = 500  # of one actor
INT64 = 2**63
LAST: Message = {"type": "http.response.body", "body": b"", "more_body": False}
END_S = 0.2  # for a client whose right is gone to take the last chunk
_followers: Counter[str] = Counter()
log = logging.getLogger(__name__)


class Options(NamedTuple):
    """Which log is requested, and which part of it."""

    container: str
    previous: bool
    text: LogText


def options(parameters: QueryParams, name: str, now: int) -> Options:
    """Read the parameters of a request for the log of the named pod; BadRequest or Invalid says what is wrong."""
    tail, limit = _number(parameters, "tailLines"), _number(parameters, "limitBytes")
    seconds, time = _number(parameters, "sinceSeconds"), _time(parameters)
    stream = parameters.get("stream") or "All"
    causes = []
    if tail is not None and tail < 0:
        causes.append(errors.invalid("tailLines", tail, "must be greater than or equal to 0"))
    if limit is not None and limit < 1:
        causes.append(errors.invalid("limitBytes", limit, "must be greater than 0"))
    if seconds is not None and time is not None:
        causes.append(errors.forbidden("", "at most one of `sinceTime` or `sinceSeconds` may be specified"))
    elif seconds is not None and seconds < 1:
        causes.append(errors.invalid("sinceSeconds", seconds, "must be greater than 0"))
    if stream not in STREAMS:
        causes.append(errors.not_supported("stream", stream, STREAMS))
    elif stream != "All" and tail is not None:
        causes.append(errors.forbidden("", "`tailLines` and specific `stream` are mutually exclusive for now"))
    if causes:
        raise Invalid.of("PodLogOptions", name, causes)
    if seconds is not None:
        time = max(0, now - seconds * 1000)
    text = LogText(
        follow=query.flag(parameters, "follow"),
        timestamps=query.flag(parameters, "timestamps"),
        since_us=None if time is None else time * 1000,
        tail_lines=tail,
        limit_bytes=limit,
        stream="" if stream == "All" else stream.lower(),
    )
    return Options(parameters.get("container", ""), query.flag(parameters, "previous"), text)


def _number(parameters: QueryParams, name: str) -> int | None:
    text = parameters.get(name)
    if text is None:
        return None
    if not re.fullmatch(r"[+-]?[0-9]{1,4000}", text):
        raise BadRequest(f"strconv.ParseInt: parsing {errors.quoted(text)}: invalid syntax")
    if not -INT64 <= int(text) < INT64:
        raise BadRequest(f"strconv.ParseInt: parsing {errors.quoted(text)}: value out of range")
    return int(text)


def _time(parameters: QueryParams) -> int | None:
    text = parameters.get("sinceTime")
    if not text:
        return None
    try:
        return parse_time(text)
    except ValueError:
        raise BadRequest(
            f'parsing time {errors.quoted(text)} as "2006-01-02T15:04:05Z07:00": cannot parse it'
        ) from None


@routes.subresource(PODS, "log")
async def pod_log(request: Request) -> Response:
    """Answer with a log; 204 for a pod without a node, a Status when there cannot be a log."""
    wanted = options(request.query, request.info.name, request.now)
    text = wanted.text
    if text.follow and (_followers.total() >= MAX_FOLLOWERS or _followers[request.actor.name] >= MAX_OF_ONE):
        raise TooManyRequests(
            "Too many logs are being followed. Please end some of them and try again.", retry_after_s=5
        )
    pod = (await threads.read(store.get, PODS, request.info.namespace, request.info.name)).object
    container = containers.chosen(pod, wanted.container)
    if not pod["spec"].get("nodeName"):
        return Response(status_code=204)
    instance = containers.instance(pod, container, previous=wanted.previous)
    if containers.is_simulated(instance):
        return _sentence(backend.nodes.why_no_log(pod), text)
    number = containers.number(instance)
    nodes = backend.nodes.on(pod["spec"]["nodeName"])
    try:
        parts = await nodes.log_text(pod["metadata"]["uid"], container, number, text)
    except NodeAway as error:
        raise ServiceUnavailable(str(error)) from None
    except NoLog:
        return _sentence(f"unable to retrieve container logs for {instance}", text)
    return TextStream(parts, request if text.follow else None)


def _sentence(line: str, text: LogText) -> Response:
    return Response(f"{line}\n".encode()[: text.limit_bytes], media_type="text/plain")


class TextStream(Response):
    """Text that is sent as it comes, and ends when the client goes, also while nothing comes.

    `follows` is the request by which a log is followed, which ends with the right to it; None for other text.
    """

    def __init__(self, parts: AsyncIterator[bytes], follows: Request | None = None) -> None:
        super().__init__(None, media_type=None)
        self.parts = parts
        self.follows = follows
        self.raw_headers = [(b"content-type", b"text/plain"), (b"x-content-type-options", b"nosniff")]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until either side has enough."""
        try:
            await self._serve(scope, receive, send)
        except NodeAway as error:  # that not all was sent must not look like the end
            log.warning("a log was cut off: %s", error)
            connection.abort(scope)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.follows is None:
            await self._run(receive, send)
            return
        who = self.follows.actor.name
        _followers[who] += 1
        try:
            lost = asyncio.Event()
            with rights.holding(self.follows, lost.set):
                whole = await self._run(receive, send, asyncio.ensure_future(lost.wait()))
            if lost.is_set() and not whole:
                # Come to a clean end; the connection of a client that takes too little for that is closed.
                try:
                    async with asyncio.timeout(END_S):
                        await send(LAST)
                except TimeoutError:
                    connection.abort(scope)
        finally:
            _followers[who] -= 1

    async def _run(self, receive: Receive, send: Send, *others: asyncio.Future[Any]) -> bool:
        """Send until the client has gone or one of the others is done; say whether all was sent before."""
        sending = asyncio.ensure_future(self._send(send))
        ends = {sending, asyncio.ensure_future(_left(receive)), *others}
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in ends:
                task.cancel()
            await asyncio.gather(*ends, return_exceptions=True)
        if not sending.cancelled() and (error := sending.exception()):
            raise error
        return not sending.cancelled()

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        try:
            async for part in self.parts:
                await send({"type": "http.response.body", "body": part, "more_body": True})
            await send(LAST)
        except OSError:  # the client went while something was sent
            pass
        finally:
            with contextlib.suppress(RuntimeError):
                await self.parts.aclose()  # type: ignore[attr-defined]


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
