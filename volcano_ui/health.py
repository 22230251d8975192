"""Whether this web server, or what runs beside it, can do its work: for supervisors and load balancers."""

from __future__ import annotations

from collections.abc import Callable

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe
from kombu.exceptions import OperationalError

from cluster.version import VERSION

PATIENCE_S = 1
PROBE_BYTES = 64 * 1024  # what the database's own files grow by at a write is less


@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """Answer 200 when the database and Redis answer and the disk takes writes, otherwise 503 with what does not; and by which version."""
    parts = servers()
    healthy = all(answer == "ok" for answer in parts.values())
    return JsonResponse({"version": VERSION, **parts}, status=200 if healthy else 503)


def servers() -> dict[str, str]:
    """Return "ok" for each server that everything needs and for the disk, or what is wrong with it."""
    return {"database": answer(ask_database), "disk": answer(ask_disk), "redis": answer(ask_redis)}


def ask_database() -> None:
    """Raise DatabaseError unless the database answers."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def ask_disk() -> None:
    """Raise OSError unless the state directory's disk takes writes: reading goes on when it is full."""
    place = settings.DATA / "run" / "health"
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with place.open("wb", buffering=0) as file:
        file.write(bytes(PROBE_BYTES))


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
