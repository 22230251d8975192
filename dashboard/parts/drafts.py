"""Drafts, which frontend/modules/drafts.js stores in the browser: the server hands back the id of one that was sent."""

from __future__ import annotations

import re

from django.http import HttpRequest

_ID = re.compile(r"[0-9a-f]{16}")


def sent(request: HttpRequest) -> str:
    """Return the id of the draft whose form was submitted, "" without one."""
    draft_id = request.POST.get("draft", "")
    return draft_id if _ID.fullmatch(draft_id) else ""
