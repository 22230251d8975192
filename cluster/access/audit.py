"""Who did what: one row for each change that a person made or tried to make.

Rows are written by `cluster.api` and `cluster.access.accounts`, in the transaction of the change where there is one.
What controllers, scheduler and nodes do is in the change log only. A row never holds a secret: data of Secrets, values
whose name says that they are secret (a password, token or key), and copies of whole objects in annotations are masked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from itertools import zip_longest
from typing import Any

import msgspec
from django.conf import settings
from django.db import connection, transaction
from django.db.models import QuerySet

from cluster import clock
from cluster.access.roles import Everywhere
from cluster.models import AuditEntry
from kube.meta import Object

DAY_MS = 86_400_000
MAX_CHANGES = 50
LONGEST_VALUE = 200
LONGEST = {"actor": 350, "namespace": 63, "name": 253, "message": 1000}  # of what strangers may have sent
MASK = "•••"
SECRET_NAME = re.compile(r"passw|secret(?!name)|token|credential|api[-_]?key|private[-_]?key|access[-_]?key", re.I)
COPIES = ("kubectl.kubernetes.io/last-applied-configuration",)
# The store's own marks change with every write and say nothing.
NOISE = frozenset(
    {"metadata.resourceVersion", "metadata.generation", "metadata.managedFields", "metadata.uid"}
    | {"metadata.creationTimestamp", "status"}
)


@dataclass(frozen=True, kw_only=True)
class Filters:
    """Which rows to show; None or "" means any.

    namespaces is what the reader may see (`access.namespaces(actor, "audit")`); rows of no namespace are for those who
    may see ALL. Times are epoch milliseconds, since inclusive and until exclusive.
    """

    namespaces: frozenset[str] | Everywhere
    namespace: str | None = None
    actor: str = ""
    verb: str = ""
    resource: str = ""
    name: str = ""
    outcome: str = ""
    since: int | None = None
    until: int | None = None
    text: str = ""


@dataclass(frozen=True)
class AuditPage:
    """One page of rows, newest first; `total` counts all rows that the filters let through."""

    entries: list[AuditEntry]
    total: int
    number: int
    size: int

    @property
    def pages(self) -> int:
        """How many pages there are, at least one."""
        return max(1, -(-self.total // self.size))


def entries(filters: Filters, page: int = 1, size: int = 50) -> AuditPage:
    """Return one page of the audit, newest first; pages count from 1."""
    query = _filtered(filters)
    start = (max(page, 1) - 1) * size
    return AuditPage(list(query.order_by("-at", "-id")[start : start + size]), query.count(), max(page, 1), size)


def names(filters: Filters) -> dict[str, list[str]]:
    """Return who did something and the namespaces in which, among the rows that the filters let through, in order."""
    query = _filtered(filters).order_by()
    columns = {column: query.values_list(column, flat=True).distinct() for column in ("actor", "namespace")}
    return {column: sorted({*some} - {""}) for column, some in columns.items()}


def _filtered(filters: Filters) -> QuerySet[AuditEntry]:
    query = AuditEntry.objects.all()
    if not isinstance(filters.namespaces, Everywhere):
        query = query.filter(namespace__in=filters.namespaces - {""})
    if filters.namespace is not None:
        query = query.filter(namespace=filters.namespace)
    exact = {column: getattr(filters, column) for column in ("actor", "verb", "resource", "name", "outcome")}
    query = query.filter(**{column: value for column, value in exact.items() if value})
    if filters.since is not None:
        query = query.filter(at__gte=filters.since)
    if filters.until is not None:
        query = query.filter(at__lt=filters.until)
    return query.filter(name__icontains=filters.text) if filters.text else query


@dataclass(slots=True)
class Deed:
    """A row to be written; the fields are those of `AuditEntry`."""

    actor: str
    verb: str
    resource: str
    namespace: str = ""
    name: str = ""
    uid: str = ""
    revision: int | None = None
    outcome: str = "done"
    message: str = ""
    changes: Sequence[object] = ()
    count: int = 1
    at: int = field(default_factory=clock.milliseconds)


COLUMNS = tuple(column.name for column in fields(Deed))
INSERT = f"INSERT INTO cluster_auditentry ({', '.join(COLUMNS)}) VALUES ({', '.join(['%s'] * len(COLUMNS))})"  # noqa: S608  names of our own columns


def record(deed: Deed) -> None:
    """Store one row."""
    record_many([deed])


def record_many(deeds: Sequence[Deed]) -> None:
    """Store rows; texts that strangers may have sent are cut to what the columns hold.

    Written in SQL, because thousands of rows come at once with a bulk submission.
    """
    if not deeds:
        return
    rows = []
    for deed in deeds:
        values = {column: getattr(deed, column) for column in COLUMNS}
        for column, limit in LONGEST.items():
            values[column] = _cut(_clean(values[column]), limit)
        values["changes"] = msgspec.json.encode(deed.changes).decode() if deed.changes else "[]"
        rows.append([*values.values()])
    with transaction.atomic(savepoint=False), connection.cursor() as cursor:
        cursor.executemany(INSERT, rows)


def prune(now: int) -> int:
    """Remove the rows that are older than settings.AUDIT_DAYS and return how many they were."""
    old = AuditEntry.objects.filter(at__lt=now - settings.AUDIT_DAYS * DAY_MS)
    return old.delete()[0]


def changes(old: Object, new: Object, *, secret: bool = False) -> list[dict[str, Any]]:
    """Return what an update changed, as {path, old, new} with masked and shortened values.

    secret says that the object is a Secret: none of its data is shown. A field that is absent on one side reads as None
    there. Long lists end with an item that says how many more there are.
    """
    differences = [
        {"path": _clean(path), "old": _scalar(before), "new": _scalar(after)}
        for path, before, after in _differences("", old, new, masked=False, secret=secret)
    ]
    if len(differences) > MAX_CHANGES:
        more = len(differences) - MAX_CHANGES
        differences = [*differences[:MAX_CHANGES], {"path": "", "old": None, "new": f"and {more} more"}]
    return differences


Difference = tuple[str, Any, Any]


def _differences(path: str, old: Any, new: Any, *, masked: bool, secret: bool) -> Iterator[Difference]:
    if old == new or path in NOISE:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        masked = masked or _names_a_secret(old) or _names_a_secret(new)
        for key in sorted(old.keys() | new.keys(), key=str):
            hidden = (masked and key == "value") or _is_secret(path, str(key), secret=secret)
            below = _join(path, str(key))
            before, after = old.get(key), new.get(key)
            if not hidden:
                yield from _differences(below, before, after, masked=False, secret=secret)
            elif before != after:
                yield below, before if before is None else MASK, after if after is None else MASK
    elif isinstance(old, list) and isinstance(new, list):
        for index, pair in enumerate(zip_longest(old, new)):
            yield from _differences(f"{path}[{index}]", *pair, masked=masked, secret=secret)
    else:
        yield path, _masked(path, old, secret=secret), _masked(path, new, secret=secret)


def _masked(path: str, value: Any, *, secret: bool) -> Any:
    """Return value with every secret inside it masked."""
    if isinstance(value, dict):
        named = _names_a_secret(value)
        return {
            key: MASK
            if (named and key == "value") or _is_secret(path, str(key), secret=secret)
            else _masked(_join(path, str(key)), item, secret=secret)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_masked(path, item, secret=secret) for item in value]
    return value


def _names_a_secret(value: Object) -> bool:
    """Whether value is a {name, value} pair, as in env, whose name speaks of a secret."""
    return "value" in value and SECRET_NAME.search(str(value.get("name", ""))) is not None


def _is_secret(path: str, key: str, *, secret: bool) -> bool:
    if key in COPIES:
        return True
    if secret and path == "" and key in ("data", "stringData"):
        return True
    return path in ("data", "stringData", "metadata.annotations") and SECRET_NAME.search(key) is not None


def _join(path: str, key: str) -> str:
    if not path:
        return key
    return f"{path}[{key}]" if "." in key or "/" in key else f"{path}.{key}"


def _scalar(value: Any) -> Any:
    """Return value as a short JSON scalar."""
    if isinstance(value, (dict, list)):
        value = msgspec.json.encode(value).decode()
    return _cut(_clean(value), LONGEST_VALUE) if isinstance(value, str) else value


def _clean(text: str) -> str:
    """Return text without what a database refuses: NUL and half characters."""
    return text.replace("\0", "").encode(errors="replace").decode()


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
