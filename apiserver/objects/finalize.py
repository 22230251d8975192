"""PUT /api/v1/namespaces/x/finalize: who agrees that a namespace goes (reference: kubernetes-api §4.6)."""

from __future__ import annotations

from starlette.responses import Response

from apiserver.http import query, respond, routes, threads
from apiserver.http.request import Request
from apiserver.objects.verbs import placed
from cluster import api
from kube.resources import NAMESPACES


@routes.subresource(NAMESPACES, "finalize")
async def finalize(request: Request) -> Response:
    """Replace the finalizers of a namespace's spec; without any left, one that is being deleted is gone."""
    options = query.write_options(request.query, request.user_agent, request.method)
    obj = placed(request, await request.object())
    stored = await threads.write(
        api.update, request.actor, NAMESPACES, obj, subresource="finalize", dry_run=options.dry_run
    )
    return respond.object(request, stored)
