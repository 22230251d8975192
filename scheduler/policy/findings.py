"""Findings about a configuration: what makes it unusable, and what has no effect here."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from enum import StrEnum
from typing import NamedTuple

MAX_FINDINGS = 100
MAX_VALUE_LENGTH = 60  # characters of a value in a message


class Severity(StrEnum):
    """How bad a finding is. With an error, no part of the configuration is used."""

    ERROR = "error"
    WARNING = "warning"


class Finding(NamedTuple):
    """A finding about a field, named by its path; line counts from 1, 0 is the text as a whole."""

    severity: Severity
    field: str
    message: str
    line: int = 0


def quoted(value: object) -> str:
    """Return a value as a message quotes it."""
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= MAX_VALUE_LENGTH else f"{text[:MAX_VALUE_LENGTH]}…"


def nearest(name: str, candidates: Iterable[str]) -> str:
    """Return ` Did you mean …?` with the candidate nearest to a name; "" where none is near."""
    folded = {each.lower(): each for each in candidates}
    found = get_close_matches(name[:MAX_VALUE_LENGTH].lower(), folded, n=1)
    return f" Did you mean {folded[found[0]]}?" if found else ""
