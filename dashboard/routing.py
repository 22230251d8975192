"""The address of the live socket."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.urls import URLPattern, URLResolver, path, re_path
from starlette.types import Send

from dashboard.live.consumer import LiveConsumer
from dashboard.live.origins import refuse


async def nowhere(scope: Any, receive: Any, send: Send) -> None:
    """Answer a socket at any other address with 404: without a route Channels raises, and that is logged as a crash."""
    await refuse(scope, receive, send, 404, f"There is no socket here; the live socket is at /{settings.PREFIX}live/.")


websocket_urlpatterns: list[URLPattern | URLResolver] = [
    path(f"{settings.PREFIX}live/", LiveConsumer.as_asgi()),
    re_path("", nowhere),  # type: ignore[arg-type]  # Django's types know views only
]
