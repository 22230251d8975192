"""Whether this web server, or what runs beside it, can do its work: for supervisors and load balancers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe
from kombu.exceptions import OperationalError

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE_S = 1


@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """Answer 200 when the database and Redis answer, otherwise 503 with what does not."""
    parts = servers()
    healthy = all(answer == "ok" for answer in parts.values())
    return JsonResponse(parts, status=200 if healthy else 503)


def servers() -> dict[str, str]:
    """Return "ok" for each server that everything needs, or what is wrong with it."""
    return {"database": answer(ask_database), "redis": answer(ask_redis)}


def ask_database() -> None:
    """Raise DatabaseError unless the database answers."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def ask_redis() -> None:
    """Raise RedisError unless Redis answers."""
    with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=PATIENCE_S) as client:
        client.ping()


def answer(ask: Callable[[], None]) -> str:
    """Return "ok", or what is wrong with what is asked for."""
    try:
        ask()
    except (DatabaseError, redis.RedisError, OSError, OperationalError) as error:
        return str(error) or type(error).__name__
    return "ok"
