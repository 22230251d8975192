"""A gang's pods as a bar: `{% load gang %}`."""

from __future__ import annotations

from django import template
from django.utils.safestring import SafeString

from dashboard.parts import svg
from jobs.lifecycle.progress import Progress

register = template.Library()


@register.filter
def gang_bar(progress: Progress) -> SafeString:
    """Draw a stacked bar: succeeded, running, failed; what is left of it waits."""
    shares = [
        svg.Share(progress.succeeded, "green", "succeeded"),
        svg.Share(progress.running, "blue", "running"),
        svg.Share(progress.failed, "red", "failed"),
        svg.Share(0 if progress.is_finished else progress.waiting, "amber", "waiting"),
    ]
    return svg.stack(shares, progress.total)
