"""The buttons above a live page."""

from __future__ import annotations

from django.utils.html import format_html


def no_buttons(part: str) -> str:
    """Return a part without buttons, in place of the buttons of an object that is gone."""
    return format_html('<div class="actions" id="{}"></div>', part)
