"""PUT /api/v1/namespaces/x/finalize: who agrees that a namespace goes (reference: kubernetes-api §4.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cluster import api
from cluster.apiserver import query, respond, routes, threads
from kube.errors import BadRequest
from kube.resources import NAMESPACES

if TYPE_CHECKING:
    from starlette.responses import Response

    from cluster.apiserver.query import WriteOptions
    from cluster.apiserver.request import Request
    from cluster.store import Stored
    from kube.meta import Object


@routes.subresource(NAMESPACES, "finalize")
async def finalize(request: Request) -> Response:
    """Replace the finalizers of a namespace's spec; without any left, one that is being deleted is gone."""
    options = query.write_options(request.query, request.user_agent)
    obj = await request.object()
    metadata = obj.get("metadata") or {}
    if metadata.get("name", request.info.name) != request.info.name:
        raise BadRequest(
            f"the name of the object ({metadata['name']}) does not match the name on the URL ({request.info.name})"
        )
    named = {**obj, "metadata": {**metadata, "name": request.info.name}}
    return respond.object(request, await threads.write(_finalize, request, named, options))


def _finalize(request: Request, obj: Object, options: WriteOptions) -> Stored:
    return api.update(request.actor, NAMESPACES, obj, subresource="finalize", dry_run=options.dry_run)
