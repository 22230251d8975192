"""What is left of the past: a cursor of an older release, and as much history as is promised."""

from __future__ import annotations

from django.conf import settings
from django.db import connection

from cluster.store import sql
from proof.invariants import Broken

STRANGER = "census/0"  # the cursor of a consumer that nobody runs any more
NAME = "history is forgotten"


def leave_a_cursor() -> None:
    """Put a cursor into the database as an older release has left it behind."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO cluster_cursor (name, position, generation, holder, held_until, handled)"
            " VALUES (%s, 0, 7, 'worker:1', 0, '[]')",
            [STRANGER],
        )


def check(now: int) -> None:
    """Raise Broken when retention, which has just run, leaves history that is old enough to go and that all consumers have read.

    Source: docs of cluster/runtime/retention.py: the cursor of a consumer that
    is no more holds nothing back.
    """
    old = now - settings.HISTORY_HOURS * 3600 * 1000
    (due,) = sql.rows("default", "SELECT MAX(revision) FROM cluster_change WHERE at < %s", [old])[0]
    (read,) = sql.rows("default", "SELECT MIN(position) FROM cluster_cursor WHERE name <> %s", [STRANGER])[0]
    compacted, promised = sql.log_row("default")[1], min(due or 0, read or 0)
    if compacted < promised:
        text = f"{compacted} is the newest revision whose past is gone, and it should be {promised} or more"
        raise Broken(NAME, promised, "the log", text)
