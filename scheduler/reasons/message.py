"""What stands in conditions: on a pod group a sentence for people, then the text that Volcano writes; on its pods the sentence."""

from __future__ import annotations

import re

_VOLCANO = re.compile(r" \d+/\d+ tasks in gang unschedulable: ")
_CLAUSE = re.compile(r"[:;]| \(|\.(?: |$)")
_FIT = re.compile(r"^\d+ (?=of \d+ (?:pods|sub-groups) fit\b)|(?<= has room for )\d+ (?=of the \d+ pods )")


def people(message: str) -> str:
    """Return the sentence at the start of a condition's message, without Volcano's text after it."""
    return _VOLCANO.split(message, maxsplit=1)[0]


def gist(told: str) -> str:
    """Return what a sentence says of why somebody waits and of how many of his pods there are.

    That is its first clause, before the amounts, and without how many pods would fit: what changes whenever others start or end.
    """
    return _FIT.sub("", _CLAUSE.split(told, maxsplit=1)[0])
