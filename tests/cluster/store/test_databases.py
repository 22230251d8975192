"""A connection serves one call after the other, and servers leave to others what would hold up clients; what was stored means the same after a migration."""

import os
import subprocess
import sys
from importlib import import_module

import pytest
from django.apps import apps
from django.db import OperationalError, connection, connections

from cluster.store import Create, sql, store
from cluster.store.connections import LONG_LOG, connected
from kube.resources import PODS
from proof.harness.waiting import HANG_S
from tests.builders import pod
from tests.cluster.store.conftest import database_opened
from tests.tables import cases
from volcano_ui import env


@pytest.fixture
def backend(database, django_db_blocker):
    """Ask PostgreSQL which of its processes serves this thread."""
    if connections[database].vendor != "postgresql":
        pytest.skip("SQLite has no server")
    with django_db_blocker.unblock():
        yield lambda: sql.rows(database, "SELECT pg_backend_pid()")[0][0]


def test_calls_share_a_connection_that_is_opened_anew_when_it_is_gone(database, backend):
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


def test_who_falls_asleep_amid_a_transaction_holds_its_locks_for_a_while_only(database, backend):
    assert connected(sql.rows, database, "SHOW idle_in_transaction_session_timeout") == [("25s",)]
    assert connected(sql.rows, database, "SHOW lock_timeout") == [("20s",)]


SETTINGS = """
import asyncio, runpy, socket, sys, threading
import django, uvicorn
django.setup()
from django.db import connection

def show():
    with connection.cursor() as cursor:
        print(cursor.execute("PRAGMA wal_autocheckpoint").fetchone()[0])
    print(*(thread.name for thread in threading.enumerate() if thread.name == "nudge"))

async def serve(server, sockets):
    await asyncio.to_thread(show)

uvicorn.Server.serve = serve
program = sys.argv[1]
sys.argv = [program, "--fd", str(socket.create_server(("127.0.0.1", 0)).detach())]
runpy.run_module(program, run_name="__main__")
if program == "volcano_ui.celery":
    show()
"""


@cases("program, expected", {
    "web server": ("volcano_ui.web", f"{LONG_LOG}\nnudge\n"),
    "API server": ("volcano_ui.apiserver", f"{LONG_LOG}\nnudge\n"),
    "workers": ("volcano_ui.celery", "2000\n\n"),
})  # fmt: skip
def test_servers_leave_checkpoints_and_nudges_to_others(program, expected, tmp_path):
    """Where a program would begin to serve, in a process of its own, since it stays a server."""
    done = subprocess.run(
        [sys.executable, "-c", SETTINGS, program],
        env=os.environ | {"DJANGO_SETTINGS_MODULE": "volcano_ui.settings", "VOLCANO_UI_DATA": str(tmp_path)},
        capture_output=True, text=True, timeout=HANG_S, check=False,
    )  # fmt: skip
    assert done.stdout == expected, done.stderr


causes = import_module("cluster.migrations.0021_pod_causes")


def waits(phase, reason):
    return {"phase": phase, "containerStatuses": [{"name": "main", "state": {"waiting": {"reason": reason}}}]}


@pytest.mark.django_db
def test_pods_from_before_are_found_by_the_cause_that_their_page_shows(monkeypatch):
    monkeypatch.setattr(causes, "BATCH", 2)
    ended = [{"name": "main", "state": {"terminated": {"exitCode": 1}}}]
    statuses = {
        "starts": waits("Pending", "ContainerCreating"),
        "pulls": waits("Pending", "ErrImagePull"),
        "loops": waits("Running", "CrashLoopBackOff"),
        "dead": {"phase": "Running", "containerStatuses": ended},
        "failed": waits("Failed", "CrashLoopBackOff"),
        "done": {"phase": "Succeeded"},
    }
    store.write(*(Create(PODS, pod(name, status=status)) for name, status in statuses.items()))

    def troubles():
        return dict(sql.rows("default", "SELECT name, trouble FROM cluster_object WHERE resource = %s", [PODS.id]))

    expected = troubles()
    connection.cursor().execute("UPDATE cluster_object SET trouble = ''")
    for name, reason in {"pulls": "ErrImagePull", "loops": "CrashLoopBackOff", "failed": "CrashLoopBackOff"}.items():
        connection.cursor().execute("UPDATE cluster_object SET trouble = %s WHERE name = %s", [reason, name])
    for _ in range(2):  # once more changes nothing
        causes.index(apps, connection.schema_editor())
        assert troubles() == expected
    assert expected["dead"] == "ContainersEnded"
    assert [each.name for each in store.find(PODS, trouble="ImageMissing")] == ["pulls"]


def test_a_database_is_migrated_by_itself_whatever_the_default_one_holds(tmp_path, monkeypatch, django_db_blocker):
    monkeypatch.delenv("DATABASE_URL", raising=False)
    connections.databases["empty"] = env.database(tmp_path / "empty.sqlite3")
    connections.configure_settings(connections.databases)
    empty, usual = connections["empty"], connections["default"]
    connections["default"] = empty
    try:
        with django_db_blocker.unblock(), database_opened("another", env.database(tmp_path / "db.sqlite3")):
            assert "cluster_timer" in connections["another"].introspection.table_names()
            assert empty.introspection.table_names() == []
    finally:
        connections["default"] = usual
        empty.close()
        del connections["empty"], connections.databases["empty"]
