"""The access page: accounts, roles and namespaces, for their administrators."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from cluster import access, api
from cluster.access import Actor, accounts, tokens
from cluster.access.roles import EVERYWHERE, Role
from cluster.access.router import account_transaction
from cluster.api import walls
from cluster.several import addresses
from cluster.store import store
from dashboard.pages.errors import explained
from dashboard.parts import responses
from dashboard.parts.forms import Form, NamespaceForm, PasswordForm, RoleForm, UserForm
from kube.errors import ApiError, Forbidden
from kube.resources import JOBS, NAMESPACES

LINK = "one_time_link"  # the session's key of a link that is shown once
HERE = "dashboard:access"


@require_safe
@never_cache
@login_required
@explained
def show(request: HttpRequest) -> HttpResponse:
    return _page(request)


def _page(request: HttpRequest, status: int = 200, **forms: Form) -> HttpResponse:
    """Render the page, with the forms that were refused in place of empty ones."""
    actor = access.of(request)
    administered = access.namespaces(actor, "roles")
    if not administered:
        raise Forbidden("Accounts and roles are for administrators; ask one of them.")
    everywhere = isinstance(administered, access.Everywhere)
    bindings = accounts.role_bindings()
    if not isinstance(administered, access.Everywhere):
        bindings = [each for each in bindings if each.namespace in administered]
    visible = access.namespaces(actor, NAMESPACES)
    namespaces = [
        {"name": each.name, "created": each.created, "ending": "deletionTimestamp" in each.object["metadata"]}
        for each in store.find(NAMESPACES, name=None if isinstance(visible, access.Everywhere) else visible)
    ]
    context = {
        "link": request.session.pop(LINK, None),
        "everywhere": everywhere,
        "decided_by": settings.TARGET.name if settings.TARGET and access.decides_elsewhere(JOBS) else "",
        "keeper": _keeper(),
        "walls": [(wall, walls.who_may(wall)) for wall in walls.reported()],
        "users": accounts.users() if everywhere else [],
        "bindings": bindings,
        "tokens": tokens.visible(actor),
        "namespaces": namespaces,
        "may_create_namespace": access.allowed(actor, "create", NAMESPACES, ""),
        "roles": list(Role),
        "user_form": UserForm(auto_id="user_%s"),
        "role_form": RoleForm(auto_id="role_%s"),
        "namespace_form": NamespaceForm(auto_id="namespace_%s"),
        "password_form": PasswordForm(auto_id="password_%s"),
        **forms,
    }
    return render(request, "dashboard/access.html", context, status=status)


def _keeper() -> dict[str, str] | None:
    """Return name and access page of the cluster that stores the accounts, None if it is this one."""
    if settings.ACCOUNTS_DATABASE == "default":
        return None
    first = settings.CLUSTERS[0].name
    own = reverse(HERE)
    address = addresses.counterpart(own, settings.PREFIX, addresses.prefix(first), lambda path: path == own)
    return {"name": first, "address": address}


@require_POST
@login_required
@explained
def create_user(request: HttpRequest) -> HttpResponse:
    """Create an account, with a role if one was chosen; without a password show a one-time link for it."""
    form = UserForm(request.POST, auto_id="user_%s")
    if form.is_valid():
        values = form.cleaned_data
        try:
            # One transaction: an account whose role is refused would exist already when the form is sent again.
            with account_transaction():
                user = accounts.create_user(access.of(request), values["name"], password=values["password"])
                if values["role"]:
                    namespace = values["namespace"] or EVERYWHERE
                    accounts.bind_role(access.of(request), Role(values["role"]), namespace, user=user)
        except ApiError as error:
            responses.show_at_fields(form, error, {"name": "name", "password": "password", "namespace": "namespace"})
        else:
            if not values["password"]:
                _remember_link(request, user.username)
            responses.say(request, f"{user.username} was created.")
            return responses.back(request, HERE)
    return _page(request, status=422, user_form=form)


@require_POST
@login_required
@explained
def make_link(request: HttpRequest, name: str) -> HttpResponse:
    """Show a one-time link for an account, once."""
    access.require(access.of(request), "update", "users", "", name)
    _remember_link(request, name)
    return responses.back(request, HERE)


def _remember_link(request: HttpRequest, name: str) -> None:
    user = accounts.find_user(name)
    address = accounts.login_link(f"{request.scheme}://{request.get_host()}", user)
    request.session[LINK] = {"name": name, "address": address}


@require_POST
@login_required
@explained
def set_active(request: HttpRequest, name: str) -> HttpResponse:
    access.require(access.of(request), "update", "users", "", name)
    active = request.POST.get("active") == "1"
    accounts.set_active(access.of(request), accounts.find_user(name), active=active)
    responses.say(request, f"{name} may log in again." if active else f"{name} is out, and every session has ended.")
    return responses.back(request, HERE)


@require_POST
@login_required
@explained
def set_password(request: HttpRequest, name: str) -> HttpResponse:
    access.require(access.of(request), "update", "users", "", name)
    form = PasswordForm(request.POST, auto_id="password_%s")
    if form.is_valid():
        try:
            revoked = accounts.set_password(access.of(request), accounts.find_user(name), **form.cleaned_data)
        except ApiError as error:
            responses.refuse(request, error)
        else:
            beside = f" API tokens of this cluster that were revoked: {revoked}." if revoked else ""
            responses.say(request, f"{name} has a new password, and every session has ended.{beside}")
    else:
        responses.refuse(request, ApiError("A password is needed."))
    return responses.back(request, HERE)


@require_POST
@login_required
@explained
def bind_role(request: HttpRequest) -> HttpResponse:
    form = RoleForm(request.POST, auto_id="role_%s")
    if form.is_valid():
        values = form.cleaned_data
        try:
            _bind(access.of(request), values)
        except ApiError as error:
            responses.show_at_fields(form, error, {"namespace": "namespace", "name": "subject"})
        else:
            where = "everywhere" if values["namespace"] == EVERYWHERE else f"in {values['namespace']}"
            responses.say(request, f"{values['subject']} is {values['role']} {where}.")
            return responses.back(request, HERE)
    return _page(request, status=422, role_form=form)


def _bind(actor: Actor, values: dict[str, Any]) -> None:
    role, namespace = Role(values["role"]), values["namespace"]
    if values["kind"] == "user":
        accounts.bind_role(actor, role, namespace, user=accounts.find_user(values["subject"]))
    elif values["kind"] == "account":
        accounts.bind_role(actor, role, namespace, account=values["subject"])
    else:
        accounts.bind_role(actor, role, namespace, group=values["subject"])


@require_POST
@login_required
@explained
def unbind_role(request: HttpRequest) -> HttpResponse:
    namespace = request.POST.get("namespace", "")
    user, group, account = (request.POST.get(name, "") for name in ("user", "group", "account"))
    try:
        if user:
            accounts.unbind_role(access.of(request), namespace, user=accounts.find_user(user))
        else:
            accounts.unbind_role(access.of(request), namespace, group=group, account=account)
    except ApiError as error:
        responses.refuse(request, error)
    else:
        responses.say(request, f"{user or group or account} no longer holds the role in {namespace}.")
    return responses.back(request, HERE)


@require_POST
@login_required
@explained
def create_namespace(request: HttpRequest) -> HttpResponse:
    # Checked here: users without the right have no form on the page at which a refusal could be shown.
    access.require(access.of(request), "create", NAMESPACES, "")
    form = NamespaceForm(request.POST, auto_id="namespace_%s")
    if form.is_valid():
        name = form.cleaned_data["name"]
        try:
            api.create(access.of(request), NAMESPACES, {**NAMESPACES_KIND, "metadata": {"name": name}})
        except ApiError as error:
            responses.show_at_fields(form, error, {"metadata.name": "name"})
        else:
            responses.say(request, f"The namespace {name} was created.")
            return responses.back(request, HERE)
    return _page(request, status=422, namespace_form=form)


NAMESPACES_KIND = {"apiVersion": NAMESPACES.api_version, "kind": NAMESPACES.kind}
