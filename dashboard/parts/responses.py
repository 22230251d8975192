"""What views have in common: responses to htmx, toasts, causes of the API at their fields, safe redirects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.forms import BaseForm
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.cache import patch_vary_headers
from django.utils.http import url_has_allowed_host_and_scheme

from cluster import access, api
from dashboard.parts import drafts
from dashboard.parts.table import Table
from kube.errors import ApiError
from kube.resources import Resource


def listing(request: HttpRequest, template: str, table: Table, **context: Any) -> HttpResponse:
    """Return a page around a table or, for htmx, the table alone with its canonical address."""
    is_htmx = bool(request.headers.get("HX-Request"))
    page_context = {"table": table, "revision": table.revision, **context}
    response = render(request, "partials/_table.html" if is_htmx else template, page_context)
    if is_htmx:
        response["HX-Push-Url"] = (request.path + table.view.url()).removesuffix("?")
    patch_vary_headers(response, ["HX-Request"])
    return response


def back(request: HttpRequest, name: str, *arguments: str) -> HttpResponseRedirect:
    """Redirect to the page that a form was on (its field `next`), or to the named page."""
    target = request.POST.get("next", "")
    if url_has_allowed_host_and_scheme(target, {request.get_host()}, require_https=request.is_secure()):
        return HttpResponseRedirect(target)
    return HttpResponseRedirect(reverse(name, args=arguments))


def say(request: HttpRequest, text: str) -> None:
    """Add a success message for the reader: a toast on the next page, which also deletes the form's draft."""
    messages.success(request, text, extra_tags=drafts.sent(request))


def refuse(request: HttpRequest, error: ApiError) -> None:
    """Add an error message for the reader: why something was not done."""
    messages.error(request, "; ".join(map(str, error.causes)) or error.message)


def delete(
    request: HttpRequest,
    resource: Resource,
    key: tuple[str, str],
    message: str,
    *,
    page: str,
    listing: str,
    page_key: tuple[str, str] | None = None,
) -> HttpResponseRedirect:
    """Delete the object that the reader saw, by its `uid`, and redirect to the list; else say why not on its page.

    `message` is for a success. `page_key` has the arguments of the page's address if they are not the object's key.
    """
    try:
        api.delete(access.of(request), resource, *key, uid=request.POST.get("uid", ""))
    except ApiError as error:
        refuse(request, error)
        return HttpResponseRedirect(reverse(page, args=page_key or key))
    say(request, message)
    return HttpResponseRedirect(reverse(listing))


def show_at_fields(form: BaseForm, error: ApiError, fields: Mapping[str, str]) -> None:
    """Add each cause of an error to the form's field for its path; `fields` maps paths, or their beginnings, to fields."""
    for cause in error.causes:
        field = next((name for path, name in fields.items() if cause.field.startswith(path)), None)
        form.add_error(field, cause.message if field else str(cause))
    if not error.causes:
        form.add_error(None, error.message)
