"""Custom kinds in the API server: how soon a definition that another process changed is known here.

Changes of this process are known at once, and so is everything while the log
is followed. Otherwise a request for a custom kind, for a kind that is not
known or for discovery finds a table that is at most FRESH_S old.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from apiserver.http import threads
from apiserver.http.request import Request
from apiserver.watch import follower
from cluster import clock
from cluster.api import custom_kinds
from kube import resources

FRESH_S = 1.0
_DISCOVERY = ("/api", "/apis", "/openapi")
_checked = 0.0
_reloads: set[asyncio.Task[None]] = set()


async def find(request: Request) -> None:
    """Find the resource of a request again where the table may have been too old, and warn of a version that goes."""
    global _checked
    info = request.info
    if not info.is_resource:
        doubtful = info.path.startswith(_DISCOVERY)
    else:
        doubtful = info.resource is None or info.resource.schema is not None
    now = clock.monotonic()
    if doubtful and now - _checked > FRESH_S:
        _checked = now
        await threads.read(custom_kinds.reload)
    if doubtful and info.is_resource:
        resource = resources.by_path(info.group, info.version, info.plural)
        if resource is not info.resource:
            request.info = replace(info, resource=resource)
        if resource is not None and resource.deprecation:
            request.warn(resource.deprecation)


def _reload() -> None:
    task = asyncio.ensure_future(threads.read(custom_kinds.reload))
    _reloads.add(task)
    task.add_done_callback(_reloads.discard)


follower.listen((resources.CUSTOM_RESOURCE_DEFINITIONS,), lambda _: _reload(), _reload)
