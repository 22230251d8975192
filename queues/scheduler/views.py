"""The page of the scheduler: the policy in force, the editor of its configuration, and its versions."""

from __future__ import annotations

from django import forms
from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from cluster import access, api
from cluster.access import Actor
from cluster.api import rights
from cluster.store import store
from dashboard.pages.errors import explained
from dashboard.parts import responses
from dashboard.parts.forms import Form
from kube.errors import AlreadyExists, ApiError, Conflict, NotFound
from kube.meta import Object
from kube.resources import CONFIGMAPS, NAMESPACES
from kube.volcano.scheduler_configuration import KEY, NAME, NAMESPACE
from queues.scheduler import decisions, parts, versions, words
from scheduler.policy import configuration

CHANGED = (
    "Somebody changed the configuration after you opened it. Your text was not stored and is still below;"
    " load the page again to see the stored one."
)


class ConfigurationForm(Form):
    """The configuration as text, and the version that the reader began from."""

    text = forms.CharField(
        max_length=configuration.LONGEST,
        strip=False,
        label="Configuration",
        help_text=f"{KEY}, as Volcano reads it.",
        widget=forms.Textarea(attrs={"rows": 22, "class": "textarea mono", "wrap": "off"}),
    )
    version = forms.CharField(required=False, max_length=64, widget=forms.HiddenInput)

    def clean_text(self) -> str:
        """Browsers send CRLF line breaks; store LF."""
        return str(self.cleaned_data["text"]).replace("\r\n", "\n")


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
@explained
def show_scheduler(request: HttpRequest) -> HttpResponse:
    """Show the configuration, check a changed one, or store it."""
    actor = access.of(request)
    with store.reading() as revision:
        stored, html = parts.read_parts(actor)
    again = stored.text_at(request.GET.get("again", ""))
    text = again or stored.text or words.STARTER
    form = ConfigurationForm(request.POST or None, initial={"text": text, "version": stored.version})
    if request.method == "POST":
        access.require(actor, "patch", rights.configuring(), NAMESPACE, NAME)
        if form.is_valid() and request.POST.get("do") != "check" and _is_saved(actor, form):
            responses.say(request, "The configuration was saved; the scheduler goes by it within a second.")
            return redirect("queues:scheduler")
        text = request.POST.get("text", "").replace("\r\n", "\n")
    is_other = form.is_bound or again is not None
    context = {
        "parts": html,
        "topic": parts.TOPIC,
        "page_revision": revision,
        "revision": revision,
        "stored": stored,
        "form": form,
        "reading": configuration.read(text),
        "difference": versions.difference(stored.text or "", text) if is_other else [],
        "always": words.always(),
        "again": again is not None,
        "may_write": parts.may_write(actor),
    }
    return render(request, "queues/scheduler/page.html", context, status=422 if form.errors else 200)


def _is_saved(actor: Actor, form: ConfigurationForm) -> bool:
    """Store the form's text over the version that it was opened with; problems become the form's errors."""
    text, version = form.cleaned_data["text"], form.cleaned_data["version"]
    if configuration.read(text).errors:  # the page lists them below the field, line by line
        form.add_error("text", "It cannot be used as it is; nothing was stored.")
        return False
    try:
        _store(actor, text, version)
    except (Conflict, AlreadyExists, NotFound):
        form.add_error(None, CHANGED)
    except ApiError as error:
        responses.show_at_fields(form, error, {"data": "text"})
    return form.is_valid()


def _store(actor: Actor, text: str, version: str) -> None:
    """Write the configuration over a version of the ConfigMap; "" creates it, and its namespace if that is missing."""
    if version:
        change = {"metadata": {"resourceVersion": version}, "data": {KEY: text}}
        api.patch(actor, CONFIGMAPS, NAMESPACE, NAME, change)
        return
    if not store.find(NAMESPACES, name=NAMESPACE, limit=1):
        api.create(actor, NAMESPACES, _object("v1", "Namespace", {"name": NAMESPACE}))
    metadata = {"namespace": NAMESPACE, "name": NAME}
    api.create(actor, CONFIGMAPS, {**_object("v1", "ConfigMap", metadata), "data": {KEY: text}})


def _object(version: str, kind: str, metadata: Object) -> Object:
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


@require_safe
@login_required
@explained
def show_decisions(request: HttpRequest) -> HttpResponse:
    """Show the decisions of the scheduler."""
    table = decisions.table(access.of(request), decisions.SPEC.read(request.GET))
    return responses.listing(request, "queues/scheduler/decisions.html", table, days=settings.DECISION_DAYS)


@require_POST
@login_required
@explained
def reset_scheduler(request: HttpRequest) -> HttpResponse:
    """Delete the configuration in the version that the reader saw, so that the defaults hold."""
    parts.require_ours()
    try:
        api.delete(access.of(request), CONFIGMAPS, NAMESPACE, NAME, version=request.POST.get("version", ""))
    except ApiError as error:
        responses.refuse(request, error)
    else:
        responses.say(request, "The configuration was deleted; the defaults hold.")
    return redirect("queues:scheduler")
