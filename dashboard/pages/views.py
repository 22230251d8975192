"""The pages that belong to neither jobs nor queues."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST, require_safe

from cluster import access
from cluster.store import store
from dashboard.live.topics import address
from dashboard.pages import audit, events, hyper_nodes, nodes, overview
from dashboard.pages.errors import explained
from dashboard.parts import responses
from dashboard.templatetags.ui import THEMES
from kube.resources import JOBS, NODES

THEME_AGE_S = 365 * 24 * 3600


@require_safe
@login_required
@explained
def show_overview(request: HttpRequest) -> HttpResponse:
    actor, namespace = access.of(request), request.GET.get("namespace", "")[:253]
    revision, parts = overview.overview(actor, namespace)
    context = {
        "parts": parts.html(parts.parts),
        "topic": address(overview.TOPIC, {"namespace": namespace}),
        "revision": revision,
        "namespace": namespace,
        "may_submit": overview.may_submit(actor, namespace),
        "why_nothing": "" if access.somewhere(actor, "list", JOBS) else access.remedy("list", JOBS),
    }
    return render(request, "dashboard/overview.html", context)


@require_safe
@login_required
@explained
def show_nodes(request: HttpRequest) -> HttpResponse:
    actor = access.of(request)
    table = nodes.node_table(actor, nodes.SPEC.read(request.GET))
    may_add = access.allowed(actor, "create", NODES, "")
    return responses.listing(request, "dashboard/nodes.html", table, may_add=may_add)


@require_safe
@login_required
@explained
def show_hyper_nodes(request: HttpRequest) -> HttpResponse:
    table = hyper_nodes.hyper_node_table(access.of(request), hyper_nodes.SPEC.read(request.GET))
    return responses.listing(request, "dashboard/hyper_nodes.html", table)


@require_safe
@login_required
@explained
def show_node(request: HttpRequest, name: str) -> HttpResponse:
    actor = access.of(request)
    with store.reading() as revision:
        uid, parts = nodes.node_parts(actor, name)
        table = nodes.pod_table(actor, name, nodes.PODS_SPEC.read(request.GET))
        event_context = events.about(actor, uid)
    context = {
        "name": name,
        "parts": parts,
        "topic": address("dashboard:node", {"name": name}),
        "node_revision": revision,
        **event_context,
    }
    return responses.listing(request, "dashboard/node.html", table, **context)


@require_safe
@login_required
@explained
def show_events(request: HttpRequest) -> HttpResponse:
    table = events.event_table(access.of(request), events.SPEC.read(request.GET))
    return responses.listing(request, "dashboard/events.html", table)


@require_safe
@login_required
@explained
def show_audit(request: HttpRequest) -> HttpResponse:
    table = audit.audit_table(access.of(request), audit.SPEC.read(request.GET))
    return responses.listing(request, "dashboard/audit.html", table)


@require_POST
def choose_theme(request: HttpRequest) -> HttpResponse:
    """Store the theme in a cookie, which the front end does itself where scripts run."""
    response = responses.back(request, "dashboard:overview")
    theme = request.POST.get("theme", "")
    if theme in THEMES:
        response.set_cookie("theme", theme, max_age=THEME_AGE_S, samesite="Lax")
    else:
        response.delete_cookie("theme", samesite="Lax")
    return response
