"""Error pages, which say what went wrong and what to do, in the layout of all others."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from http import HTTPStatus
from typing import Any, ParamSpec, cast

from django.conf import settings
from django.core.exceptions import DisallowedHost, RequestDataTooBig, TooManyFieldsSent
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.deprecation import MiddlewareMixin

from kube.errors import ApiError

P = ParamSpec("P")
log = logging.getLogger(__name__)

WORDS = {
    400: ("The request could not be read", "Go back, reload the page and try again."),
    403: ("You may not see or do this", "Ask an administrator for the role that it takes."),
    404: ("There is no such page", "It may have been deleted, or the address is mistyped."),
    409: ("Somebody else was quicker", "Go back, reload the page and look at what changed."),
    413: ("That was too much at once", "Go back: what you wrote is still there. Make it smaller and send it again."),
    500: ("Something broke on the server", "What happened is in the server's log. Trying again may help."),
    503: ("A part of the system is away", "Nothing was changed. Try again in a moment."),
}


def explained(view: Callable[P, HttpResponse]) -> Callable[P, HttpResponse]:
    """Let a view raise ApiError: the response is a page with its message and its code."""

    @wraps(view)
    def explaining(*args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        try:
            return view(*args, **kwargs)
        except ApiError as error:
            return answer(cast("HttpRequest", args[0]), error.code, error.message)

    return explaining


def answer(request: HttpRequest, code: int, message: str = "") -> HttpResponse:
    """Return the page for a status code."""
    return render(request, "errors/error.html", _context(code, message), status=code)


class DatabaseTrouble(MiddlewareMixin):
    """Returns a page with 503 if a view could not use the database, for example because its disk is full."""

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if not isinstance(exception, InterfaceError | OperationalError):
            return None
        log.error("%s %s: the database failed: %s", request.method, request.path, exception)
        text = render_to_string(
            "errors/error.html", {"request": request, **_context(503, f"The database failed: {exception}.")}
        )
        return HttpResponse(text, status=503)


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Return the page for a request that Django refused, with the limit or the check if the exception names it."""
    if isinstance(exception, RequestDataTooBig):
        most = (settings.DATA_UPLOAD_MAX_MEMORY_SIZE or 0) // (1024 * 1024)
        return answer(request, 413, f"What was sent is larger than {most} MB; send less at once.")
    if isinstance(exception, TooManyFieldsSent):
        return answer(request, 413, f"The form has more than {settings.DATA_UPLOAD_MAX_NUMBER_FIELDS:,} fields.")
    if isinstance(exception, DisallowedHost):
        message = "This server is not known by the name in the address; whoever runs it can add it to VOLCANO_UI_HOSTS."
        return answer(request, 400, message)
    return answer(request, 400)


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return answer(request, 403, str(exception or ""))


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    message = exception.args[0] if exception and exception.args and isinstance(exception.args[0], str) else ""
    return answer(request, 404, message)


def csrf(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Return the page for a form that is too old or from another site; it hands back a text of this site's form."""
    context = _context(403, "")
    context |= {
        "title": "This form is too old",
        "advice": "You logged in or out since it was opened, or cookies are off. Go back, reload the page and send it again.",
        "sent_text": _own_text(request),
    }
    return render(request, "errors/error.html", context, status=403)


def logged_out(request: HttpRequest) -> HttpResponse:
    """Return the page for a form that was sent after its session had ended, with the text that would be lost."""
    context = _context(401, "")
    context |= {
        "title": "You are not logged in any more",
        "advice": "Nothing was changed. Log in, open the form again and paste the text below.",
        "sent_text": _own_text(request),
    }
    return render(request, "errors/error.html", context, status=401)


def _own_text(request: HttpRequest) -> str:
    """Return the text of a form unless another site sent it, whose words must not appear on these pages."""
    own = f"{request.scheme}://{request.get_host()}"
    return request.POST.get("text", "") if request.headers.get("Origin", own) == own else ""


def server_error(request: HttpRequest) -> HttpResponse:
    """Return the page without a query, because the database may be what failed."""
    text = render_to_string("errors/error.html", {"request": request, **_context(500, "")})
    return HttpResponse(text, status=500)


def _context(code: int, message: str) -> dict[str, Any]:
    title, advice = WORDS.get(code, (HTTPStatus(code).phrase, "Go back and try again."))
    if code == 403 and message:
        advice = ""  # the message names the role that it takes
    return {"code": code, "title": title, "advice": advice, "message": message}
