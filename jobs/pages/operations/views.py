"""The pages of bulk operations: preparing, confirming, watching and stopping them."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from cluster import access
from cluster.store import store
from dashboard.pages.errors import explained
from dashboard.parts import responses
from jobs import tasks
from jobs.operations import allowed_actions, drafts, single
from jobs.pages.operations import listing, selection
from jobs.pages.operations.listing import OperationView
from jobs.rules import actions
from kube.errors import ApiError, BadRequest, Forbidden


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
@explained
def operations(request: HttpRequest) -> HttpResponse:
    """List bulk operations; a POST drafts one and shows it before anything is done."""
    actor = access.of(request)
    if request.method != "POST":
        table = listing.table(actor, listing.ALL_SPEC.read(request.GET))
        return responses.listing(request, "jobs/operations/list.html", table)
    try:
        action = actions.BY_NAME.get(request.POST.get("action", ""))
        if action is None or not action.is_bulk:
            names = ", ".join(each.name for each in actions.BULK)
            raise BadRequest(f"Say what to do with the jobs: {names}.")
        if action not in allowed_actions.in_bulk(actor):
            raise allowed_actions.nothing(action)
        operation = drafts.draft(actor, action, selection.read(actor, request.POST))
    except ApiError as error:
        responses.refuse(request, error)
        return responses.back(request, "jobs:list")
    return redirect("jobs:operation", operation.pk)


@require_GET
@login_required
@explained
def operation(request: HttpRequest, number: int) -> HttpResponse:
    """Show what an operation would do, or its progress."""
    actor = access.of(request)
    with store.reading():
        view = OperationView.of(actor, number)
        context = {"operation": view.operation, "action": view.action}
        if view.operation.is_draft:
            forecast = view.forecast(actor)
            context |= {
                "forecast": forecast,
                "effect": actions.effect(view.action, forecast.extent, single.retention()),
            }
            return render(request, "jobs/operations/confirm.html", context)
        # Results are not in the log: no revision dates the page, so its socket sends it again as a whole.
        table = view.table(listing.SPEC.read(request.GET))
    context["may_stop"] = _may_stop(request, view)
    return responses.listing(request, "jobs/operations/detail.html", table, **context)


@require_POST
@login_required
@explained
def confirm(request: HttpRequest, number: int) -> HttpResponse:
    """Begin an operation; a second confirmation has no effect."""
    view = OperationView.of(access.of(request), number)
    if view.operation.actor != request.user.get_username():
        raise Forbidden(f"Only {view.operation.actor}, who prepared this operation, can confirm it.")
    if drafts.confirm(view.operation):
        tasks.hurry()
    return redirect("jobs:operation", number)


@require_POST
@login_required
@explained
def stop(request: HttpRequest, number: int) -> HttpResponse:
    """Stop an operation before its remaining jobs."""
    view = OperationView.of(access.of(request), number)
    if not _may_stop(request, view):
        raise Forbidden(f"Only {view.operation.actor}, who began it, or an operator can stop this operation.")
    left = drafts.stop(view.operation, access.of(request))
    many = f"{left:,} {'job was' if left == 1 else 'jobs were'}"
    text = f"Stopped: {many} not asked. What was asked before goes on."
    responses.say(request, text if left else "All jobs had been asked before.")
    return redirect("jobs:operation", number)


def _may_stop(request: HttpRequest, view: OperationView) -> bool:
    actor = access.of(request)
    return view.operation.actor == actor.name or access.allowed(actor, "list", "audit", access.EVERYWHERE)
