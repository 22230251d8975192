"""Database connections of threads that work for an event loop and live as long as the process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from django.db import DatabaseError, connections

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def connected(function: Callable[..., T], *arguments: Any) -> T:
    """Work on this thread's connection, which stays open; after an error of the database it is opened anew."""
    try:
        return function(*arguments)
    except DatabaseError:
        connections.close_all()
        raise
    finally:
        for connection in connections.all(initialized_only=True):
            if connection.vendor == "postgresql":
                # Without it a connection ends with each call: its age is for the requests of pages.
                connection.close_at = None
                connection.close_if_unusable_or_obsolete()
