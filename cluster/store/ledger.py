"""One transaction's writes, worked out in memory before a row is touched.

The ledger holds the rows that a batch concerns, applies each group to them
and remembers what changed. A group that fails leaves no trace. Revisions are
given out only when everything is known, so the log has no gaps.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from cluster.store import rules
from cluster.store.types import Create, Delete, Patch, Stored, Update, key_of
from kube.errors import AlreadyExists, BadRequest, NotFound

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cluster.store.types import Group, Verb, Write
    from kube.meta import Object
    from kube.resources import Resource

_encode = msgspec.json.Encoder().encode


@dataclass(slots=True)
class Row:
    """An object inside the ledger; `revision` is 0 until the ledger is written."""

    resource: Resource
    namespace: str
    name: str
    uid: str
    created: int
    revision: int
    object: Object
    body: bytes = b""

    @property
    def key(self) -> str:
        return key_of(self.resource.id, self.namespace, self.name)

    def stored(self) -> Stored:
        """Return the row as callers see it."""
        return Stored(
            self.resource.id, self.namespace, self.name, self.uid, self.revision, self.created, self.body
        )


@dataclass(slots=True)
class Entry:
    """One future row of the log."""

    verb: Verb
    row: Row
    previous: Row | None


@dataclass(slots=True)
class Ledger:
    """Rows by key (None: known to be absent) and the entries that the groups made."""

    rows: dict[str, Row | None]
    now: int
    entries: list[Entry] = field(default_factory=list)

    def apply(self, group: Group) -> list[Row]:
        """Do a group's writes; on an error undo them all and raise it."""
        mark = len(self.entries)
        try:
            return [self._write(write) for write in group.writes]
        except Exception:
            self._undo(mark)
            raise

    def _undo(self, mark: int) -> None:
        for entry in reversed(self.entries[mark:]):
            self.rows[entry.row.key] = entry.previous
        del self.entries[mark:]

    def _write(self, write: Write) -> Row:
        match write:
            case Create():
                return self._create(write)
            case Update():
                metadata = write.object["metadata"]
                row = self._row(write.resource, metadata.get("namespace") or "", metadata["name"])
                return self._change(row, rules.updated(write, row.object, self.now))
            case Patch():
                row = self._row(write.resource, write.namespace, write.name)
                return self._change(row, rules.patched(write, row.object, self.now))
            case Delete():
                row = self._row(write.resource, write.namespace, write.name)
                return self._change(row, rules.deleted(write, row.object, self.now))

    def _row(self, resource: Resource, namespace: str, name: str) -> Row:
        row = self.rows.get(key_of(resource.id, namespace, name))
        if row is None:
            raise NotFound.of(resource.id, name)
        return row

    def _create(self, write: Create) -> Row:
        resource = write.resource
        metadata = write.object.get("metadata") or {}
        namespace = metadata.get("namespace") or ""
        rules.check_namespace(resource, namespace)
        name = metadata.get("name") or self._generated(resource, namespace, metadata.get("generateName"))
        if self.rows.get(key_of(resource.id, namespace, name)) is not None:
            raise AlreadyExists.of(resource.id, name)
        obj = rules.created(resource, write.object, self.now, write.uid)
        obj["metadata"]["name"] = name
        row = Row(resource, namespace, name, obj["metadata"]["uid"], self.now, 0, obj)
        self._enter("ADDED", row, None)
        return row

    def _generated(self, resource: Resource, namespace: str, base: str | None) -> str:
        if not base:
            raise BadRequest("name or generateName is required")
        return rules.generated_name(
            resource, base, lambda name: self.rows.get(key_of(resource.id, namespace, name)) is not None
        )

    def _change(self, row: Row, new: Object | None) -> Row:
        if new is row.object:
            return row
        gone = new is None or rules.is_released(row.resource, new)
        obj = row.object if new is None else new
        after = Row(row.resource, row.namespace, row.name, row.uid, row.created, 0, obj)
        self._enter("DELETED" if gone else "MODIFIED", after, row)
        return after

    def _enter(self, verb: Verb, row: Row, previous: Row | None) -> None:
        self.entries.append(Entry(verb, row, previous))
        self.rows[row.key] = None if verb == "DELETED" else row

    def number(self, first: int) -> None:
        """Give the entries the revisions from `first` on and encode their bodies."""
        for revision, entry in enumerate(self.entries, first):
            row = entry.row
            metadata = {**row.object["metadata"], "resourceVersion": str(revision)}
            row.object = {**row.object, "metadata": metadata}
            row.revision = revision
            row.body = _encode(row.object)

    def final(self) -> Iterable[tuple[str, Row | None]]:
        """Each changed key once, with the row it ends as (None: deleted)."""
        return {entry.row.key: self.rows[entry.row.key] for entry in self.entries}.items()


def keys_of(group: Group) -> Iterable[str]:
    """The keys that a group's writes concern; a generated name has none yet."""
    for write in group.writes:
        match write:
            case Create() | Update():
                metadata = write.object.get("metadata") or {}
                if metadata.get("name"):
                    yield key_of(write.resource.id, metadata.get("namespace") or "", metadata["name"])
            case Patch() | Delete():
                yield key_of(write.resource.id, write.namespace, write.name)
