"""The ASGI application of the Kubernetes API.

A request passes, in upstream's order (§6.1): its path, who asks, the limit of
requests in flight, the right, the handler. Whatever goes wrong becomes a
Status. Rights of changes are checked by `cluster.api`, because they depend on
the object; those of everything else here.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from django.db import DatabaseError
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from apiserver import telemetry
from apiserver.http import authorize, respond, routes, threads
from apiserver.http import path as infos
from apiserver.http.intake import Intake
from apiserver.http.query import flag
from apiserver.http.request import Request
from apiserver.objects import custom_kinds, verbs
from apiserver.watch import follower
from cluster import access, clock
from cluster.access import Actor
from cluster.api import rights
from kube import errors
from kube.resources import Resource

MOST = {"read": 400, "write": 200}  # requests in flight (§2.3)
LONGEST_S = 60.0  # of a request that is not meant to last
READING = frozenset({"get", "list", "watch"})
CHANGES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
ANONYMOUS = "system:anonymous"
NOT_UPGRADED = (
    "This path answers plain requests, and is not upgraded: leave the headers Connection and Upgrade out."
    " Upgraded are watches, and the parts exec, attach and portforward of a pod and link of a node."
)
DEFECT = 1011  # a WebSocket's code for an end that the server has not foreseen
T = TypeVar("T")
Authenticate = Callable[["Headers"], Awaitable["Actor"]]
log = logging.getLogger(__name__)


class App:
    """The application; `authenticate` says who sends a request, or raises Unauthorized."""

    def __init__(self, authenticate: Authenticate) -> None:
        self._authenticate = authenticate
        self._running = {"read": 0, "write": 0}
        self._intake = Intake()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection's request."""
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._websocket(scope, receive, send)
        elif scope["type"] == "lifespan":
            # Follow the log for as long as the process serves.
            await receive()
            await follower.start()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await follower.stop()
            await send({"type": "lifespan.shutdown.complete"})

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = time.perf_counter()
        request = _request(scope, receive, send)
        response = await self._guarded(request, self._answer)
        if request is not None:
            request.release()
        response.headers.setdefault("Cache-Control", "no-cache, private")
        response.headers["Audit-Id"] = str(uuid.uuid4())
        if request is not None:
            await request.discard()
        if request is None or request.unread:
            response.headers["Connection"] = "close"
        await response(scope, receive, send)
        if request is not None and request.info.resource is not None:
            took = time.perf_counter() - begun
            telemetry.observe(request.info.verb, request.info.target, response.status_code, took)

    async def _guarded(self, request: Request | None, answer: Callable[[Request], Awaitable[T]]) -> T | Response:
        """Return the answer to a request, whatever happens."""
        try:
            if request is None:
                raise errors.NotFound()
            return await answer(request)
        except errors.ApiError as problem:
            return respond.error(request, problem)
        except TimeoutError:
            return respond.error(request, errors.Timeout.of("request did not complete within the allotted timeout"))
        except DatabaseError as problem:
            log.warning("database failed", extra={"error": str(problem)})
            return respond.error(request, errors.ServiceUnavailable(f"The database failed: {problem}."))
        except Exception:
            log.exception("request failed", extra={"path": request.path if request else ""})
            return respond.error(request, errors.InternalError.of("the server's log says what happened."))

    async def _answer(self, request: Request) -> Response:
        request.intake = self._intake
        request.actor = await self._authenticate(request.headers)
        threads.asking.set(request.actor.name)
        await custom_kinds.find(request)
        if not request.info.is_resource:
            return await self._answer_path(request)
        if request.actor.name == ANONYMOUS:
            raise errors.Unauthorized("Unauthorized")
        if request.info.subresource != "log":  # which is text, whatever is accepted
            request.negotiate()
        resource, verbs = _resource_of(request)
        if request.info.verb not in verbs:
            raise errors.MethodNotAllowed()
        if _lasts(request):
            await _authorize(request, resource)
            return await _handled(request, resource)
        async with asyncio.timeout(LONGEST_S):
            if request.unread:
                await request.body()  # who sends it slowly takes nobody's place
            async with self._in_flight(request):
                await _authorize(request, resource)
                return await _handled(request, resource)

    async def _answer_path(self, request: Request) -> Response:
        endpoint = _path(request)
        if request.method not in endpoint.methods:
            raise errors.MethodNotAllowed()
        if endpoint.right and not await threads.read(access.allowed, request.actor, "get", endpoint.right, ""):
            refusal = f'forbidden: User "{request.actor.name}" cannot get path "{request.path}"'
            raise errors.Forbidden(f"{refusal}. {access.remedy('get', endpoint.right)}")
        async with asyncio.timeout(LONGEST_S):
            return await endpoint.handler(request)

    @asynccontextmanager
    async def _in_flight(self, request: Request) -> AsyncIterator[None]:
        """Count a request while it is worked on; TooManyRequests when there are as many already as may be."""
        kind = "read" if request.info.verb in READING else "write"
        if self._running[kind] >= MOST[kind]:
            raise errors.TooManyRequests(
                "Too many requests are being served. Please wait and try again.", retry_after_s=1
            )
        self._running[kind] += 1
        try:
            with telemetry.inflight(request.info.verb):
                yield
        finally:
            self._running[kind] -= 1

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_answered = is_open = False

        def noting(message: Message) -> Awaitable[None]:
            nonlocal is_answered, is_open
            is_answered, is_open = True, message["type"] != "websocket.close"
            return send(message)

        refusal = await self._guarded(_request(scope, receive, noting), self._upgrade)
        if refusal is not None and not is_answered:
            # In words where the server can say them.
            if "websocket.http.response" in scope.get("extensions", {}):
                await refusal(scope, receive, send)
            else:
                await send({"type": "websocket.close", "code": 1008, "reason": ""})
        elif refusal is not None and is_open:
            await send(
                {"type": "websocket.close", "code": DEFECT, "reason": "Internal error; the server's log has it."}
            )

    async def _upgrade(self, request: Request) -> None:
        """Hand an upgraded connection to who takes it over, until it ends; what is raised is why nobody does."""
        request.actor = await self._authenticate(request.headers)
        threads.asking.set(request.actor.name)
        await custom_kinds.find(request)
        if not request.info.is_resource:
            _path(request)
            raise errors.BadRequest(NOT_UPGRADED)
        if request.actor.name == ANONYMOUS:
            raise errors.Unauthorized("Unauthorized")
        resource, _ = _resource_of(request)
        handler = routes.find_websocket(resource, request.info.subresource or request.info.verb)
        if handler is None:
            raise errors.BadRequest(NOT_UPGRADED)
        await _authorize(request, resource)
        await handler(request)


def _request(scope: Scope, receive: Receive, send: Send) -> Request | None:
    """Return the request; None for a path that cannot name anything."""
    try:
        raw_path = scope.get("raw_path") or scope["path"].encode()
        path = raw_path.partition(b"?")[0].decode("ascii")
    except UnicodeError:
        return None
    method = scope.get("method", "GET")
    info = infos.parse(method, path)
    if info is None:
        return None
    request = Request(scope, receive, send, info, clock.milliseconds())
    if info.is_resource and info.verb in ("get", "list") and not info.subresource and flag(request.query, "watch"):
        request.info = infos.parse(method, path, watch=True) or info
    elif scope["type"] == "websocket" and info.subresource:
        # What an upgraded connection does on a subresource counts as creating it, whatever its method (§6.4).
        request.info = infos.parse("POST", path) or info
    return request


def _path(request: Request) -> routes.Path:
    """Return who answers a path that names no object; NotFound when nobody does, and Unauthorized before that."""
    endpoint = routes.find_path(request.path)
    if (endpoint is None or not endpoint.anonymous) and request.actor.name == ANONYMOUS:
        raise errors.Unauthorized("Unauthorized")
    if endpoint is None:
        raise errors.NotFound()
    return endpoint


def _resource_of(request: Request) -> tuple[Resource, tuple[str, ...]]:
    """Return the resource that a path names, and the verbs that go there; NotFound when it names none."""
    info, resource = request.info, request.info.resource
    if resource is None or (info.namespace and not resource.namespaced):
        raise errors.NotFound()
    if info.name and resource.namespaced and not info.namespace and info.verb != "watch":
        raise errors.NotFound()
    if not info.subresource:
        return resource, resource.verbs
    part = next((part for part in resource.parts if part.name == info.subresource), None)
    if part is None:
        raise errors.NotFound()
    return resource, part.verbs


def _lasts(request: Request) -> bool:
    """Whether a request may last for hours, as a watch does."""
    info = request.info
    return info.verb == "watch" or (
        info.subresource in ("log", "exec", "attach", "portforward") and info.verb in ("get", "create")
    )


async def _authorize(request: Request, resource: Resource) -> None:
    info = request.info
    if not info.subresource or info.subresource == "status":
        if info.verb in CHANGES and resource.stored and info.verb != "deletecollection":
            return  # cluster.api knows the object
        if not resource.stored and routes.everybody(resource):
            return
    namespace = rights.right_namespace(resource, info.namespace, info.name)
    if access.is_system(request.actor):
        return
    fields = request.query.get("fieldSelector", "")
    await threads.read(authorize.require, request.actor, info.verb, info.target, resource, namespace, info.name, fields)


async def _handled(request: Request, resource: Resource) -> Response:
    part = request.info.subresource
    if not resource.stored:
        handler = routes.find_virtual(resource)
    elif part and (part != "status" or routes.find_subresource(resource, part)):
        handler = routes.find_subresource(resource, part)
    else:
        handler = verbs.answer
    if handler is None:
        raise errors.NotFound()
    return await handler(request)
