"""In which order the writes of a group go out: pure functions over their indexes in it.

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
    """Return the runs of a group, as the indexes of their writes in it.

    A write joins the first run of its sort that stands behind all earlier writes about its object; sorts come
    in the order in which each is first needed.
    """
    grouped: list[list[int]] = []
    sorts: list[tuple[str, str, str]] = []
    last: dict[ObjectKey, int] = {}
    for index, write in enumerate(writes):
        part = write.subresource if isinstance(write, Patch | Update) else ""
        sort, key = (type(write).__name__, write.resource.id, part), key_of(write)
        first = last.get(key, -1) + 1
        at = next((i for i in range(first, len(grouped)) if sorts[i] == sort), len(grouped))
        if at == len(grouped):
            grouped.append([])
            sorts.append(sort)
        grouped[at].append(index)
        last[key] = at
    return grouped


def doomed(writes: Sequence[Write]) -> frozenset[int]:
    """Return the indexes of changes to objects that the group deletes afterwards: one may be gone already."""
    deleted = {key_of(write): index for index, write in enumerate(writes) if isinstance(write, Delete)}
    return frozenset(
        index
        for index, write in enumerate(writes)
        if isinstance(write, Patch | Update) and index < deleted.get(key_of(write), -1)
    )
