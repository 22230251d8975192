from contextlib import contextmanager

import pytest
from django.core.management import call_command
from django.db import connections

from cluster.store import Store
from volcano_ui import env

TABLES = ["log", "change", "object", "ownership", "cursor", "timer", "record", "decision"]


@contextmanager
def database_opened(alias, values):
    """A database with the cluster's tables under an alias, for the length of the block."""
    connections.databases[alias] = values
    connections.configure_settings(connections.databases)
    call_command("migrate", "cluster", database=alias, verbosity=0)
    try:
        yield
    finally:
        connections[alias].close()
        # Otherwise the thread would keep it for whoever asks for this alias next.
        del connections[alias]
        del connections.databases[alias]


def empty(alias):
    with connections[alias].cursor() as cursor:
        for table in TABLES:
            cursor.execute(f"DELETE FROM cluster_{table}")


@contextmanager
def each_database(request, tmp_path_factory, django_db_blocker, name, prepare=lambda url, alias: None):
    """The alias of a database with the cluster's tables: each back end in turn; `prepare` may name one on a server."""
    alias = f"{name}_{request.param}"
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("DATABASE_URL", raising=False)
        if request.param == "postgresql":
            patch.setenv("DATABASE_URL", url := request.getfixturevalue("postgres_url"))
        values = env.database(tmp_path_factory.mktemp(name) / "db.sqlite3")
    if request.param == "postgresql":
        values["NAME"] = prepare(url, alias) or values["NAME"]
    with django_db_blocker.unblock(), database_opened(alias, values):
        yield alias


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def database(request, tmp_path_factory, django_db_blocker):
    with each_database(request, tmp_path_factory, django_db_blocker, "contract") as alias:
        yield alias


@pytest.fixture
def store(database, django_db_blocker):
    with django_db_blocker.unblock():
        empty(database)
        yield Store(database)
