"""The form of a template's parameters, the resulting job in the editor, and saving new templates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.contrib.auth.decorators import login_required
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods

from cluster import access, api
from dashboard.pages.errors import explained, logged_out
from dashboard.parts import responses
from jobs.operations import allowed_actions
from jobs.pages import objects
from jobs.pages.editor.forms import JobForm
from jobs.pages.editor.views import editor_page
from jobs.parameterized import declaration
from jobs.parameterized.builtin import BUILTINS
from jobs.parameterized.declaration import DeclarationError
from jobs.parameterized.parameters import KINDS, Parameter, fill
from jobs.parameterized.template_drafts import TemplateDraft
from jobs.rules import yaml_write
from jobs.sweeps.placeholders import Template
from jobs.sweeps.values import ValuesError
from kube.errors import ApiError
from kube.resources import JOB_TEMPLATES

PREFIX = "value-"  # of the form's fields, so that a parameter may have any name


@dataclass(frozen=True, slots=True)
class TemplateForm:
    """A template that asks for values; namespace is that of its jobs, sweep the URL to make many of them."""

    title: str
    text: str
    template: Template
    parameters: Sequence[Parameter]
    namespace: str
    sweep: str


@require_GET
@login_required
@explained
def template_form(request: HttpRequest, slug: str) -> HttpResponse:
    """Ask for the values of a built-in template; with them, open the editor with the job."""
    builtin = BUILTINS.get(slug)
    if builtin is None:
        raise Http404(f"There is no template {slug}.")
    text = f"{builtin.text} Needs on the machine that runs it: {builtin.needs}"
    sweep = f"{reverse('sweeps:new')}?template={slug}"
    return _ask(request, TemplateForm(builtin.title, text, builtin.template, builtin.parameters, _home(request), sweep))


@require_GET
@login_required
@explained
def stored_form(request: HttpRequest, namespace: str, name: str) -> HttpResponse:
    """Ask for the values of a saved template; with them, open the editor with the job."""
    _home(request)
    declared = declaration.of_stored(objects.read(access.of(request), JOB_TEMPLATES, namespace, name).object)
    text = f"A template with parameters that is kept in {namespace}."
    sweep = f"{reverse('sweeps:new')}?kept={namespace}/{name}"
    return _ask(request, TemplateForm(name, text, declared.template, declared.parameters, namespace, sweep))


def _home(request: HttpRequest) -> str:
    """Return the namespace for the reader's new jobs; raise Forbidden if there is none."""
    home = allowed_actions.home(access.of(request))
    if home is None:
        raise allowed_actions.nowhere("To submit jobs")
    return home


def _ask(request: HttpRequest, form: TemplateForm) -> HttpResponse:
    """Show the form with the defaults or with errors, or the editor with the resulting job."""
    if not any(key.startswith(PREFIX) for key in request.GET):
        return _form(request, form, {each.name: each.default for each in form.parameters}, {})
    values = {each.name: request.GET.get(f"{PREFIX}{each.name}", "") for each in form.parameters}
    try:
        job = fill(form.template, form.parameters, values)
    except ValuesError as error:
        wrong = {problem.column: problem.message for problem in error.problems}
        return _form(request, form, values, wrong, status=422)
    if isinstance(job.get("metadata"), dict):
        job["metadata"] = job["metadata"] | {"namespace": form.namespace}
    editor_form = JobForm(initial={"text": yaml_write.dump(job)})
    return editor_page(request, editor_form, source=f"From the template {form.title}.")


def _form(
    request: HttpRequest, form: TemplateForm, values: Mapping[str, str], problems: Mapping[str, str], status: int = 200
) -> HttpResponse:
    fields = [
        (each, f"{PREFIX}{each.name}", values.get(each.name, ""), problems.get(each.name, ""))
        for each in form.parameters
    ]
    return render(request, "jobs/template_form.html", {"form": form, "fields": fields}, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
@explained
def template_new(request: HttpRequest) -> HttpResponse:
    """Save a YAML with placeholders as a JobTemplate; POST checks it, and saves it if its field `do` is `save`."""
    if not request.user.is_authenticated:
        return logged_out(request) if request.POST.get("text") else redirect_to_login(request.get_full_path())
    home = allowed_actions.home(access.of(request), JOB_TEMPLATES)
    if home is None:
        raise allowed_actions.nowhere("To keep templates", JOB_TEMPLATES)
    draft = TemplateDraft.read(request.POST.dict()) if request.method == "POST" else TemplateDraft.begin(home)
    problems: tuple[str, ...] = ()
    status = 200
    try:
        declared = declaration.declare(draft.text, draft.parameters)
        if request.POST.get("do") == "save":
            template = declaration.write(declared, draft.namespace, draft.name)
            stored = api.create(access.of(request), JOB_TEMPLATES, template)
            responses.say(request, f"Template {stored.name} is kept.")
            return redirect("flows:template", stored.namespace, stored.name)
    except DeclarationError as error:
        problems, status = error.problems, 422 if request.POST.get("do") == "save" else 200
    except ApiError as error:
        problems, status = tuple(map(str, error.causes)) or (error.message,), error.code
    context = {"kept": draft, "kinds": KINDS, "problems": problems}
    return render(request, "jobs/template_new.html", context, status=status)
