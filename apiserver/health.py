"""Which server this is and whether it can do its work: `/version`, `/healthz`, `/livez`, `/readyz`.

Texts and codes are Kubernetes' (reference: kubernetes-api §4.7): `ok`, or with
`?verbose` and on failure a line for each check. What failed is named, why is
withheld, because anybody may ask; the reason goes to the log.
"""

from __future__ import annotations

import logging
import platform
import sys
from collections.abc import Callable, Iterable

import redis
from django.db import DatabaseError, connection
from starlette.responses import JSONResponse, PlainTextResponse, Response

from apiserver.http import routes, threads
from apiserver.http.request import Request
from cluster.runtime import nudge
from cluster.runtime.outage import Outage
from cluster.store import store
from cluster.version import VERSION as OURS
from kube.errors import NotFound

log = logging.getLogger(__name__)
_outages: dict[str, Outage] = {}

MAJOR, MINOR = "1", "34"  # the Kubernetes API that clients may expect
VERSION = f"v{MAJOR}.{MINOR}.0+volcano-ui.{OURS}"  # which is semantic versioning's metadata

_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
_HEADERS = {"Cache-Control": "no-cache, private", "X-Content-Type-Options": "nosniff"}


def ask_database() -> None:
    """Raise DatabaseError unless the database answers."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def ask_redis() -> None:
    """Raise RedisError unless Redis answers."""
    nudge.client().ping()


CHECKS: dict[str, Callable[[], object]] = {
    "ping": lambda: None,
    "database": ask_database,
    "redis": ask_redis,
    "log": store.revision,
}
# A server that has lost its database or Redis would not get it back by being started again.
PATHS = {"/healthz": tuple(CHECKS), "/livez": ("ping", "log"), "/readyz": tuple(CHECKS)}


def failing(names: Iterable[str]) -> set[str]:
    """Run these checks and return those that fail."""
    failed = set()
    for name in names:
        outage = _outages.setdefault(name, Outage(f"what check {name} stands for", log))
        try:
            CHECKS[name]()
            outage.over()
        except (DatabaseError, redis.RedisError, OSError) as error:
            outage.lasts(error)
            failed.add(name)
    return failed


@routes.path("/version", anonymous=True)
async def version(request: Request) -> Response:
    """Answer with the version of the API, in the form that clients parse."""
    machine = platform.machine()
    content = {
        "major": MAJOR,
        "minor": MINOR,
        "emulationMajor": MAJOR,
        "emulationMinor": MINOR,
        "minCompatibilityMajor": MAJOR,
        "minCompatibilityMinor": str(int(MINOR) - 1),
        "gitVersion": VERSION,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": f"python{platform.python_version()}",
        "compiler": platform.python_implementation().lower(),
        "platform": f"{sys.platform}/{_MACHINES.get(machine, machine)}",
    }
    return JSONResponse(content)


@routes.path("/healthz", anonymous=True, prefix=True)
async def healthz(request: Request) -> Response:
    """Answer whether everything works."""
    return await _health(request, "/healthz")


@routes.path("/livez", anonymous=True, prefix=True)
async def livez(request: Request) -> Response:
    """Answer whether this process works, or has to be started again."""
    return await _health(request, "/livez")


@routes.path("/readyz", anonymous=True, prefix=True)
async def readyz(request: Request) -> Response:
    """Answer whether this process can serve requests."""
    return await _health(request, "/readyz")


async def _health(request: Request, path: str) -> Response:
    one = request.path.removeprefix(path).strip("/")
    if one:
        if one not in PATHS[path]:
            raise NotFound()
        if await threads.read(failing, [one]):
            return PlainTextResponse("internal server error: reason withheld\n", status_code=500, headers=_HEADERS)
        return PlainTextResponse("ok", headers=_HEADERS)
    names = PATHS[path]
    excluded = set(request.query.getlist("exclude"))
    failed = await threads.read(failing, [name for name in names if name not in excluded])
    if not failed and "verbose" not in request.query:
        return PlainTextResponse("ok", headers=_HEADERS)
    lines = [_line(name, name in excluded, name in failed) for name in names]
    if unknown := sorted(excluded - set(names)):
        listed = ",".join(f'"{name}"' for name in unknown)
        lines.append(f"warn: some health checks cannot be excluded: no matches for {listed}")
    lines.append(f"{path[1:]} check {'failed' if failed else 'passed'}")
    return PlainTextResponse("\n".join(lines) + "\n", status_code=500 if failed else 200, headers=_HEADERS)


def _line(name: str, excluded: bool, failed: bool) -> str:
    if excluded:
        return f"[+]{name} excluded: ok"
    return f"[-]{name} failed: reason withheld" if failed else f"[+]{name} ok"
