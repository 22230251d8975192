"""Whether a consumer has read the newest change of an object, so that pages can say that what they show is behind."""

from __future__ import annotations

from typing import NamedTuple

from cluster import clock
from cluster.api import backend
from cluster.runtime import division, registry
from cluster.store import sql, store

LATE_MS = 10_000
"""A lost nudge costs a second, a long plan some; beyond this something is wrong, or very much is going on."""


class Unread(NamedTuple):
    """A change that a consumer has not read, and when it was made (epoch ms)."""

    consumer: str
    since: int

    @property
    def is_late(self) -> bool:
        """Whether that has gone on for longer than it takes."""
        return clock.milliseconds() - self.since >= LATE_MS

    @property
    def late_at(self) -> int:
        """When it will have gone on for longer than it takes, in epoch ms."""
        return self.since + LATE_MS


def unread(consumer: str, key: str, revision: int) -> Unread | None:
    """Return that a consumer has not read the change of an object (by namespace/name) with a revision.

    None where it has, and where it does not run in this kind of cluster.
    """
    registration = registry.get(consumer)
    if not backend.runs(registration):
        return None
    cursors = division.read(registration, store.using)
    cursor = cursors.get(registration.cursor_of(registry.shard_of(key, registration.shards)))
    if cursor is not None and cursor.position >= revision:
        return None
    rows = sql.rows(store.using, "SELECT at FROM cluster_change WHERE revision = %s", [revision])
    return Unread(consumer, int(rows[0][0])) if rows else None
