"""Drafts, which frontend/modules/drafts.js keeps in the browser: the server hands back the id of the one that it was sent."""

from __future__ import annotations

import re

from django.http import HttpRequest

_ID = re.compile(r"[0-9a-f]{16}")


def sent(request: HttpRequest) -> str:
    """Return the id of the draft whose form was submitted, or nothing."""
    sent = request.POST.get("draft", "")
    return sent if _ID.fullmatch(sent) else ""
