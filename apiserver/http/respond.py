"""Answers: objects in the wanted form, and Status for everything else (reference: kubernetes-api §2.5)."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from apiserver.http import forms
from apiserver.http.request import Request
from cluster.store import Stored
from kube.errors import ApiError
from kube.meta import Object

LONGEST_WARNING = 256  # characters; upstream cuts there too


def object(  # noqa: A001  what it answers with
    request: Request, subject: Stored | Object, status: int = 200
) -> Response:
    """Answer with one object of the requested resource, in the wanted form."""
    resource = request.info.resource
    if resource is None:
        raise ValueError("There is no resource to write an object of.")
    body = forms.write(request.form, resource, subject, request.now)
    return respond(request, body, status)


def plain(request: Request, value: Any, status: int = 200) -> Response:
    """Answer with a JSON value that is no object of the requested resource; tables have no form for it."""
    form = request.form._replace(kind="")
    return respond(request, forms.dump(form, value), status)


def respond(request: Request, body: bytes, status: int = 200) -> Response:
    """Answer with a body that is written already."""
    response = Response(body, status, media_type=None)
    response.headers["Content-Type"] = request.form.content_type
    return finish(request, response)


def finish(request: Request, response: Response) -> Response:
    """Add the warnings that came up on the way, each fit for a header: one line of ASCII, cut, its quotes escaped."""
    for text in request.warnings:
        line = " ".join(text.split())[:LONGEST_WARNING]
        quoted = "".join(c if " " <= c <= "~" else "?" for c in line).replace("\\", "\\\\").replace('"', '\\"')
        response.headers.append("Warning", f'299 - "{quoted}"')
    return response


def success(request: Request, details: Object | None = None, code: int = 200) -> Response:
    """Answer with a Status that says Success."""
    status: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details:
        status["details"] = details
    if code != 200:
        status["code"] = code
    return plain(request, status, code)


def error(request: Request | None, problem: ApiError) -> Response:
    """Answer with the Status of an error."""
    form = request.form._replace(kind="") if request else forms.PLAIN
    response = Response(forms.dump(form, problem.status()), problem.code, media_type=None)
    response.headers["Content-Type"] = form.content_type
    if problem.retry_after_s:
        response.headers["Retry-After"] = str(problem.retry_after_s)
    return finish(request, response) if request else response
