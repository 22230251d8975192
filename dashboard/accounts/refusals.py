"""Failed logins: the error, and the page that says why."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render


class LoginError(Exception):
    """A failed login; `message` is for the person, `code` is the status of the page with it."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.message, self.code = message, code


def refusal(
    request: HttpRequest,
    problem: str,
    code: int,
    *,
    title: str = "Not logged in",
    heading: str = "This did not log you in",
) -> HttpResponse:
    """Return the page that says why the login failed, and what to do."""
    context = {"problem": problem, "title": title, "heading": heading}
    return render(request, "registration/refused.html", context, status=code)


def passwords_are_off(request: HttpRequest) -> HttpResponse:
    """Return the page for a password where passwords are switched off."""
    return refusal(
        request,
        "Passwords are switched off here. Log in with the provider, or by a one-time link from whoever runs this server.",
        403,
    )
