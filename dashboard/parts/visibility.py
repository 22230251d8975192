"""How much of all namespaces a reader sees: what is counted there must not pass for a count of everything."""

from __future__ import annotations

from enum import StrEnum

from cluster import access


class Visibility(StrEnum):
    """Everything, some namespaces, or none; a figure of what is not seen is no nought."""

    ALL = "all"
    OWN = "own"
    NONE = "none"


def of(visible: frozenset[str] | access.Everywhere) -> Visibility:
    """Return how much somebody sees who may list these namespaces."""
    if isinstance(visible, access.Everywhere):
        return Visibility.ALL
    return Visibility.OWN if visible else Visibility.NONE
