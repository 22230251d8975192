"""The pod groups, and the sets of their keys that say which ones a cycle looks at.

Every cycle looks at `waiting`; `dirty` holds those that changed since the last cycle; groups of `unreported` that wait for
nothing are looked at once, a while later. Finished work is in none of these sets, so it costs nothing.
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
    """Pod groups by namespace/name: those that exist, and those that are only named by pods."""

    def __init__(self) -> None:
        super().__init__()
        self.dirty: set[str] = set()
        self.waiting: set[str] = set()
        self.unreported: dict[str, int] = {}
        """Groups whose status may be out of date → since when, in ms."""
        self.resting: set[str] = set()
        """Groups whose binds were refused and are not tried again yet."""
        self.holding: set[str] = set()
        """Groups with pods on nodes."""
        self.nominated: set[str] = set()
        """Groups for which pods were evicted, as their status says."""
        self.reserved: dict[str, Reservation] = {}
        """The reservations of groups that have waited long, as their status says."""
        self.layouts: dict[str, Layout] = {}
        self.evictable: dict[str, Evictable] = {}

    def at(self, key: str) -> Group:
        """Return the group of a key, adding it if it is not known."""
        group = self.get(key)
        if group is None:
            namespace, _, name = key.partition("/")
            group = self[key] = Group(namespace, name)
        return group

    def note_status(self, key: str, view: GroupView | None) -> None:
        """Note whether a group is nominated or has a reservation; view is None when the group is gone."""
        _note(self.nominated, key, is_in=view is not None and nominations.is_nominated(view))
        reservation = reserved.reservation_of(view.status.conditions or ()) if view else None
        if reservation is not None:
            self.reserved[key] = reservation
        else:
            self.reserved.pop(key, None)

    def touch(self, group: Group, at: int, *, may_change_status: bool) -> None:
        """Note that a group or one of its pods changed at a time (ms); may_change_status: its status may have to change too."""
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
        """Note that a cycle has looked at all groups, and that the status of the `reported` ones is up to date."""
        self.dirty.clear()
        for key in reported:
            del self.unreported[key]

    def report_again(self, keys: Iterable[str]) -> None:
        """Have the next cycle report on groups whose writes failed."""
        self.unreported.update(dict.fromkeys(self.keys() & keys, 0))


def _note(names: set[str], name: str, *, is_in: bool) -> None:
    if is_in:
        names.add(name)
    else:
        names.discard(name)
