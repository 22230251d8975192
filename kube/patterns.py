"""Regular expressions that people write into schemas.

They come from outside and are matched against texts from outside, so they are
RE2's: time grows with the length of the text and never with its square, and a
pattern may not take more than a fixed memory. RE2 is also what Kubernetes'
patterns are written for.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import re2

MEMORY = 1024 * 1024  # bytes for one pattern and the states of its automaton
CACHED = 256  # patterns; so all of them together have a bound too
LONGEST = 10_000  # characters of one pattern
WORK = 1024  # instructions of an automaton that take as long as one step of a check


class PatternError(ValueError):
    """A text is no regular expression."""


@lru_cache(maxsize=CACHED)
def compiled(pattern: str) -> Any:
    """Return the compiled pattern; PatternError says what is wrong with it."""
    if len(pattern) > LONGEST:
        raise PatternError(f"pattern is longer than {LONGEST} characters")
    options = re2.Options()
    options.max_mem = MEMORY
    options.log_errors = False
    try:
        return re2.compile(pattern, options=options)
    except re2.error as error:
        text = error.args[0] if error.args else b""
        raise PatternError(text.decode(errors="replace") if isinstance(text, bytes) else str(text)) from None
    except UnicodeEncodeError:
        raise PatternError("pattern is not valid Unicode text") from None


def problem(pattern: str) -> str:
    """Return what is wrong with a pattern, "" for nothing."""
    try:
        compiled(pattern)
    except PatternError as error:
        return str(error)
    return ""


def matches(pattern: str, text: str) -> bool:
    """Whether a pattern is found anywhere in text; one that does not compile is found nowhere."""
    try:
        return compiled(pattern).search(text) is not None
    except (PatternError, UnicodeEncodeError):
        return False


def size(pattern: str) -> int:
    """Return how many instructions the automaton of a pattern has, 0 when it is none."""
    try:
        return int(compiled(pattern).programsize)
    except PatternError:
        return 0


def cost(pattern: str, text: str) -> int:
    """Return how much work a match may be, in steps of a check: at worst the whole automaton for each character."""
    return 1 + len(text) * size(pattern) // WORK
