"""The pod groups, and the sets of their keys that say what a cycle looks at.

`waiting` is looked at in every cycle, `dirty` (changed since the last one) tells which of them have changed, and those of `unreported`
that wait for nothing are looked at once, a while later. Finished work is in none, so it costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from kube.volcano.reserved_room import Reservation
from scheduler.gangs import nominations, reserved
from scheduler.gangs.evictable import Evictable
from scheduler.gangs.layout import Layout
from scheduler.records.reading import GroupView
from scheduler.records.records import Group


class Groups(dict[str, Group]):
    """Pod groups by namespace/name: those that exist, and those that pods name."""

    def __init__(self) -> None:
        super().__init__()
        self.dirty: set[str] = set()
        self.waiting: set[str] = set()
        self.unreported: dict[str, int] = {}
        """Groups of which something may not stand in their status → since when, in ms."""
        self.resting: set[str] = set()
        """Groups whose bindings were refused, and are not tried again yet."""
        self.holding: set[str] = set()
        """Groups with pods on nodes."""
        self.nominated: set[str] = set()
        """Groups for which pods were asked to end, as their status says."""
        self.reserved: dict[str, Reservation] = {}
        """Groups for which room is kept because they have waited long, as their status says."""
        self.layouts: dict[str, Layout] = {}
        self.evictable: dict[str, Evictable] = {}

    def at(self, key: str) -> Group:
        """Return the group of a key, which need not exist."""
        group = self.get(key)
        if group is None:
            namespace, _, name = key.partition("/")
            group = self[key] = Group(namespace, name)
        return group

    def note_status(self, key: str, view: GroupView | None) -> None:
        """Note what the status of a group, None of one that is gone, says of victims and of kept room."""
        _note(self.nominated, key, is_in=view is not None and nominations.is_nominated(view))
        reservation = reserved.reservation_of(view.status.conditions or ()) if view else None
        if reservation is not None:
            self.reserved[key] = reservation
        else:
            self.reserved.pop(key, None)

    def touch(self, group: Group, at: int, *, may_change_status: bool) -> None:
        """Note that a group or one of its pods has changed; is_news: so that its status may have to say something else."""
        key = group.key
        self.layouts.pop(key, None)
        self.evictable.pop(key, None)
        _note(self.holding, key, is_in=bool(group.holders))
        if group.view is None and not group.counts and not group.pending:
            del self[key]
            self.dirty.discard(key)
            self.waiting.discard(key)
            self.unreported.pop(key, None)
            return
        self.dirty.add(key)
        _note(self.waiting, key, is_in=group.is_waiting())
        if may_change_status:
            self.unreported[key] = min(at, self.unreported.get(key, at))

    def settled(self, reported: Iterable[str]) -> None:
        """Note that a cycle has seen everything, and of these groups said everything; later only changes are dirty."""
        self.dirty.clear()
        for key in reported:
            del self.unreported[key]

    def report_again(self, keys: Iterable[str]) -> None:
        """Have the next cycle say of some groups what could not be written of them."""
        self.unreported.update(dict.fromkeys(self.keys() & keys, 0))


def _note(names: set[str], name: str, *, is_in: bool) -> None:
    if is_in:
        names.add(name)
    else:
        names.discard(name)
