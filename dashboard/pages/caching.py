"""Pages are for who asked for them, at that moment."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.utils.deprecation import MiddlewareMixin


class NoStore(MiddlewareMixin):
    """Lets neither a browser nor a proxy keep what a view answers, unless the view says otherwise.

    After a logout nobody finds a page again by the back button or on the disk. Files for browsers come from elsewhere.
    """

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        response.headers.setdefault("Cache-Control", "private, no-store")
        return response
