"""One transaction's writes, worked out in memory before a row is touched.

The ledger holds the rows that a batch concerns, applies each group to them and remembers what changed. It knows no
other rows: a key that was not looked up is a KeyError, never a free name. A group that fails leaves no trace and gives
its revisions back, so the log has no gaps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from cluster.store import strategy
from cluster.store.types import Stored, Verb, key_of
from cluster.writes import Create, Delete, Group, Mirror, Patch, Update, Write
from kube.errors import AlreadyExists, BadRequest, NotFound
from kube.meta import Object, is_older, parse_time
from kube.resources import Resource

_encode = msgspec.json.Encoder().encode


@dataclass(slots=True)
class Row:
    """An object inside the ledger; `body` is empty until it is written.

    A mirrored object keeps the resourceVersion that it came with. `indexed` are
    the values of `sql.INDEXED` as they are stored, () until they are.
    """

    resource: Resource
    namespace: str
    name: str
    uid: str
    created: int
    revision: int
    object: Object
    body: bytes = b""
    mirrored: bool = False
    indexed: tuple[Any, ...] = ()

    @property
    def key(self) -> str:
        return key_of(self.resource.id, self.namespace, self.name)

    def stored(self) -> Stored:
        """Return the row as callers see it."""
        return Stored(self.resource.id, self.namespace, self.name, self.uid, self.revision, self.created, self.body)


@dataclass(slots=True)
class LogEntry:
    """One future row of the log."""

    verb: Verb
    row: Row
    previous: Row | None


class KeyChange(NamedTuple):
    """What a batch makes of one key: from which stored row to which; None for nothing."""

    key: str
    before: Row | None
    after: Row | None


@dataclass(slots=True)
class Ledger:
    """Rows by key (None: known to be absent) and the entries that the groups made."""

    rows: dict[str, Row | None]
    head: int  # the revision before this batch
    now: int
    uids: Callable[[], str]
    entries: list[LogEntry] = field(default_factory=list)

    def apply(self, group: Group) -> list[Row]:
        """Do a group's writes; on an error undo them all and raise it."""
        mark = len(self.entries)
        try:
            return [self._write(write) for write in group.writes]
        except Exception:
            for entry in reversed(self.entries[mark:]):
                self.rows[entry.row.key] = entry.previous
            del self.entries[mark:]
            raise

    def _write(self, write: Write) -> Row:
        match write:
            case Create():
                return self._create(write)
            case Update():
                metadata = write.object["metadata"]
                row = self._row(write.resource, metadata.get("namespace") or "", metadata["name"])
                return self._change(row, strategy.updated(write, row.object, self.now))
            case Patch():
                row = self._row(write.resource, write.namespace, write.name)
                return self._change(row, strategy.patched(write, row.object, self.now))
            case Delete():
                row = self._row(write.resource, write.namespace, write.name)
                return self._change(row, strategy.deleted(write, row.object, self.now))
            case Mirror():
                return self._mirror(write)

    def _row(self, resource: Resource, namespace: str, name: str) -> Row:
        row = self.rows[key_of(resource.id, namespace, name)]
        if row is None:
            raise NotFound.of(resource.id, name)
        return row

    def _create(self, write: Create) -> Row:
        resource = write.resource
        metadata = write.object.get("metadata") or {}
        namespace = metadata.get("namespace") or ""
        strategy.check_namespace(resource, namespace)
        name = metadata.get("name")
        if not name:
            raise no_name(resource, metadata.get("generateName"))
        if self.rows[key_of(resource.id, namespace, name)] is not None:
            raise AlreadyExists.of(resource.id, name)
        obj = strategy.created(resource, write.object, self.now, write.uid or self.uids())
        row = Row(resource, namespace, name, obj["metadata"]["uid"], self.now, 0, obj)
        self._enter("ADDED", row, None)
        return row

    def _mirror(self, write: Mirror) -> Row:
        obj = strategy.mirrored(write)
        metadata = obj["metadata"]
        namespace, name, uid = metadata.get("namespace") or "", metadata["name"], metadata["uid"]
        created = parse_time(metadata["creationTimestamp"]) if metadata.get("creationTimestamp") else self.now
        row = Row(write.resource, namespace, name, uid, created, 0, obj, mirrored=True)
        old = self.rows[row.key]
        same = old is not None and old.uid == uid
        if write.deleted:
            if same:
                self._enter("DELETED", row, old)
            else:
                row.body = _encode(obj)
            return row
        if old is not None:
            if write.anew:
                is_current = obj == old.object
            else:
                version, stored = metadata["resourceVersion"], old.object["metadata"]["resourceVersion"]
                is_current = is_older(write.at or version, stored) or (version == stored and same)
            if is_current:
                return old
            if same:
                self._enter("MODIFIED", row, old)
                return row
            last = Row(old.resource, namespace, name, old.uid, old.created, 0, old.object, mirrored=True)
            self._enter("DELETED", last, old)
        self._enter("ADDED", row, None)
        return row

    def _change(self, row: Row, new: Object | None) -> Row:
        if new is row.object:
            return row
        gone = new is None or strategy.is_released(row.resource, new)
        obj = row.object if new is None else new
        after = Row(row.resource, row.namespace, row.name, row.uid, row.created, 0, obj)
        self._enter("DELETED" if gone else "MODIFIED", after, row)
        return after

    def _enter(self, verb: Verb, row: Row, previous: Row | None) -> None:
        # At once, so that a later write of the batch meets the new version and not the one that it replaced.
        row.revision = self.head + len(self.entries) + 1
        if not row.mirrored:
            metadata = {**row.object["metadata"], "resourceVersion": str(row.revision)}
            row.object = {**row.object, "metadata": metadata}
        self.entries.append(LogEntry(verb, row, previous))
        self.rows[row.key] = None if verb == "DELETED" else row

    def encode(self) -> None:
        """Write the JSON of all that changed."""
        for entry in self.entries:
            entry.row.body = _encode(entry.row.object)

    def turns(self) -> list[KeyChange]:
        """Return each changed key once, in the order of the first change."""
        first: dict[str, Row | None] = {}
        for entry in self.entries:
            first.setdefault(entry.row.key, entry.previous)
        return [KeyChange(key, before, self.rows[key]) for key, before in first.items()]


def no_name(resource: Resource, base: str | None) -> BadRequest | AlreadyExists:
    """Return why an object has no name, though names were generated before the writes."""
    if base:
        return AlreadyExists.generated(resource.id, base)
    return BadRequest("name or generateName is required")


def keys_of(group: Group) -> Iterable[str]:
    """Yield the keys that a group's writes concern; an object without a name has none."""
    for write in group.writes:
        match write:
            case Create() | Update() | Mirror():
                metadata = write.object.get("metadata") or {}
                if metadata.get("name"):
                    yield key_of(write.resource.id, metadata.get("namespace") or "", metadata["name"])
            case Patch() | Delete():
                yield key_of(write.resource.id, write.namespace, write.name)
