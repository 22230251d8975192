from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from django.db import connection
from django.db.backends.signals import connection_created

from cluster import connecting


def limit():
    """The length of the write-ahead log at which a new connection's commit moves it into the file."""
    try:
        with connection.cursor() as cursor:
            return cursor.execute("PRAGMA wal_autocheckpoint").fetchone()[0]
    finally:
        connection.close()


def test_a_server_leaves_checkpoints_to_the_workers(transactional_db):
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(limit).result() == 1000
    connecting.leave_checkpoints_to_workers()
    try:
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(limit).result() == connecting.LONG_LOG
    finally:
        connection_created.disconnect(connecting._lengthen_log)
