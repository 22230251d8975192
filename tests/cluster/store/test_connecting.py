"""A thread's connection serves one call after the other, and is opened anew when the database was away."""

from __future__ import annotations

import pytest
from django.db import OperationalError, connections

from cluster.store import sql
from cluster.store.connections import connected


@pytest.fixture
def backend(database):
    """Ask PostgreSQL which of its processes serves this thread."""
    if connections[database].vendor != "postgresql":
        pytest.skip("SQLite has no server")
    return lambda: sql.rows(database, "SELECT pg_backend_pid()")[0][0]


def test_calls_share_a_connection_that_is_opened_anew_when_it_is_gone(database, backend, django_db_blocker):
    with django_db_blocker.unblock():
        first = connected(backend)
        assert connected(backend) == first
        other = connections.create_connection(database)
        with other.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [first])
        other.close()
        second = connected(backend)
        assert second != first
        with pytest.raises(OperationalError):
            connected(sql.rows, database, "SELECT pg_terminate_backend(pg_backend_pid())")
        assert connected(backend) not in (first, second)


def test_who_falls_asleep_amid_a_transaction_holds_its_locks_for_a_while_only(database, backend, django_db_blocker):
    with django_db_blocker.unblock():
        assert connected(sql.rows, database, "SHOW idle_in_transaction_session_timeout") == [("25s",)]
        assert connected(sql.rows, database, "SHOW lock_timeout") == [("20s",)]
