"""Pages are for who asked for them, at that moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.deprecation import MiddlewareMixin

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


class NoStore(MiddlewareMixin):
    """Lets neither a browser nor a proxy keep what a view answers, unless the view says otherwise.

    After a logout nobody finds a page again by the back button or on the disk. Files for browsers come from elsewhere.
    """

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        response.headers.setdefault("Cache-Control", "private, no-store")
        return response
