"""Login at an OpenID Connect provider, and connecting one's account there with the one here."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.mixins import LoginRequiredMixin
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.generic import View

from cluster.access import identities
from dashboard.accounts.refusals import LoginError, refusal
from dashboard.accounts.views import BACKEND, ID_TOKEN, address_of, private, registered_address
from kube.errors import ApiError


class ProviderView(View):
    """A page that exists if a provider is configured; errors are shown on a page of their own."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not settings.OIDC_ISSUER:
            raise Http404
        try:
            return super().dispatch(request, *args, **kwargs)
        except (LoginError, ApiError) as error:
            return refusal(request, error.message, error.code)


@private
class Begin(ProviderView):
    """Sends the browser to the provider."""

    def get(self, request: HttpRequest) -> HttpResponse:
        from dashboard.accounts import provider

        return redirect(provider.begin(request, _back(request), next=request.GET.get("next", "")))


@private
class Arrival(ProviderView):
    """Where the provider sends the browser back to."""

    def get(self, request: HttpRequest) -> HttpResponse:
        from dashboard.accounts import provider

        person, token, stored = provider.arrive(request)
        if "user" in stored:
            user_id: int = stored["user"]
            if request.user.pk != user_id:
                raise LoginError("You logged out meanwhile. Log in again, and then connect the accounts.", 400)
            identities.connect(request.user, person)
            messages.success(request, f"From now on you can log in with {settings.OIDC_NAME} as well.")
            return redirect("accounts:connection")
        user = identities.log_in(person, address_of(request))
        login(request, user, backend=BACKEND)
        # An account that the provider closed loses its access here when the session has to be renewed there.
        request.session.set_expiry(timedelta(hours=settings.OIDC_SESSION_HOURS))
        request.session[ID_TOKEN] = token
        return redirect(_within(request, stored["next"]))


@private
class Connection(LoginRequiredMixin, ProviderView):
    """Shows the provider's account with which the user logs in, or a link that connects one.

    The link leads to the provider itself, so that no other site can start this in somebody's name.
    """

    def get(self, request: HttpRequest) -> HttpResponse:
        from dashboard.accounts import provider

        subject = identities.subject_of(request.user, settings.OIDC_ISSUER)  # type: ignore[arg-type]
        address = "" if subject else provider.begin(request, _back(request), user=request.user.pk)
        context = {"subject": subject, "address": address, "issuer": settings.OIDC_ISSUER}
        return render(request, "registration/connection.html", context)


def _back(request: HttpRequest) -> str:
    return registered_address(request, "accounts:arrival")


def _within(request: HttpRequest, address: str) -> str:
    """Return an address of this site; any other becomes the first page."""
    safe = url_has_allowed_host_and_scheme(
        address, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return address if safe else reverse(settings.LOGIN_REDIRECT_URL)
