"""Migrating the database, when several `up`s of one installation may start at once.

One migrates and the others wait. Processes of the previous version go on meanwhile, and beside the new ones, so a migration
must suit them: it adds tables, indexes, and columns with a default in the database. Unused ones are dropped a version later.
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
    """The database must not be migrated: `args` are the reason, and what to do."""

    def __str__(self) -> str:
        return " ".join(self.args)


class DatabaseContent(NamedTuple):
    """The tables of a database, and its applied migrations as (application, name)."""

    tables: Collection[str]
    applied: Collection[tuple[str, str]]


def check(*, may_be_newer: bool = False) -> None:
    """Raise Refused for another program's database, and for one of a newer version, before anything is written."""
    database = connection.settings_dict
    if connection.vendor == "sqlite":
        content = _in_file(Path(database["NAME"]))
    else:
        applied = MigrationRecorder(connection).applied_migrations()
        content = DatabaseContent(connection.introspection.table_names(), applied)
    migrations = MigrationLoader(None, ignore_no_migrations=True).disk_migrations
    label = env.database_label(database)
    _refuse_strange(content, label)
    if not may_be_newer:
        _refuse_newer(content, migrations, label)


def _refuse_strange(content: DatabaseContent, label: str) -> None:
    if not content.tables or FIRST in content.applied:
        return
    names = sorted(content.tables)
    listed = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    raise Refused(
        f"The database {label} is somebody else's: it has tables ({listed}), and none of this system's. Nothing was"
        " written there.",
        "Give this system one of its own: an empty one as DATABASE_URL, or SQLite in a state directory of its own,"
        f" without DATABASE_URL: {env.up_command(DATA='/some/dir')}.",
    )


def _refuse_newer(content: DatabaseContent, migrations: Collection[tuple[str, str]], label: str) -> None:
    """Raise Refused for migrations of our applications that this version does not have; other applications may have any."""
    ours = {app for app, _ in migrations}
    unknown = sorted(f"{app}.{name}" for app, name in set(content.applied) - set(migrations) if app in ours)
    if unknown:
        raise Refused(
            f"The database {label} was written by a newer version: this one does not know {', '.join(unknown)}. Nothing"
            " was written.",
            f"Start that version again, or restore a backup from before it: {UPGRADE}.",
        )


def _in_file(path: Path) -> DatabaseContent:
    """Read SQLite's file without changing it: Django's connection would set its journal mode."""
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as file:
            tables = {
                name
                for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
                if not name.startswith("sqlite_")
            }
            has_record = MigrationRecorder.Migration._meta.db_table in tables
            applied = file.execute("SELECT app, name FROM django_migrations").fetchall() if has_record else []
    except sqlite3.Error:  # none yet, or not a database, which fails when it is opened to write
        return DatabaseContent((), ())
    return DatabaseContent(tables, applied)


def migrate() -> None:
    """Migrate the database to this version in one transaction; do nothing if it is at it."""
    # SQLite cannot rebuild tables while it checks foreign keys, nor turn that off within a transaction.
    connection.disable_constraint_checking()
    try:
        with transaction.atomic():
            call_command("migrate", interactive=False, verbosity=0)
    finally:
        connection.enable_constraint_checking()


@contextmanager
def alone() -> Iterator[None]:
    """Let one process at a time, of all that use the database, run the block.

    SQLite needs no lock: one `up` holds its state directory. PostgreSQL's lock ends with the connection, however that ends.
    """
    if connection.vendor != "postgresql":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = 0")  # another process may migrate for longer than the usual timeout
        cursor.execute("SELECT pg_advisory_lock(%s)", [LOCK])
    try:
        yield
    except BaseException:
        connection.close()
        raise
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_unlock(%s)", [LOCK])
        cursor.execute("RESET lock_timeout")
