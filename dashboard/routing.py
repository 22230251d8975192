"""The address of the live socket."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, path

from dashboard.live.consumer import LiveConsumer

websocket_urlpatterns: list[URLPattern | URLResolver] = [path("live/", LiveConsumer.as_asgi())]
