"""Logins that come to nothing: the error, and the page that says why."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render


class LoginError(Exception):
    """A login that came to nothing; the message is for who tried, `code` the status of the page that says it."""

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
    """Return the page that says why nobody was logged in, and what to do."""
    context = {"problem": problem, "title": title, "heading": heading}
    return render(request, "registration/refused.html", context, status=code)


def passwords_are_off(request: HttpRequest) -> HttpResponse:
    """Answer somebody who tries a password where they are switched off."""
    return refusal(
        request,
        "Passwords are switched off here. Log in with the provider, or by a one-time link of who runs this server.",
        403,
    )
