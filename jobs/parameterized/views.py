"""The form of a template's parameters, and the job that comes of it, in the editor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.auth.decorators import login_required
from django.http import Http404
from django.shortcuts import render
from django.views.decorators.http import require_GET

from cluster import access
from dashboard.pages.errors import explained
from jobs.editor import yaml_write
from jobs.editor.forms import JobForm
from jobs.pages.views import editor_page
from jobs.parameterized.builtin import BUILTINS
from jobs.parameterized.parameters import fill
from jobs.rules import allowed_actions
from jobs.sweeps.values import ValuesError
from kube.errors import Forbidden

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.http import HttpRequest, HttpResponse

    from jobs.parameterized.builtin import Builtin

PREFIX = "value-"  # of the form's fields, so that a parameter may have any name


@require_GET
@login_required
@explained
def template_form(request: HttpRequest, slug: str) -> HttpResponse:
    """Ask for the values of a template's parameters; with them, open the editor with the job."""
    template = BUILTINS.get(slug)
    if template is None:
        raise Http404(f"There is no template {slug}.")
    home = allowed_actions.home(access.of(request))
    if home is None:
        raise Forbidden(
            "To submit jobs takes the role submitter in some namespace; ask an administrator for it."
        )
    if not any(key.startswith(PREFIX) for key in request.GET):
        return _form(request, template, template.defaults, {})
    given = {each.name: request.GET.get(f"{PREFIX}{each.name}", "") for each in template.parameters}
    try:
        job = fill(template.template, template.parameters, given)
    except ValuesError as error:
        wrong = {problem.column: problem.message for problem in error.problems}
        return _form(request, template, given, wrong, status=422)
    job["metadata"] = job["metadata"] | {"namespace": home}
    form = JobForm(initial={"text": yaml_write.dump(job)})
    return editor_page(request, form, source=f"From the template {template.title}.")


def _form(
    request: HttpRequest,
    template: Builtin,
    values: Mapping[str, str],
    problems: Mapping[str, str],
    status: int = 200,
) -> HttpResponse:
    fields = [
        (each, f"{PREFIX}{each.name}", values.get(each.name, ""), problems.get(each.name, ""))
        for each in template.parameters
    ]
    return render(request, "jobs/template_form.html", {"template": template, "fields": fields}, status=status)
