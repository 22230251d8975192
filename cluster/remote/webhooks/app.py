"""The web application (ASGI) that an API server asks: a question comes to the path of its webhook."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
from django.db import DatabaseError
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from cluster.remote.webhooks import hooks
from cluster.remote.webhooks.review import review
from cluster.remote.webhooks.rulings import rule
from cluster.store.connections import connected
from kube.errors import ApiError, BadRequest, RequestEntityTooLarge

THREADS = 4
LARGEST = 8 * 1024 * 1024  # bytes of a question: an object as it is and as it would be, of 3 MiB each at most
log = logging.getLogger(__name__)


class App:
    """The application. What is no answer to a question goes out as plain text, which the API server hands on."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, "webhooks")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        response = await self._answer(Request(scope, receive))
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        webhook = hooks.BY_PATH.get(request.url.path)
        if webhook is None or request.method != "POST":
            return PlainTextResponse(f"Webhooks are asked by POST: {', '.join(hooks.BY_PATH)}.", 404)
        try:
            body = await _body(request)
            loop = asyncio.get_running_loop()
            answer = await loop.run_in_executor(self._threads, connected, review, webhook, body, rule)
        except ApiError as problem:
            return PlainTextResponse(problem.message, problem.code)
        except DatabaseError as problem:
            log.warning("database failed", extra={"error": str(problem)})
            return PlainTextResponse(f"The database failed: {problem}.", 503)
        except Exception:
            log.exception("question failed", extra={"path": request.url.path})
            return PlainTextResponse("The log of the webhooks says what happened.", 500)
        return JSONResponse(answer)


async def _body(request: Request) -> Any:
    """Read a question; ApiError where it cannot be read."""
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > LARGEST:
            raise RequestEntityTooLarge(f"A question may have {LARGEST:,} bytes.")
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadRequest(f"The question cannot be read: {error}.") from None
