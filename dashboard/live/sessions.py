"""Whether the session of a socket is still valid, looked up once for all tabs of a session."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib.auth import get_user
from django.http import HttpRequest

from cluster import clock

FRESH_S = 0.75


class _Session(NamedTuple):
    user_id: int | None  # None where it has ended
    until: float


_sessions: dict[str, _Session] = {}


def still_valid(scope: Mapping[str, Any]) -> bool:
    """Return whether the socket's session exists and is its user's; a changed password or a deactivation ends it."""
    key = scope["session"].session_key
    session = _sessions.get(key)
    now = clock.monotonic()
    if session is None or session.until < now:
        for old in [each for each, other in _sessions.items() if other.until < now]:
            del _sessions[old]
        request = HttpRequest()
        request.session = import_module(settings.SESSION_ENGINE).SessionStore(key)
        user = get_user(request)
        session = _sessions[key] = _Session(user.pk if user.is_active else None, now + FRESH_S)
    return session.user_id is not None and session.user_id == scope["user"].pk
