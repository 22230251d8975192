"""Login, logout, one-time links and one's own password.

Every response here forbids caching, and referrers to other sites, because an address may hold
a token. Sessions get a new key at each login (Django's `login`).
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login, update_session_auth_hash
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm, SetPasswordForm
from django.contrib.auth.mixins import LoginRequiredMixin
from django.contrib.auth.views import LoginView, LogoutView
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from django.views.generic import FormView, View

from cluster import access
from cluster.access import accounts, logins
from cluster.several import addresses
from dashboard.accounts.refusals import passwords_are_off, refusal
from kube.errors import ApiError, NotFound, TooManyRequests

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.contrib.auth.models import User
    from django.http import HttpRequest, HttpResponse, HttpResponseBase

    PasswordView = FormView[SetPasswordForm[User]]
else:
    PasswordView = FormView  # Django's forms cannot be subscripted at run time

BACKEND = "django.contrib.auth.backends.ModelBackend"
YEAR_S = 31_536_000
ID_TOKEN = "oidc_id_token"  # noqa: S105 - the session's key of the token by which somebody logged in
LEFT = "left_provider"  # the session's key of a notice, shown once after a logout from a provider's session


def _private(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Keep addresses and pages of a view out of caches and referrers."""

    @wraps(view)
    def private(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response = view(request, *args, **kwargs)
        # Not "no-referrer": under it browsers send "Origin: null" with a form, and the CSRF check refuses that.
        response.headers["Referrer-Policy"] = "same-origin"
        return response

    return never_cache(private)


private = method_decorator(_private, name="dispatch")


@private
class Login(LoginView):
    """Name and password; `next` is followed only within this site (Django's LoginView)."""

    template_name = "registration/login.html"
    redirect_authenticated_user = True
    attempt: logins.Attempt

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(**kwargs, **self.request.session.pop(LEFT, {}))

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not settings.PASSWORD_LOGIN:
            return passwords_are_off(request)
        name = request.POST.get("username", "")
        try:
            self.attempt = logins.attempt(name, address_of(request), request.COOKIES)
        except TooManyRequests as error:
            form = AuthenticationForm(request, initial={"username": name})
            response = self.render_to_response(self.get_context_data(form=form, problem=error.message))
            response.status_code = error.code
            response.headers["Retry-After"] = str(error.retry_after_s)
            return response
        return super().post(request, *args, **kwargs)

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        self.attempt.failed()
        problem = "Name and password do not match an active user. Both are case-sensitive."
        return self.render_to_response(self.get_context_data(form=form, problem=problem), status=401)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        user: User = form.get_user()
        self.attempt.succeeded(user)
        response = super().form_valid(form)
        remember_browser(self.request, response, user)
        return response


@private
class Logout(LogoutView):
    """Ends the session; by POST only, so that an image on another site cannot do it."""

    http_method_names = ["post", "options"]

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.user.is_authenticated:
            logins.logged_out(request.user)
        token = request.session.get(ID_TOKEN)
        response = super().post(request, *args, **kwargs)
        if token:
            from dashboard.accounts import provider

            back = registered_address(request, "accounts:login")
            request.session[LEFT] = {"left": True, "leave": provider.leave(token, back)}
        return response


@private
class Link(View):
    """A one-time link: one click logs in, but a program that only fetches the address does not use it up.

    A browser in which a person opened it (Sec-Fetch headers: a navigation that no
    other site started, and not a prefetch) is logged in by the GET. For
    anything else, such as link previews, prefetches, other sites' links and
    old browsers, the GET shows a button, and its POST logs in.
    """

    def get(self, request: HttpRequest, token: str) -> HttpResponse:
        if is_persons_own_step(request):
            return self.post(request, token)
        try:
            user = logins.check_link(token)
        except NotFound as error:
            return self._refuse(request, token, error)
        return render(request, "registration/link.html", {"name": user.get_username()})

    def post(self, request: HttpRequest, token: str) -> HttpResponse:
        try:
            user = logins.claim(token, address_of(request))
        except NotFound as error:
            return self._refuse(request, token, error)
        login(request, user, backend=BACKEND)
        response = redirect(settings.LOGIN_REDIRECT_URL)
        remember_browser(request, response, user)
        return response

    def _refuse(self, request: HttpRequest, token: str, error: NotFound) -> HttpResponse:
        """Return the page that says why, except for a user whom this very link has logged in already."""
        if request.user.pk is not None and logins.owner(token) == request.user.pk:
            return redirect(settings.LOGIN_REDIRECT_URL)
        heading = "This link does not log you in"
        return refusal(request, error.message, 404, title="Login link", heading=heading)


@private
class Password(LoginRequiredMixin, PasswordView):
    """Changes one's own password, or sets the first one; other sessions of the user end."""

    template_name = "registration/password_change.html"

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return super().dispatch(request, *args, **kwargs) if settings.PASSWORD_LOGIN else passwords_are_off(request)

    def get_form_class(self) -> type[SetPasswordForm[User]]:
        return PasswordChangeForm if self._user.has_usable_password() else SetPasswordForm

    def get_form_kwargs(self) -> dict[str, Any]:
        return {**super().get_form_kwargs(), "user": self._user}

    def get_form(self, form_class: type[SetPasswordForm[User]] | None = None) -> SetPasswordForm[User]:
        form = super().get_form(form_class)
        for field in form.fields.values():
            field.widget.attrs["class"] = "input"
        return form

    def form_valid(self, form: SetPasswordForm[User]) -> HttpResponse:
        try:
            accounts.set_password(access.of(self.request), self._user, form.cleaned_data["new_password1"])
        except ApiError as error:
            form.add_error("new_password1", error.message)
            return self.form_invalid(form)
        update_session_auth_hash(self.request, self._user)
        messages.success(self.request, "The password is changed. Other sessions of yours have ended.")
        return redirect(settings.LOGIN_REDIRECT_URL)

    @property
    def _user(self) -> User:
        return self.request.user  # type: ignore[return-value]


def is_persons_own_step(request: HttpRequest) -> bool:
    """Return whether a person opened the page: typed its address, or followed it from outside the browser."""
    headers = request.headers
    return (
        headers.get("Sec-Fetch-Mode") == "navigate"
        and headers.get("Sec-Fetch-Dest") == "document"
        and headers.get("Sec-Fetch-Site") == "none"
        and not any(name in headers for name in ("Sec-Purpose", "Purpose", "X-Purpose", "X-Moz"))
    )


def address_of(request: HttpRequest) -> str:
    """Return the address that a request came from."""
    return str(request.META.get("REMOTE_ADDR") or "unknown")


def registered_address(request: HttpRequest, name: str) -> str:
    """Return a page's address as it is registered at the provider: with several clusters that of the first one, for all."""
    path = reverse(name)
    if settings.CLUSTERS:
        path = f"/{addresses.prefix(settings.CLUSTERS[0].name)}{path.removeprefix(f'/{settings.PREFIX}')}"
    return request.build_absolute_uri(path)


def remember_browser(request: HttpRequest, response: HttpResponse, user: User) -> None:
    """Mark the browser as one in which this user has logged in."""
    name, value = logins.browser_cookie(user.get_username())
    # With several clusters people log in at any of them.
    path = "/" if settings.PREFIX else reverse("accounts:login")
    response.set_cookie(
        name, value, max_age=YEAR_S, httponly=True, samesite="Lax", secure=request.is_secure(), path=path
    )
