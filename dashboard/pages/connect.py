"""The page "Connect": the address of the Kubernetes API, tokens for it, and the first commands for each client.

A new token is in the response to the form that requested it and nowhere else,
not even in the session, so that only its hash is ever stored. Reloading that response
requests another token, of which browsers warn.
"""

from __future__ import annotations

import base64
import ssl
import urllib.request
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from cluster import access
from cluster.access import certificates, kubeconfig, site, tokens
from cluster.access.tokens import Issued
from dashboard.pages.errors import explained
from dashboard.pages.snippets import snippets
from dashboard.parts import responses
from dashboard.parts.forms import TokenForm
from kube.errors import ApiError
from kube.meta import timestamp

HERE = "dashboard:connect"
FILE = "volcano-ui.kubeconfig"
READY_WITHIN_S = 1.0


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@login_required
@explained
def show(request: HttpRequest) -> HttpResponse:
    """Show the page; a POST issues a token and shows its kubeconfig, this once."""
    if request.method != "POST":
        return _page(request, TokenForm(auto_id="token_%s"))
    form = TokenForm(request.POST, auto_id="token_%s")
    if form.is_valid():
        days = int(form.cleaned_data["days"])
        try:
            issued = tokens.issue(access.of(request), _user(request), form.cleaned_data["name"], days * tokens.DAY_S)
        except ApiError as error:
            responses.show_at_fields(form, error, {"name": "name"})
        else:
            return _page(request, TokenForm(auto_id="token_%s"), issued)
    return _page(request, form, status=422)


@require_POST
@login_required
@explained
def revoke(request: HttpRequest, number: int) -> HttpResponse:
    """Revoke a token, one's own or, for administrators, another's; it works for some seconds more."""
    row = tokens.revoke(access.of(request), number)
    responses.say(request, f"The token “{row.name}” lets nobody in any more.")
    return responses.back(request, HERE)


def _page(request: HttpRequest, form: TokenForm, issued: Issued | None = None, *, status: int = 200) -> HttpResponse:
    authority = problem = ""  # no authority: clients trust the certificate's issuer already
    try:
        authority = certificates.current().ca_text()
    except (ImproperlyConfigured, OSError) as error:
        problem = str(error)
    server = server_address(request)
    context: dict[str, Any] = {
        "server": server,
        "is_ready": not problem and _is_ready(authority),
        "problem": problem,
        "authority_data": _data(authority) if authority else "",
        "form": form,
        "clients": snippets(server, FILE),
        "file": FILE,
        "tokens": tokens.of_user(_user(request)),
    }
    if issued is not None:
        text = kubeconfig.text(
            server, authority, request.user.get_username(), issued.secret, called=kubeconfig.name(server)
        )
        until = timestamp(issued.expires)[:10]
        context |= {"issued": issued, "until": until, "kubeconfig": text, "kubeconfig_data": _data(text)}
    return render(request, "dashboard/connect.html", context, status=status)


def server_address(request: HttpRequest) -> str:
    """Return the API's address for the reader's machine: on the host by which it reached this page."""
    host = urlsplit(f"//{request.get_host()}").hostname or ""
    return f"https://{f'[{host}]' if ':' in host else host}:{settings.API_PORT}"


def _is_ready(authority: str) -> bool:
    """Return whether the API server is ready."""
    context = ssl.create_default_context(cadata=authority or None)
    # The certificate is for the names that clients use; here only its issuer matters.
    context.check_hostname = False
    try:
        with urllib.request.urlopen(  # noqa: S310  the address is ours
            f"{site.local_api()}/readyz", timeout=READY_WITHIN_S, context=context
        ) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _data(text: str) -> str:
    """Return a text as a data: URL, from which a browser saves it."""
    return "data:application/octet-stream;base64," + base64.b64encode(text.encode()).decode()


def _user(request: HttpRequest) -> User:
    return request.user  # type: ignore[return-value]
