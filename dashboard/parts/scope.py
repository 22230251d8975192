"""Which namespaces a list is about, of those that its reader may see, and what makes it stale."""

from __future__ import annotations

from typing import Any

from cluster import access
from dashboard.live import Watch


def namespaces_of(chosen: str, visible: frozenset[str] | access.Everywhere) -> str | frozenset[str] | None:
    """Return the store's filter for a namespace that was chosen among those visible."""
    if isinstance(visible, access.Everywhere):
        return chosen or None
    return visible & {chosen} if chosen else visible


def watches(resource: str, chosen: str, visible: frozenset[str] | access.Everywhere) -> list[Watch]:
    """Return what makes a list stale that shows one resource in these namespaces."""
    wanted: Any = namespaces_of(chosen, visible)
    if wanted is None or isinstance(wanted, str):
        return [Watch(resource, wanted)]
    return [Watch(resource, namespace) for namespace in sorted(wanted)]
