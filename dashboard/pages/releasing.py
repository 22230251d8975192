"""Releasing the room that is kept for a pod group, from the pages that show it."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_POST

from cluster import access, api, clock
from cluster.store import store
from dashboard.pages.errors import explained
from dashboard.parts import responses
from kube.errors import ApiError, Conflict
from kube.meta import now_text
from kube.resources import POD_GROUPS
from kube.volcano import reserved_room
from kube.volcano.pod_groups import job_of


@require_POST
@login_required
@explained
def release(request: HttpRequest, namespace: str, name: str) -> HttpResponse:
    """Release the room that is kept for the pod group which the reader saw, by its `uid`."""
    actor, uid = access.of(request), request.POST.get("uid", "")
    try:
        access.require(actor, "get", POD_GROUPS, namespace, name)
        stored = store.get(POD_GROUPS, namespace, name)
        if reserved_room.reserved_for(namespace, name, stored.body) is None:
            detail = "no room is kept for it any more, so nothing was given back"
            raise Conflict.of(POD_GROUPS.id, name, detail)
        annotations = {reserved_room.RELEASED: now_text(clock.milliseconds())}
        patch = {"metadata": {**({"uid": uid} if uid else {}), "annotations": annotations}}
        api.patch(actor, POD_GROUPS, namespace, name, patch)
    except ApiError as error:
        responses.refuse(request, error)
    else:
        responses.say(request, f"The room that was kept for {job_of(name) or name} is given back. It goes on waiting.")
    return responses.back(request, "dashboard:overview")
