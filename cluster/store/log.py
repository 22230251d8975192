"""Reading the log for those who watch: changes with what they replaced, and a state in bounded pieces.

An object's state is the log row of its newest revision, and rows never
change. So a consistent state of any size is a list of revisions, read at one
moment, whose rows are fetched piece by piece afterwards.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, NamedTuple

from cluster.store import sql
from cluster.store.store import Store, change_of, store
from kube.errors import Expired

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cluster.store.types import Change

_FIELDS = "c.revision, c.resource, c.namespace, c.name, c.uid, c.verb, c.at, c.body"
_REPLACED = (
    f"SELECT {_FIELDS}, p.body FROM cluster_change c"
    " LEFT JOIN cluster_change p ON p.revision = c.previous AND c.previous > 0"
)


class Logged(NamedTuple):
    """A change and the JSON that it replaced: None for a creation, and where history has forgotten it."""

    change: Change
    previous: bytes | None


class Snapshot(NamedTuple):
    """Which revisions the objects had when the newest one of all was `revision`."""

    revision: int
    objects: array[int]


def following(
    after: int,
    *,
    resource: str = "",
    until: int | None = None,
    limit: int = 500,
    source: Store = store,
) -> list[Logged]:
    """Return the changes after a revision, of all kinds or of one, oldest first, with what they replaced.

    Raise Expired when retention has removed rows after it.
    """
    where, params = " WHERE c.revision > %s", list[object]([after])
    if until is not None:
        where, params = where + " AND c.revision <= %s", [*params, until]
    if resource:
        where, params = where + " AND c.resource = %s", [*params, resource]
    text = f"{_REPLACED}{where} ORDER BY c.revision LIMIT %s"
    found = sql.rows(source.using, text, [*params, limit])
    # Asked afterwards: what retention removes between the two queries must not look like silence.
    check(after, source=source)
    return [Logged(change_of(row), None if row[8] is None else bytes(row[8])) for row in found]


def check(after: int, *, source: Store = store) -> None:
    """Raise Expired unless everything after the revision is still there."""
    if after < (compacted := source.compacted()):
        raise Expired(f"too old resource version: {after} ({compacted})")


def snapshot(resource: str, namespace: str = "", name: str = "", *, source: Store = store) -> Snapshot:
    """Return the revisions of a kind's objects, all from one state, in the order of namespace and name."""
    where, params = "o.resource = %s", [resource]
    if namespace:
        where, params = where + " AND o.namespace = %s", [*params, namespace]
    if name:
        where, params = where + " AND o.name = %s", [*params, name]
    text = f"SELECT o.revision FROM cluster_object o WHERE {where} ORDER BY o.namespace, o.name"
    with source.reading() as revision:
        return Snapshot(revision, array("q", [row[0] for row in sql.rows(source.using, text, params)]))


def at(revisions: Sequence[int], *, source: Store = store) -> list[Change]:
    """Return the log rows of these revisions in their order; Expired when one is gone."""
    found: dict[int, Change] = {}
    for start in range(0, len(revisions), sql.CHUNK):
        chunk = revisions[start : start + sql.CHUNK]
        text = f"SELECT {_FIELDS} FROM cluster_change c WHERE c.revision IN ({sql.marks(len(chunk))})"
        for row in sql.rows(source.using, text, list(chunk)):
            found[row[0]] = change_of(row)
    if len(found) < len(revisions):
        raise Expired("The state that was being read has been replaced and forgotten meanwhile; list again.")
    return [found[revision] for revision in revisions]
