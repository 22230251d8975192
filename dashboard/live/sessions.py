"""Whether the session of a socket still stands; looked up once for all tabs of a session."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib.auth import get_user
from django.http import HttpRequest

from cluster import clock

FRESH_S = 0.75


class _Known(NamedTuple):
    user_id: int | None
    until: float


_known: dict[str, _Known] = {}


def still_valid(scope: Mapping[str, Any]) -> bool:
    """Say whether the socket's session exists and is its user's; a changed password or a deactivation ends it."""
    key = scope["session"].session_key
    known = _known.get(key)
    now = clock.monotonic()
    if known is None or known.until < now:
        for old in [each for each, known in _known.items() if known.until < now]:
            del _known[old]
        known = _known[key] = _Known(_user_of(key), now + FRESH_S)
    return known.user_id is not None and known.user_id == scope["user"].pk


def _user_of(session_key: str) -> int | None:
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    user = get_user(request)
    return user.pk if user.is_active else None
