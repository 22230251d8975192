"""The files for the browser, for those tests that have a server."""

from __future__ import annotations

from collections.abc import Callable
from inspect import iscoroutinefunction
from typing import Any

from django.utils.decorators import sync_and_async_middleware
from servestatic.middleware import ServeStaticMiddleware


@sync_and_async_middleware
def served(get_response: Callable[..., Any]) -> Callable[..., Any]:
    """Serve files as the product does; not to Django's test client, which would begin a thread and a loop for each request."""
    return ServeStaticMiddleware(get_response) if iscoroutinefunction(get_response) else get_response
