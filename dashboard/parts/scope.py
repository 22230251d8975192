"""The namespaces that a list covers, of those that its reader may see, and the changes that make it stale."""

from __future__ import annotations

from typing import Any

from cluster import access
from dashboard.live import Watch


def namespaces_of(chosen: str, visible: frozenset[str] | access.Everywhere) -> str | frozenset[str] | None:
    """Return the store's filter for a namespace ("" for all), limited to the visible ones."""
    if isinstance(visible, access.Everywhere):
        return chosen or None
    return visible & {chosen} if chosen else visible


def watches(resource: str, chosen: str, visible: frozenset[str] | access.Everywhere) -> list[Watch]:
    """Return the changes that make a list of one resource in these namespaces stale."""
    namespaces: Any = namespaces_of(chosen, visible)
    if namespaces is None or isinstance(namespaces, str):
        return [Watch(resource, namespaces)]
    return [Watch(resource, namespace) for namespace in sorted(namespaces)]
