"""Database connections of threads that work for an event loop and live as long as the process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from django.db import DatabaseError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

# Pages of SQLite's write-ahead log at which a commit moves it into the database file; the workers' limit is 2000.
LONG_LOG = 10_000
T = TypeVar("T")


def leave_checkpoints_to_workers() -> None:
    """Keep this process's commits on SQLite from waiting for the disk; for servers, whose clients wait for each.

    The commit that finds the write-ahead log long moves it into the database file and syncs the disk, a tenth of a
    second now and then. The workers commit as often, and nobody waits for theirs.
    """
    connection_created.connect(_lengthen_log)


def _lengthen_log(connection: BaseDatabaseWrapper, **_: Any) -> None:
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute(f"PRAGMA wal_autocheckpoint = {LONG_LOG}")


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
