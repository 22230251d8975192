"""Health of this web server and of the servers that it needs, for supervisors and load balancers."""

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
PROBE_BYTES = 64 * 1024  # more than the database's own files grow by at a write


@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """Return 200 if the database and Redis answer and the disk takes writes, else 503; with each result, and the version."""
    parts = servers()
    healthy = all(result == "ok" for result in parts.values())
    return JsonResponse({"version": VERSION, **parts}, status=200 if healthy else 503)


def servers() -> dict[str, str]:
    """Return "ok" or a problem for the database, the disk and Redis, which everything needs."""
    return {"database": probe_result(ask_database), "disk": probe_result(ask_disk), "redis": probe_result(ask_redis)}


def ask_database() -> None:
    """Raise DatabaseError unless the database answers."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def ask_disk() -> None:
    """Raise OSError unless the state directory's disk takes writes: a full one can still be read."""
    path = settings.DATA / "run" / "health"
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with path.open("wb", buffering=0) as file:
        file.write(bytes(PROBE_BYTES))


def ask_redis() -> None:
    """Raise RedisError unless Redis answers."""
    with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=PATIENCE_S) as client:
        client.ping()


def probe_result(probe: Callable[[], None]) -> str:
    """Return "ok", or the message of what the probe raises."""
    try:
        probe()
    except (DatabaseError, redis.RedisError, OSError, OperationalError) as error:
        return str(error) or type(error).__name__
    return "ok"
