"""Schemas of PostgreSQL that stand for databases, and what it takes to let another database be the default one."""

from contextlib import contextmanager

import pytest
from django.core.management import call_command
from django.db import connection, connections

from proof.settings import DATA
from tests.database import empty
from volcano_ui import env


@contextmanager
def new_schema(url, name):
    """The settings of an empty schema of a server's database, for the length of the block."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DATABASE_URL", url)
        outside, inside = settings_of(search_path="public"), settings_of(search_path=name)
    with default_database(outside):
        execute(f"CREATE SCHEMA {name}")
    try:
        yield inside
    finally:
        with default_database(outside):
            execute(f"DROP SCHEMA {name} CASCADE")


@contextmanager
def migrated_schema(url, name):
    """The same, with our tables."""
    with new_schema(url, name) as values:
        with default_database(values):
            call_command("migrate", verbosity=0)
        yield values


@contextmanager
def emptied_at_the_end(values):
    """Let a schema that others use after this test be the default database for the length of the block."""
    with default_database(values):
        yield
        empty("default")


def settings_of(search_path):
    connections.databases["schema"] = env.database(DATA / "unused")
    connections.configure_settings(connections.databases)
    values = connections.databases.pop("schema")
    values["OPTIONS"] = {**values["OPTIONS"], "options": f"-c search_path={search_path}"}
    return values


@contextmanager
def default_database(values):
    """Let "default" be another database, in every thread, for the length of the block."""
    usual, settings = connections["default"], connections.settings["default"]
    connections.settings["default"] = values
    connections["default"] = connections.create_connection("default")
    try:
        yield
    finally:
        connections["default"].close()
        connections.settings["default"], connections["default"] = settings, usual


def execute(text):
    with connection.cursor() as cursor:
        cursor.execute(text)
