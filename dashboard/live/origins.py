"""Which pages may open the live socket: those of this site, by the whole origin, as for forms (CSRF).

A browser sends the session's cookie with a socket from whichever page opens it, and
to every port of a host; so scheme, host and port must be ours.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Any

from django.conf import settings
from django.http.request import split_domain_port, validate_host
from starlette.responses import PlainTextResponse

Asgi = Callable[[Any, Any, Callable[[dict[str, Any]], Awaitable[None]]], Awaitable[None]]


FOREIGN = (
    "Only pages of this site may open its live socket, at one of the names in VOLCANO_UI_HOSTS;"
    " a proxy in between has to hand on the header Host."
)


def is_own(origin: str, scheme: str, host: str, trusted: Collection[str] = ()) -> bool:
    """Return whether a page's origin is that of the request, by its scheme (ws or wss) and its host, or a trusted one."""
    secure = {"wss": "https", "https": "https"}.get(scheme, "http")
    return bool(host) and (origin == f"{secure}://{host}" or origin in trusted)


class OwnOrigin:
    """ASGI middleware that refuses sockets from other origins, and without one."""

    def __init__(self, application: Asgi) -> None:
        self._application = application

    async def __call__(self, scope: Any, receive: Any, send: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get(b"host", "")
        domain, _ = split_domain_port(host)
        is_ours = bool(domain) and validate_host(domain, settings.ALLOWED_HOSTS)
        own = is_own(headers.get(b"origin", ""), scope["scheme"], host, settings.CSRF_TRUSTED_ORIGINS)
        if is_ours and own:
            await self._application(scope, receive, send)
        else:
            await receive()  # the request to connect
            await refuse(scope, receive, send, 403, FOREIGN)


async def refuse(scope: Any, receive: Any, send: Any, status: int, why: str) -> None:
    """Answer the request for a socket with a status and the reason if the server supports that, otherwise with 403."""
    if "websocket.http.response" in (scope.get("extensions") or {}):
        await PlainTextResponse(f"{why}\n", status)(scope, receive, send)
    else:
        await send({"type": "websocket.close"})
