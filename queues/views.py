"""The queue pages."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from cluster import access, api
from cluster.api import audit_trail, backend
from cluster.store import store
from dashboard.live.topics import address
from dashboard.pages import events
from dashboard.pages.errors import explained
from dashboard.parts import responses
from kube.errors import ApiError
from kube.kinds.scheduling import Queue, QueueState
from kube.resources import COMMANDS, QUEUES
from queues import forms, listing, state_commands
from queues.scheduler import parts as scheduler

LOAD_AGAIN = "Your changes were not stored; load the page again to see how the queue is now."


@require_safe
@login_required
@explained
def show_queues(request: HttpRequest) -> HttpResponse:
    actor = access.of(request)
    table = listing.table(actor, listing.SPEC.read(request.GET))
    may_create = access.allowed(actor, "create", QUEUES, "")
    shows_scheduler = scheduler.may_see(actor)
    return responses.listing(
        request,
        "queues/list.html",
        table,
        may_create=may_create,
        shows_scheduler=shows_scheduler,
        shows_decisions=scheduler.shows_decisions(actor),
    )


@require_safe
@login_required
@explained
def show_queue(request: HttpRequest, name: str) -> HttpResponse:
    actor = access.of(request)
    with store.reading() as revision:
        uid, parts = listing.parts(actor, name)
        table = listing.job_table(actor, name, listing.JOBS_SPEC.read(request.GET))
        event_context = events.about(actor, uid)
    context = {
        "name": name,
        "parts": parts,
        "topic": address("queues:detail", {"name": name}),
        "queue_revision": revision,
        **event_context,
        "shows_decisions": scheduler.shows_decisions(actor),
    }
    return responses.listing(request, "queues/detail.html", table, **context)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
@explained
def new_queue(request: HttpRequest) -> HttpResponse:
    """Create a queue; causes of a refusal are shown at their fields."""
    actor = access.of(request)
    access.require(actor, "create", QUEUES, "")
    form = forms.NewQueueForm(request.POST or None, parents=_parents(""))
    if request.method == "POST" and form.is_valid():
        name = form.cleaned_data["name"]
        queue = {"apiVersion": QUEUES.api_version, "kind": QUEUES.kind, "metadata": {"name": name}, "spec": form.spec()}
        try:
            api.create(actor, QUEUES, queue)
        except ApiError as error:
            responses.show_at_fields(form, error, forms.FIELDS)
        else:
            responses.say(request, f"The queue {name} was created.")
            return redirect("queues:detail", name)
    status = 422 if form.errors else 200
    return render(request, "queues/edit.html", {"form": form, "name": ""}, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
@explained
def edit_queue(request: HttpRequest, name: str) -> HttpResponse:
    """Change a queue; only fields that were changed in the form are sent."""
    actor = access.of(request)
    access.require(actor, "patch", QUEUES, "", name)
    stored = store.get(QUEUES, "", name)
    queue = stored.read(Queue)
    form = forms.QueueForm(request.POST or None, initial=forms.initial_of(queue), parents=_parents(name))
    if form.is_valid() and form.cleaned_data["generation"] not in (None, queue.metadata.generation):
        who = audit_trail.last_writer(QUEUES, stored) or "Somebody"
        form.add_error(None, f"{who} changed this queue after you opened it. {LOAD_AGAIN}")
    if form.is_valid():
        patch = form.patch(queue)
        try:
            if patch:
                api.patch(actor, QUEUES, "", name, patch)
        except ApiError as error:
            responses.show_at_fields(form, error, forms.FIELDS)
        else:
            responses.say(request, f"The queue {name} was changed." if patch else "Nothing was changed.")
            return redirect("queues:detail", name)
    status = 422 if form.errors else 200
    return render(request, "queues/edit.html", {"form": form, "name": name}, status=status)


def _parents(name: str) -> list[str]:
    return [stored.name for stored in store.find(QUEUES) if stored.name not in (name, "root", "default")]


@require_POST
@login_required
@explained
def set_state(request: HttpRequest, name: str, state: str) -> HttpResponse:
    """Open or close a queue."""
    actor, wish = access.of(request), {"open": QueueState.OPEN, "close": QueueState.CLOSED}[state]
    try:
        if backend.is_mirror:
            # Volcano's queues have no field for the wish: its controllers take a Command.
            queue = store.get(QUEUES, "", name)
            api.create(actor, COMMANDS, state_commands.to_queue(name, queue.uid, wish))
        else:
            api.patch(actor, QUEUES, "", name, {"spec": {"state": str(wish)}})
    except ApiError as error:
        responses.refuse(request, error)
    else:
        effect = "takes jobs again." if wish is QueueState.OPEN else "takes no new jobs; what is in it goes on."
        responses.say(request, f"The queue {name} {effect}")
    return redirect("queues:detail", name)


@require_POST
@login_required
@explained
def delete_queue(request: HttpRequest, name: str) -> HttpResponse:
    try:
        api.delete(access.of(request), QUEUES, "", name)
    except ApiError as error:
        responses.refuse(request, error)
        return redirect("queues:detail", name)
    responses.say(request, f"The queue {name} was deleted.")
    return redirect("queues:list")
