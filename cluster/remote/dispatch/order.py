"""In which order the writes of a group go out: pure functions over their places in it.

Writes of one sort go side by side as a run, and the runs one after the other: a job's pods are marked, then
deleted, and then its status is written. Writes about one object keep their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cluster.writes import Create, Delete, Mirror, Patch, Update, Write


class ObjectKey(NamedTuple):
    """Which object a write is about."""

    resource: str
    namespace: str
    name: str


def key_of(write: Write) -> ObjectKey:
    """Return which object a write is about."""
    match write:
        case Create() | Update() | Mirror():
            metadata = write.object["metadata"]
            return ObjectKey(write.resource.id, metadata.get("namespace") or "", metadata["name"])
        case Patch() | Delete():
            return ObjectKey(write.resource.id, write.namespace, write.name)


def runs(writes: Sequence[Write]) -> list[list[int]]:
    """Return the runs of a group, as the places of their writes in it.

    A write joins the first run of its sort that stands behind all earlier writes about its object; sorts come
    in the order in which each is first needed.
    """
    found: list[list[int]] = []
    sorts: list[tuple[str, str, str]] = []
    last: dict[ObjectKey, int] = {}
    for number, write in enumerate(writes):
        part = write.subresource if isinstance(write, Patch | Update) else ""
        sort, place = (type(write).__name__, write.resource.id, part), key_of(write)
        first = last.get(place, -1) + 1
        at = next((i for i in range(first, len(found)) if sorts[i] == sort), len(found))
        if at == len(found):
            found.append([])
            sorts.append(sort)
        found[at].append(number)
        last[place] = at
    return found


def doomed(writes: Sequence[Write]) -> frozenset[int]:
    """Return the places of changes to objects that the group deletes afterwards: that one is gone already is as well."""
    deleted = {key_of(write): number for number, write in enumerate(writes) if isinstance(write, Delete)}
    return frozenset(
        number
        for number, write in enumerate(writes)
        if isinstance(write, Patch | Update) and number < deleted.get(key_of(write), -1)
    )
