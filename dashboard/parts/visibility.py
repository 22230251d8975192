"""How much of all namespaces a reader sees: a count of some namespaces must not look like a count of all."""

from __future__ import annotations

from enum import StrEnum

from cluster import access


class Visibility(StrEnum):
    """All namespaces, the reader's own, or none; for none a page shows no number, not 0."""

    ALL = "all"
    OWN = "own"
    NONE = "none"


def of(visible: frozenset[str] | access.Everywhere) -> Visibility:
    """Return how much a reader sees who may list objects in the visible namespaces."""
    if isinstance(visible, access.Everywhere):
        return Visibility.ALL
    return Visibility.OWN if visible else Visibility.NONE
