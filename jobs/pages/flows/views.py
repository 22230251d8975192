"""The pages of flows and job templates."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from cluster import access, api
from cluster.store import store
from dashboard.pages import events
from dashboard.pages.errors import explained
from dashboard.parts import responses
from jobs.flows import steps
from jobs.operations import allowed_actions
from jobs.pages import objects
from jobs.pages.flows import listing
from kube.errors import ApiError
from kube.resources import JOB_FLOWS, JOB_TEMPLATES, JOBS


@require_GET
@login_required
@explained
def flow_list(request: HttpRequest) -> HttpResponse:
    table = listing.table(access.of(request), listing.SPEC.read(request.GET))
    return responses.listing(request, "flows/list.html", table, shows="flows")


@require_GET
@login_required
@explained
def template_list(request: HttpRequest) -> HttpResponse:
    actor = access.of(request)
    table = listing.template_table(actor, listing.TEMPLATES_SPEC.read(request.GET))
    may_create = allowed_actions.home(actor, JOB_TEMPLATES) is not None
    return responses.listing(request, "flows/list.html", table, shows="templates", may_create=may_create)


@require_GET
@login_required
@explained
def flow_detail(request: HttpRequest, namespace: str, name: str) -> HttpResponse:
    actor = access.of(request)
    with store.reading() as revision:
        stored = objects.read(actor, JOB_FLOWS, namespace, name)
        context = {
            "stored": stored,
            "parts": listing.parts(actor, stored).parts,
            "topic": listing.topic("flows:detail", stored),
            "revision": revision,
            **events.about(actor, stored.uid, namespace),
        }
    return render(request, "flows/detail.html", context)


@require_GET
@login_required
@explained
def template_detail(request: HttpRequest, namespace: str, name: str) -> HttpResponse:
    actor = access.of(request)
    with store.reading() as revision:
        stored = objects.read(actor, JOB_TEMPLATES, namespace, name)
        context = {
            "stored": stored,
            "parts": listing.template_parts(actor, stored).parts,
            "topic": listing.topic("flows:template", stored),
            "revision": revision,
        }
    return render(request, "flows/template.html", context)


@require_POST
@login_required
@explained
def run_once(request: HttpRequest, namespace: str, name: str) -> HttpResponse:
    """Make a job of no flow from a template."""
    actor = access.of(request)
    stored = objects.read(actor, JOB_TEMPLATES, namespace, name)
    try:
        job = api.create(actor, JOBS, steps.by_hand(stored.object))
    except ApiError as error:
        responses.refuse(request, error)
        return redirect("flows:template", namespace, name)
    responses.say(request, f"Job {job.name} was made.")
    return redirect("jobs:detail", namespace, job.name)


@require_POST
@login_required
@explained
def flow_delete(request: HttpRequest, namespace: str, name: str) -> HttpResponse:
    text = f"Flow {name} is deleted, and its jobs with it."
    key = namespace, name
    return responses.delete(request, JOB_FLOWS, key, text, page="flows:detail", listing="flows:list")


@require_POST
@login_required
@explained
def template_delete(request: HttpRequest, namespace: str, name: str) -> HttpResponse:
    text = f"Template {name} is deleted; the jobs that were made from it stay."
    key = namespace, name
    return responses.delete(request, JOB_TEMPLATES, key, text, page="flows:template", listing="flows:templates")
