"""The ASGI application: Django for HTTP, Channels for the live socket."""

from __future__ import annotations

import os

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "volcano_ui.settings")

# The applications are ready once this returns; what imports their models comes after it.
http = get_asgi_application()

from dashboard.live.origins import OwnOrigin  # noqa: E402
from dashboard.routing import websocket_urlpatterns  # noqa: E402

application = ProtocolTypeRouter(
    {"http": http, "websocket": OwnOrigin(AuthMiddlewareStack(URLRouter(websocket_urlpatterns)))}
)
