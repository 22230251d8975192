"""Terms: what an object has any number of and is found by, its labels and exit codes, as one text in a column.

Each term stands on a line of its own between line breaks, so that a part of the text with a break before
it, and one behind it, is a term and never the middle of another. No label has a break or begins with a colon.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

_BREAK = "\n"
_EXIT = ":exit"


def join(labels: Mapping[str, str], exit_codes: Iterable[int] = ()) -> str:
    """Return the terms of an object with these labels whose containers ended with these codes; "" for none."""
    terms = sorted(f"{key}={value}" for key, value in labels.items())
    terms += [f"{_EXIT}={code}" for code in sorted(set(exit_codes))]
    return f"{_BREAK}{_BREAK.join(terms)}{_BREAK}" if terms else ""


def label(key: str, value: str | None = None) -> str:
    """Return what is part of the terms of the objects with a label: of this value, or of any."""
    return f"{_BREAK}{key}=" if value is None else f"{_BREAK}{key}={value}{_BREAK}"


def exit_code(code: int) -> str:
    """Return what is part of the terms of the objects of which a container ended with this code."""
    return label(_EXIT, str(code))
