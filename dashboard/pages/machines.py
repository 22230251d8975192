"""The page on which a machine is added as a node: the command for it, shown once, and the tokens of machines."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from cluster import access
from cluster.access import certificates, joining, tokens
from cluster.access.tokens import Issued
from dashboard.pages.connect import server_address
from dashboard.pages.errors import explained
from dashboard.parts import responses
from dashboard.parts.forms import MachineForm
from kube.errors import ApiError
from kube.meta import timestamp
from kube.resources import NODES

HOUR_S = 3600
# Addresses of this machine, at which no other one reaches the API.
LOCAL = ("https://127.", "https://localhost", "https://[::1]")


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@login_required
@explained
def add(request: HttpRequest) -> HttpResponse:
    """Show the page; a POST issues a join token and shows the command with it, this once."""
    actor = access.of(request)
    access.require(actor, "create", NODES, "")
    if request.method != "POST":
        return _page(request, MachineForm(auto_id="machine_%s"))
    form = MachineForm(request.POST, auto_id="machine_%s")
    if form.is_valid():
        node = form.cleaned_data["node"].strip() or joining.ANY
        try:
            issued = joining.invite(actor, node, int(form.cleaned_data["hours"]) * HOUR_S)
        except ApiError as error:
            responses.show_at_fields(form, error, {"node": "node"})
        else:
            return _page(request, MachineForm(auto_id="machine_%s"), issued)
    return _page(request, form, status=422)


def _page(request: HttpRequest, form: MachineForm, issued: Issued | None = None, *, status: int = 200) -> HttpResponse:
    server = server_address(request)
    context: dict[str, Any] = {
        "form": form,
        "server": server,
        "is_local": server.startswith(LOCAL),
        "tokens": [row for row in tokens.visible(access.of(request)) if row.node],
    }
    if issued is not None:
        context["issued"] = issued
        context["until"] = timestamp(issued.expires)
        try:
            context["command"] = joining.command(
                server, certificates.current().ca_text(), issued.secret, issued.row.node
            )
        except (ImproperlyConfigured, OSError) as error:
            context["problem"] = str(error)
    return render(request, "dashboard/add_machine.html", context, status=status)
