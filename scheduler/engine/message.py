"""The message of a pod group's condition: a sentence for people, then the text that Volcano writes."""

from __future__ import annotations

import re

_VOLCANO = re.compile(r" \d+/\d+ tasks in gang unschedulable: ")


def people(message: str) -> str:
    """Return the sentence at the start of a condition's message, without Volcano's text after it."""
    return _VOLCANO.split(message, maxsplit=1)[0]
