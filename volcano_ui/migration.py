"""Migrating the database, when several `up`s of one installation may start at once.

One migrates and the others wait. Those of the version before go on meanwhile, and beside the new ones, so what a migration
does must suit them: it adds tables, indexes, and columns with a default in the database. What is used no more goes a version later.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from django.core.management import call_command
from django.db import connection

if TYPE_CHECKING:
    from collections.abc import Iterator

LOCK = 0x766F6C63  # "volc": advisory locks are numbers, which all programs of a database share


def migrate() -> None:
    """Bring the database up to this version; nothing where it is."""
    call_command("migrate", interactive=False, verbosity=0)


@contextmanager
def alone() -> Iterator[None]:
    """Let one process at a time of all that use the database do what the block does.

    SQLite's is in a state directory, which one `up` holds anyway. PostgreSQL's lock goes with the connection, however that ends.
    """
    if connection.vendor != "postgresql":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = 0")  # the one before takes as long as it takes
        cursor.execute("SELECT pg_advisory_lock(%s)", [LOCK])
    try:
        yield
    except BaseException:
        connection.close()
        raise
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_unlock(%s)", [LOCK])
        cursor.execute("RESET lock_timeout")
