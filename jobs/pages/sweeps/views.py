"""The pages of sweeps: the list, a new one, the outcomes of one."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import replace

from django.contrib.auth.decorators import login_required
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from cluster import access
from cluster.store import store
from dashboard.live.topics import address
from dashboard.pages.errors import explained, logged_out
from dashboard.parts import responses
from jobs.operations import allowed_actions
from jobs.pages import objects
from jobs.pages.sweeps import listing, samples, submission
from jobs.pages.sweeps.submission import Preview
from jobs.parameterized import declaration
from jobs.parameterized.builtin import BUILTINS
from jobs.sweeps import record, values
from jobs.sweeps.draft import MORE_ROWS, Draft
from jobs.sweeps.values import ValuesError
from kube.errors import ApiError
from kube.resources import CONFIGMAPS, JOB_TEMPLATES
from kube.yaml.problem import YamlError


@require_GET
@login_required
@explained
def sweep_list(request: HttpRequest) -> HttpResponse:
    actor = access.of(request)
    table = listing.table(actor, listing.SPEC.read(request.GET))
    may_submit = allowed_actions.home(actor) is not None
    return responses.listing(request, "sweeps/list.html", table, may_submit=may_submit)


@require_http_methods(["GET", "HEAD", "POST"])
@explained
def sweep_new(request: HttpRequest) -> HttpResponse:
    """Write a sweep; POST checks it, offers more rows of values or makes it, as its field `do` says."""
    if not request.user.is_authenticated:
        # The redirect to the login page would lose the text.
        return logged_out(request) if request.POST.get("text") else redirect_to_login(request.get_full_path())
    home = allowed_actions.home(access.of(request))
    if home is None:
        raise allowed_actions.nowhere("To make a sweep")
    if request.method != "POST":
        return _form(request, _start(request, home))
    draft = Draft.read(request.POST.dict())
    if request.POST.get("do") != "submit":
        return _form(request, draft, more=MORE_ROWS if request.POST.get("do") == "rows" else 0)
    actor = access.of(request)
    try:
        holder = submission.submit(actor, draft)
    except (YamlError, ValuesError) as error:
        status = 400 if isinstance(error, YamlError) else 422
        return _form(request, draft, preview=submission.preview(actor, draft), status=status)
    except ApiError as error:
        preview = submission.refused(submission.preview(actor, draft), error)
        return _form(request, draft, preview=preview, status=error.code)
    name = record.name_of(holder.name)
    responses.say(request, f"Sweep {name} was submitted.")
    return redirect("sweeps:detail", holder.namespace, name)


def _start(request: HttpRequest, home: str) -> Draft:
    """Return the page's initial draft: a template, another sweep's, or the sample, in the namespace home."""
    if template := BUILTINS.get(request.GET.get("template", "")):
        return samples.at(home, Draft(text=template.yaml, grid=_choices(template.defaults)))
    if key := request.GET.get("kept", ""):
        namespace, _, name = key.partition("/")
        declared = declaration.of_stored(objects.read(access.of(request), JOB_TEMPLATES, namespace, name).object)
        return Draft(text=declared.yaml, grid=_choices(declared.defaults))
    namespace, _, name = request.GET.get("from", "").partition("/")
    if not name:
        return samples.at(home, samples.DESCENT)
    _, sweep = listing.read(access.of(request), namespace, name)
    return Draft(text=sweep.text, source="csv", csv=sweep.values.csv())


def _choices(defaults: Mapping[str, str]) -> dict[str, str]:
    return {name: values.choice(value) for name, value in defaults.items()}


def _form(
    request: HttpRequest, draft: Draft, *, preview: Preview | None = None, more: int = 0, status: int = 200
) -> HttpResponse:
    draft = draft if draft.token else replace(draft, token=secrets.token_hex(8))
    preview = submission.preview(access.of(request), draft) if preview is None else preview
    # While the YAML cannot be read, the fields stay; values of placeholders that are gone are kept hidden.
    names = preview.names or tuple(dict.fromkeys(name for name, _, _ in draft.fields()))
    context = {
        "draft": draft,
        "preview": preview,
        "may_keep": allowed_actions.home(access.of(request), JOB_TEMPLATES) is not None,
        "grid": [(name, draft.grid.get(name, "")) for name in names],
        "rows": [[(name, row.get(name, "")) for name in names] for row in draft.rows(more)],
        "unseen": [(key, value) for name, key, value in draft.fields() if name not in names and value],
    }
    template = "sweeps/_rest.html" if request.headers.get("HX-Request") else "sweeps/new.html"
    response = render(request, template, context, status=status)
    patch_vary_headers(response, ["HX-Request"])
    return response


@require_GET
@login_required
@explained
def sweep_detail(request: HttpRequest, namespace: str, name: str) -> HttpResponse:
    actor = access.of(request)
    with store.reading() as revision:
        stored, sweep = listing.read(actor, namespace, name)
        table, grid = listing.outcomes_of(stored, sweep, request.GET)
        table.revision = revision
        context = {
            "stored": stored,
            "sweep": sweep,
            "grid": grid,
            "parts": listing.head(actor, stored, sweep),
            "head_topic": address("sweeps:head", {"namespace": namespace, "name": name}),
        }
    template = "sweeps/_outcomes.html" if request.headers.get("HX-Request") else "sweeps/detail.html"
    response = render(request, template, {"table": table, "revision": revision, **context})
    if request.headers.get("HX-Request"):
        response["HX-Push-Url"] = (request.path + table.view.url()).removesuffix("?")
    patch_vary_headers(response, ["HX-Request"])
    return response


@require_POST
@login_required
@explained
def sweep_delete(request: HttpRequest, namespace: str, name: str) -> HttpResponse:
    text = f"Sweep {name} is deleted, and its jobs with it."
    return responses.delete(
        request,
        CONFIGMAPS,
        (namespace, record.holder_of(name)),
        text,
        page="sweeps:detail",
        listing="sweeps:list",
        page_key=(namespace, name),
    )
