"""Reading the log: the changes after a revision, and a state in bounded pieces.

An object's state is the log row of its newest revision, and rows never change. So a consistent state of any size is a
list of revisions, read at one moment, whose rows are fetched piece by piece afterwards.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import NamedTuple

from django.db import connections

from cluster.store import sql
from cluster.store.types import AllBut, Change, Single
from kube.errors import Expired
from kube.resources import Resource

# A row of the log, in the order of Change's fields.
_FIELDS = "c.revision, c.resource, c.namespace, c.name, c.uid, c.verb, c.at, c.body"
_ROWS = f"SELECT {_FIELDS} FROM cluster_change c"
_ROWS_WITH_PREVIOUS = (
    f"SELECT {_FIELDS}, p.body FROM cluster_change c"
    " LEFT JOIN cluster_change p ON p.revision = c.previous AND c.previous > 0"
)


class Snapshot(NamedTuple):
    """Which revisions the objects had when the newest one of all was `revision`."""

    revision: int
    objects: array[int]


class Life(NamedTuple):
    """When the first change of an object was that the log still knows, in ms, and the revision of the last one."""

    first: int
    newest: int


def after(
    revision: int,
    kinds: Sequence[Resource | Single] | AllBut | None = None,
    *,
    limit: int = 1000,
    until: int | None = None,
    previous: bool = False,
    using: str = "default",
) -> list[Change]:
    """Return the changes after a revision, of all kinds or of some, oldest first.

    At most `limit` of them, and none after `until`. With `previous` each carries the JSON that it replaced. Raise
    Expired when retention may have removed rows after the revision, also while they were being read: what is returned
    has no gaps.
    """
    where, params = _later(revision, kinds, until, using)
    text = f"{_ROWS_WITH_PREVIOUS if previous else _ROWS} WHERE {where} ORDER BY c.revision LIMIT %s"
    result = sql.rows(using, text, [*params, limit])
    # Asked afterwards: what retention removes between the two queries must not look like silence.
    check(revision, using=using)
    return [Change(*row) for row in result]


def reach(
    revision: int, kinds: Sequence[Resource], *, limit: int, until: int, most_bytes: int, using: str = "default"
) -> int:
    """Return up to which revision `after` may be asked for so many bytes: of JSON, with what it replaced.

    The first change counts however large it is. What retention removed has no size.
    """
    where, params = _later(revision, kinds, until, using)
    text = (
        "SELECT c.revision, LENGTH(c.body) + COALESCE(LENGTH(p.body), 0) FROM cluster_change c"
        " LEFT JOIN cluster_change p ON p.revision = c.previous AND c.previous > 0"
        f" WHERE {where} ORDER BY c.revision LIMIT %s"
    )
    reached, size = revision, 0
    for each, length in sql.rows(using, text, [*params, limit]):
        size += length
        if size > most_bytes and reached > revision:
            return reached
        reached = each
    return until


def check(revision: int, *, using: str = "default") -> None:
    """Raise Expired unless everything after the revision is still there."""
    if revision < (compacted := sql.log_row(using)[1]):
        raise Expired(f"too old resource version: {revision} ({compacted})")


def history(resource: Resource, namespace: str, name: str, *, limit: int = 100, using: str = "default") -> list[Change]:
    """Return what the log still knows of one name, newest first, also after its deletion."""
    text = (
        f"{_ROWS} WHERE c.resource = %s AND c.namespace = %s AND c.name = %s"
        # The plus keeps SQLite from walking through all rows of the kind, which are in this order.
        " ORDER BY +c.revision DESC LIMIT %s"
    )
    return [Change(*row) for row in sql.rows(using, text, [resource.id, namespace, name, limit])]


def of_names(
    resource: Resource, namespace: str, names: Sequence[str], *, after: int = 0, using: str = "default"
) -> list[Change]:
    """Return what the log still knows of some names in a namespace after a revision, oldest first."""
    text = (
        f"{_ROWS} WHERE c.resource = %s AND c.namespace = %s AND c.name IN ({sql.marks(len(names))})"
        # The plus keeps SQLite from reading all rows of the kind behind the revision instead.
        " AND +c.revision > %s"
    )
    result = sql.rows(using, text, [resource.id, namespace, *names, after])
    return [Change(*row) for row in sorted(result)]


def lives(resource: Resource, namespace: str, names: Sequence[str], *, using: str = "default") -> dict[str, Life]:
    """Return what the log still spans of each object that had one of the names, by its uid."""
    text = (
        "SELECT c.uid, MIN(c.at), MAX(c.revision) FROM cluster_change c WHERE c.resource = %s AND c.namespace = %s"
        " AND c.name IN () GROUP BY c.uid"
    )
    result = sql.rows_among(using, text, names, [resource.id, namespace])
    return {uid: Life(first, newest) for uid, first, newest in result}


def snapshot(resource: str, namespace: str = "", name: str = "", *, using: str = "default") -> Snapshot:
    """Return the revisions of a kind's objects, all from one state, in the order of namespace and name."""
    where, params = "o.resource = %s", [resource]
    if namespace:
        where, params = where + " AND o.namespace = %s", [*params, namespace]
    if name:
        where, params = where + " AND o.name = %s", [*params, name]
    text = f"SELECT o.revision FROM cluster_object o WHERE {where} ORDER BY o.namespace, o.name"
    with sql.reading(using) as revision:
        return Snapshot(revision, array("q", [row[0] for row in sql.rows(using, text, params)]))


def at(revisions: Sequence[int], *, using: str = "default") -> list[Change]:
    """Return the log rows of these revisions in their order; Expired when one is gone."""
    rows = sql.rows_among(using, f"{_ROWS} WHERE c.revision IN ()", revisions)
    changes = {row[0]: Change(*row) for row in rows}
    if len(changes) < len(revisions):
        raise Expired("The state that was being read has been replaced and forgotten meanwhile; list again.")
    return [changes[revision] for revision in revisions]


def fitting(revisions: Sequence[int], most_bytes: int, *, using: str = "default") -> int:
    """Return how many of the first revisions hold at most so many bytes of JSON together; at least one of any."""
    chunk = revisions[: sql.CHUNK]
    text = f"SELECT c.revision, LENGTH(c.body) FROM cluster_change c WHERE c.revision IN ({sql.marks(len(chunk))})"
    sizes, size = dict(sql.rows(using, text, list(chunk))), 0
    for count, revision in enumerate(chunk):
        size += sizes.get(revision, 0)
        if size > most_bytes and count:
            return count
    return len(chunk)


def _later(
    revision: int, kinds: Sequence[Resource | Single] | AllBut | None, until: int | None, using: str
) -> tuple[str, list[int | str]]:
    """Return the condition that a log row comes after a revision, and its parameters."""
    where, params = "c.revision > %s", list[int | str]([revision])
    if until is not None:
        where, params = where + " AND c.revision <= %s", [*params, until]
    if kinds is not None:
        kind, ids = _of_kinds(kinds, using)
        where, params = f"{where} AND {kind}", [*params, *ids]
    return where, params


def _of_kinds(kinds: Sequence[Resource | Single] | AllBut, using: str) -> tuple[str, list[str]]:
    """Return the condition that a log row is of certain kinds or a single object, and its parameters."""
    without = isinstance(kinds, AllBut)
    wanted = kinds.kinds if isinstance(kinds, AllBut) else kinds
    ids = [kind.id for kind in wanted if not isinstance(kind, Single)]
    singles = [kind for kind in wanted if isinstance(kind, Single)]
    # With an index SQLite would sort the whole rest of the log; PostgreSQL's statistics know better.
    several = (without or singles or len(ids) != 1) and connections[using].vendor == "sqlite"
    column = "+c.resource" if several else "c.resource"
    either = ["(c.namespace = %s AND c.name = %s AND " + column + " = %s)"] * len(singles)
    if ids or not singles:
        either.append(f"{column} {'NOT ' if without else ''}IN ({sql.marks(len(ids))})")
    named = [part for one in singles for part in (one.namespace, one.name, one.resource.id)]
    return f"({' OR '.join(either)})", [*named, *ids]
