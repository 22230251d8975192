"""The last check for jobs that wait although the room that they need is idle; the scheduler's task stores it."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from cluster.models import IdleRoomCheck
from cluster.store import store

EVERY_MS = 30_000
PATIENCE_MS = 15_000
"""Shorter waits are not reported: a group that was let in has ten seconds to get its pods, and room reserved."""


class Wait(msgspec.Struct, frozen=True):
    """A pod group, by namespace/name, that could have started on idle room since some time, in epoch ms, and how many pods it needs."""

    group: str
    since: int
    pods: int


class Check(msgspec.Struct, frozen=True):
    """The outcome of a check at a time in epoch ms: how many pod groups waited, and of how many it was judged."""

    at: int
    waiting: int = 0
    judged: int = 0
    found: tuple[Wait, ...] = ()

    def waits(self, namespaces: Collection[str] | None = None) -> list[Wait]:
        """Return those that have waited for longer than a healthy scheduler takes, the longest first; in some namespaces or in all."""
        return sorted(
            (
                each
                for each in self.found
                if self.at - each.since >= PATIENCE_MS
                and (namespaces is None or each.group.partition("/")[0] in namespaces)
            ),
            key=lambda each: (each.since, each.group),
        )


_decode = msgspec.json.Decoder(Check).decode


def last() -> Check | None:
    """Return the last check; None where there was none yet."""
    row = IdleRoomCheck.objects.using(store.using).first()
    return _decode(row.found) if row else None


def save(check: Check) -> None:
    """Keep a check in place of the last one."""
    encoded = msgspec.json.encode(check).decode()
    IdleRoomCheck.objects.using(store.using).update_or_create(pk=1, defaults={"found": encoded})
