"""Times that are often shorter than a second: `{% load job_times %}`."""

from __future__ import annotations

from django import template

from dashboard.templatetags.ui import duration

register = template.Library()


@register.filter
def short_duration(milliseconds: int | None) -> str:
    """Say a length of time: 40 ms, 1.2 s, 12 s, 3 min 4 s."""
    if milliseconds is None:
        return "–"
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    if milliseconds < 9_950:
        return f"{milliseconds / 1000:.1f} s"
    return duration(milliseconds)
