"""Which shards of which consumers have something to do: what beat's tick asks, to make up for lost nudges."""

from __future__ import annotations

from collections import Counter

from cluster.api import backend
from cluster.consumers import consumer
from cluster.runtime import registry
from cluster.runtime.registry import Registration
from cluster.store import sql, store
from kube.errors import Expired


class Backlog:
    """Looks for shards with work, never twice at the same stretch of the log."""

    def __init__(self) -> None:
        self._checked: dict[str, int] = {}  # cursor → the revision up to which nothing concerns it

    def of(self, queue: str, now: int) -> list[tuple[Registration, int]]:
        """Return the shards of a queue that have something to do.

        They have unread changes of their kinds, due timers or a plan on its way, have never looked, or are so far back that they
        hold up retention.
        """
        head = store.revision()
        rows = sql.rows(store.using, "SELECT name, position, holder FROM cluster_cursor")
        at = {cursor: position for cursor, position, _ in rows}
        # Another shard has made its cursor, at the log's end: what was there before is still to be looked at.
        untouched = {cursor for cursor, _, holder in rows if not holder}
        late = sql.rows(store.using, "SELECT DISTINCT cursor FROM cluster_timer WHERE due <= %s", [now])
        with_timers = {cursor.partition("/")[0] for (cursor,) in late}
        cursors = Counter(cursor.partition("/")[0] for cursor in at)
        return [
            (each, shard)
            for each in registry.running()
            for shard, cursor in enumerate(each.cursors)
            if each.queue_of(shard) == queue
            # Shards that are no more have left something that those that are look for, and so have their timers.
            and (
                cursor not in at
                or cursor in untouched
                or cursors[each.name] > each.shards
                or each.name in with_timers
                or backend.owes(each, shard, store)
                or head - at[cursor] > consumer.LAG
                or self._has_changes(cursor, each, at[cursor], head)
            )
        ]

    def _has_changes(self, cursor: str, registration: Registration, position: int, head: int) -> bool:
        start = max(position, self._checked.get(cursor, 0))
        if start >= head:
            return False
        try:
            if store.changes(start, registration.resources, limit=1, until=head):
                return True
        except Expired:
            return True  # it may have missed something, and has to look at everything anew
        self._checked[cursor] = head
        return False
