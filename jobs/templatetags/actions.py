"""The table of actions for templates: `{% load actions %}`."""

from __future__ import annotations

from django import template

from jobs.rules import actions
from jobs.rules.actions import Action

register = template.Library()


@register.filter
def job_action(name: str) -> Action:
    """Return the row of an action by its name."""
    return actions.BY_NAME[name]
