"""The address of the live socket."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.urls import URLPattern, URLResolver, path, re_path

from dashboard.live.consumer import LiveConsumer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


async def refuse(scope: Any, receive: Any, send: Callable[[dict[str, str]], Awaitable[None]]) -> None:
    """Answer a socket at any other address with 403; without a route Channels raises, which is logged as a crash."""
    await send({"type": "websocket.close"})


websocket_urlpatterns: list[URLPattern | URLResolver] = [
    path(f"{settings.PREFIX}live/", LiveConsumer.as_asgi()),
    re_path("", refuse),  # type: ignore[arg-type]  # Django's types know views only
]
