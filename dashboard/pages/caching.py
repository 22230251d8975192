"""Responses of views are for one user at one moment, and are not cached."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.utils.deprecation import MiddlewareMixin


class NoStore(MiddlewareMixin):
    """Lets neither a browser nor a proxy store a view's response, unless the view says otherwise.

    After a logout no page can be seen again by the back button or on the disk. Static files are served elsewhere.
    """

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        response.headers.setdefault("Cache-Control", "private, no-store")
        return response
