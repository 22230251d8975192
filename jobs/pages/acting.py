"""What is done to one job from its page: asked with its effect before, and followed by its outcome."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from cluster import access
from cluster.store import store
from dashboard.pages.errors import explained
from dashboard.parts import responses
from jobs.lifecycle.reading import Job
from jobs.operations import single
from jobs.rules import actions
from kube.errors import ApiError
from kube.resources import JOBS


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
@explained
def act(request: HttpRequest, namespace: str, name: str, action: str) -> HttpResponse:
    """Ask whether an action is meant, with what it would do; a POST does it."""
    actor, chosen = access.of(request), actions.BY_NAME[action]
    access.require(actor, "get", JOBS, namespace, name)
    stored = store.get(JOBS, namespace, name)
    if request.method != "POST":
        job = stored.read(Job)
        effect = actions.effect(chosen, actions.extent([job]), single.kept())
        context = {"stored": stored, "action": chosen, "effect": effect}
        return render(request, "jobs/confirm.html", {**context, "problem": actions.problem(chosen, job)})
    try:
        single.send(actor, chosen, stored, request.POST.get("uid", ""))
    except ApiError as error:
        responses.refuse(request, error)
        return redirect("jobs:detail", namespace, name)
    if chosen is actions.DELETE:
        is_there = bool(store.find(JOBS, namespace=namespace, uid=stored.uid, limit=1))
        how = "is being deleted; it goes when its pods have ended" if is_there else "is deleted, and its pods with it"
        responses.say(request, f"Job {name} {how}.")
        return redirect("jobs:list")
    return redirect("jobs:detail", namespace, name)
