"""`{% load samples %}{% sample_cards %}` offers the samples, with a button each where one click runs them, wherever a page has no jobs to show."""

from __future__ import annotations

import secrets
from typing import Any

from django import template

from cluster.api import backend
from jobs.pages.editor import samples

register = template.Library()


@register.inclusion_tag("jobs/_samples.html", takes_context=True)
def sample_cards(context: dict[str, Any]) -> dict[str, Any]:
    """Draw a card for each sample. Each button has a token, so that a double click runs it once."""
    cards = [(sample, secrets.token_hex(8)) for sample in samples.offered(elsewhere=backend.is_mirror).values()]
    runs = bool(samples.run_at_once())
    return {
        "cards": cards,
        "runs": runs,
        "request": context.get("request"),
        "csrf_token": context.get("csrf_token", ""),
    }
