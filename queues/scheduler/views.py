"""The page of the scheduler: what is in force, the configuration to change, and its versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django import forms
from django.contrib.auth.decorators import login_required
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from cluster import access, api
from cluster.api import backend, rights
from cluster.runtime import registry
from cluster.store import store
from dashboard.pages.errors import explained
from dashboard.parts import responses
from dashboard.parts.forms import Form
from kube.errors import AlreadyExists, ApiError, Conflict, NotFound
from kube.resources import CONFIGMAPS, NAMESPACES
from kube.scheduler_configuration import KEY, NAME, NAMESPACE
from queues.scheduler import versions, words
from scheduler.policy import configuration

if TYPE_CHECKING:
    from typing import Any

    from django.http import HttpRequest, HttpResponse

    from cluster.access import Actor
    from kube.meta import Object
    from queues.scheduler.versions import Kept

CHANGED = (
    "Somebody changed the configuration after you opened it. Nothing of yours was stored, and your text is still below;"
    " load the page again to see how it is now."
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
        """Browsers send lines that end as on typewriters."""
        return str(self.cleaned_data["text"]).replace("\r\n", "\n")


def is_shown(actor: Actor) -> bool:
    """Tell whether there is a scheduler of ours to look at, and the actor may."""
    ours = backend.runs(registry.get("scheduler"))
    return ours and access.allowed(actor, "get", CONFIGMAPS, NAMESPACE)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
@explained
def show_scheduler(request: HttpRequest) -> HttpResponse:
    """Show the configuration, check a changed one, or store it."""
    actor = access.of(request)
    if not backend.runs(registry.get("scheduler")):
        raise NotFound("Another scheduler works on this cluster; configure it where it runs.")
    access.require(actor, "get", CONFIGMAPS, NAMESPACE, NAME)
    with store.reading() as revision:
        kept = versions.kept()
    again = kept.text_at(request.GET.get("again", ""))
    if request.method != "POST":
        initial = {"text": again or kept.text or words.STARTER, "version": kept.version}
        return _page(request, kept, ConfigurationForm(initial=initial), revision, again=again is not None)
    access.require(actor, "patch", rights.configuring(), NAMESPACE, NAME)
    form = ConfigurationForm(request.POST)
    if form.is_valid() and request.POST.get("do") != "check":
        _save(actor, form)
        if form.is_valid():
            responses.say(request, "The configuration was saved; the scheduler goes by it within a second.")
            return redirect("queues:scheduler")
    return _page(request, kept, form, revision)


def _save(actor: Actor, form: ConfigurationForm) -> None:
    """Store what the form says over the version that it was opened with; what is wrong becomes its errors."""
    text, version = form.cleaned_data["text"], form.cleaned_data["version"]
    if configuration.read(text).errors:  # they stand below it, line by line
        form.add_error("text", "It cannot be used as it is; nothing was stored.")
        return
    try:
        if version:
            change = {"metadata": {"resourceVersion": version}, "data": {KEY: text}}
            api.patch(actor, CONFIGMAPS, NAMESPACE, NAME, change)
        else:
            if not store.find(NAMESPACES, name=NAMESPACE, limit=1):
                api.create(actor, NAMESPACES, _object("v1", "Namespace", {"name": NAMESPACE}))
            metadata = {"namespace": NAMESPACE, "name": NAME}
            api.create(actor, CONFIGMAPS, {**_object("v1", "ConfigMap", metadata), "data": {KEY: text}})
    except (Conflict, AlreadyExists, NotFound):
        form.add_error(None, CHANGED)
    except ApiError as error:
        responses.show_at_fields(form, error, {"data": "text"})


def _object(version: str, kind: str, metadata: Object) -> Object:
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


def _page(
    request: HttpRequest, kept: Kept, form: ConfigurationForm, revision: int, *, again: bool = False
) -> HttpResponse:
    text = str(form["text"].value() or "").replace("\r\n", "\n")
    reading = configuration.read(text)
    actor = access.of(request)
    context: dict[str, Any] = {
        "kept": kept,
        "form": form,
        "revision": revision,
        "again": again,
        "reading": reading,
        "difference": versions.difference(kept.text or "", text) if text != kept.text else [],
        "said": words.said(kept.policy),
        "always": words.always(),
        "may_write": access.allowed(actor, "patch", rights.configuring(), NAMESPACE),
        "names_writers": access.allowed(actor, "get", "audit", NAMESPACE),
    }
    return render(request, "queues/scheduler/page.html", context, status=422 if form.errors else 200)


@require_POST
@login_required
@explained
def reset_scheduler(request: HttpRequest) -> HttpResponse:
    """Delete the configuration that the reader saw, so that the defaults hold."""
    try:
        api.delete(access.of(request), CONFIGMAPS, NAMESPACE, NAME, version=request.POST.get("version", ""))
    except ApiError as error:
        responses.refuse(request, error)
    else:
        responses.say(request, "The configuration was deleted; the defaults hold.")
    return redirect("queues:scheduler")
