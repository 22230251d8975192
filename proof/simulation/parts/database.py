"""The database of a world: SQLite in memory, made once and copied for each world."""

from __future__ import annotations

import functools

from django.core.management import call_command
from django.db import connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper


@functools.cache
def _empty() -> bytes:
    call_command("migrate", verbosity=0)
    content: bytes = connection.connection.serialize()
    return content


def another() -> BaseDatabaseWrapper:
    """Return another database like this one, empty; who asks for it closes it."""
    found = connections.create_connection("default")
    found.ensure_connection()
    found.connection.deserialize(_empty())
    return found


def renew() -> None:
    """Give this process an empty database."""
    empty = _empty()
    connection.connection.deserialize(empty)
    # Django knows nothing of it; no statement of before may be used again.
    connection.ensure_connection()
