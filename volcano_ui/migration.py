"""Migrating the database, when several `up`s of one installation may start at once.

One migrates and the others wait. Those of the version before go on meanwhile, and beside the new ones, so what a migration
does must suit them: it adds tables, indexes, and columns with a default in the database. What is used no more goes a version later.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from django.core.management import call_command
from django.db import connection, transaction
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from volcano_ui import env

LOCK = 0x766F6C63  # "volc": advisory locks are numbers, which all programs of a database share
FIRST = ("cluster", "0001_store")  # what every database of ours has
UPGRADE = "docs/how-to/upgrade.md"


class Refused(Exception):
    """The database is not one to be migrated: `args` are why, and what to do."""

    def __str__(self) -> str:
        return " ".join(self.args)


class DatabaseContent(NamedTuple):
    """What is in a database: its tables, and the migrations of (application, name) that it has been through."""

    tables: Collection[str]
    applied: Collection[tuple[str, str]]


def check(*, may_be_newer: bool = False) -> None:
    """Raise Refused for somebody else's database, and for one that a newer version has written, before anything is."""
    database = connection.settings_dict
    if connection.vendor == "sqlite":
        found = _in_file(Path(database["NAME"]))
    else:
        applied = MigrationRecorder(connection).applied_migrations()
        found = DatabaseContent(connection.introspection.table_names(), applied)
    known = MigrationLoader(None, ignore_no_migrations=True).disk_migrations
    shown = env.shown_database(database)
    _refuse_strange(found, shown)
    if not may_be_newer:
        _refuse_newer(found, known, shown)


def _refuse_strange(found: DatabaseContent, shown: str) -> None:
    if not found.tables or FIRST in found.applied:
        return
    names = sorted(found.tables)
    listed = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    raise Refused(
        f"The database {shown} is somebody else's: it has tables ({listed}), and none of this system's. Nothing was"
        " written there.",
        "Give this system one of its own: an empty one as DATABASE_URL, or SQLite in a state directory of its own,"
        f" without DATABASE_URL: {env.up_command(DATA='/some/dir')}.",
    )


def _refuse_newer(found: DatabaseContent, known: Collection[tuple[str, str]], shown: str) -> None:
    """Of tables that others have put beside ours nothing is asked."""
    ours = {app for app, _ in known}
    unknown = sorted(f"{app}.{name}" for app, name in set(found.applied) - set(known) if app in ours)
    if unknown:
        raise Refused(
            f"The database {shown} was written by a newer version: this one does not know {', '.join(unknown)}. Nothing"
            " was written.",
            f"Start that version again, or restore a backup from before it: {UPGRADE}.",
        )


def _in_file(path: Path) -> DatabaseContent:
    """Read SQLite's file as it is: a connection of Django's would change how it keeps its log."""
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as file:
            tables = {
                name
                for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
                if not name.startswith("sqlite_")
            }
            has_record = MigrationRecorder.Migration._meta.db_table in tables
            applied = file.execute("SELECT app, name FROM django_migrations").fetchall() if has_record else []
    except sqlite3.Error:  # none yet, or no database: which is said by who opens it to write
        return DatabaseContent((), ())
    return DatabaseContent(tables, applied)


def migrate() -> None:
    """Bring the database up to this version, or leave it as it was; nothing where it is."""
    # SQLite cannot make tables anew while it looks after their keys, nor leave that off amid a transaction.
    connection.disable_constraint_checking()
    try:
        with transaction.atomic():
            call_command("migrate", interactive=False, verbosity=0)
    finally:
        connection.enable_constraint_checking()


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
