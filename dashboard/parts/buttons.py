"""The buttons above a page that keeps itself up to date."""

from __future__ import annotations

from django.utils.html import format_html


def no_buttons(part: str) -> str:
    """Return a part without a button, in place of one with those of an object that is gone."""
    return format_html('<div class="actions" id="{}"></div>', part)
