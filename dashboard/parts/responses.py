"""What views have in common: answers to htmx, toasts, the refusals of the API at their fields, safe ways back."""

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
    """Answer with a page around a table or, when htmx asks, with the table and its canonical address."""
    asked_by_htmx = bool(request.headers.get("HX-Request"))
    shown = {"table": table, "revision": table.revision, **context}
    response = render(request, "partials/_table.html" if asked_by_htmx else template, shown)
    if asked_by_htmx:
        response["HX-Push-Url"] = (request.path + table.view.url()).removesuffix("?")
    patch_vary_headers(response, ["HX-Request"])
    return response


def back(request: HttpRequest, name: str, *arguments: str) -> HttpResponseRedirect:
    """Go back to the page that a form was on (its field `next`), or to the named page."""
    wanted = request.POST.get("next", "")
    if url_has_allowed_host_and_scheme(wanted, {request.get_host()}, require_https=request.is_secure()):
        return HttpResponseRedirect(wanted)
    return HttpResponseRedirect(reverse(name, args=arguments))


def say(request: HttpRequest, text: str) -> None:
    """Tell the reader that something was done; it appears as a toast on the next page, which ends the form's draft."""
    messages.success(request, text, extra_tags=drafts.sent(request))


def refuse(request: HttpRequest, error: ApiError) -> None:
    """Tell the reader why something was not done."""
    messages.error(request, "; ".join(map(str, error.causes)) or error.message)


def delete(
    request: HttpRequest,
    resource: Resource,
    key: tuple[str, str],
    said: str,
    *,
    page: str,
    listing: str,
    page_key: tuple[str, str] | None = None,
) -> HttpResponseRedirect:
    """Delete the object that the reader saw, by its `uid`, and go to the list; or say why not on its page.

    page_key is the address of that page where it is not the key of the object.
    """
    try:
        api.delete(access.of(request), resource, *key, uid=request.POST.get("uid", ""))
    except ApiError as error:
        refuse(request, error)
        return HttpResponseRedirect(reverse(page, args=page_key or key))
    say(request, said)
    return HttpResponseRedirect(reverse(listing))


def show_at_fields(form: BaseForm, error: ApiError, fields: Mapping[str, str]) -> None:
    """Put each cause of an error at the form's field for its path; fields maps paths, or their beginnings, to fields."""
    for cause in error.causes:
        field = next((name for path, name in fields.items() if cause.field.startswith(path)), None)
        form.add_error(field, cause.message if field else str(cause))
    if not error.causes:
        form.add_error(None, error.message)
