"""What the scheduler decided about pod groups, kept beyond the groups and the log, for whoever asks later.

A row is written with the transaction that does what was decided (`cluster.consumers.consumer`), so it says neither more nor less than
was done. Rows are found newest first: by group, queue, kind, namespace, node, a part of the name, or time.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.conf import settings
from django.db import connections
from msgspec.structs import asdict

from cluster.store import sql
from cluster.writes import Decision

BATCH = 2000
MOST = 1_000_000
"""Rows that are kept at most, some 300 MB: of more the oldest go, however young they are."""
LONGEST_QUEUE = 253  # a pod group may name any text as its queue
DAY_MS = 24 * 3600 * 1000

_FIELDS = ("at", "kind", "reason", "namespace", "name", "queue", "pods", "message", "other", "nodes")
_PUT = f"INSERT INTO cluster_decision ({', '.join(_FIELDS)}) VALUES ({sql.marks(len(_FIELDS))})"
_POSITION_FUNCTION = {"sqlite": "INSTR", "postgresql": "STRPOS"}


class StoredDecision(NamedTuple):
    """A decision with the number of its row, which grows with time."""

    id: int
    decision: Decision


@dataclass(frozen=True, kw_only=True)
class Filters:
    """Which decisions to find; None or "" means any. Times are epoch ms, `until` is left out; text is a part of the group's name."""

    namespaces: str | Collection[str] | None = None
    name: str = ""
    kind: str = ""
    queue: str = ""
    node: str = ""
    text: str = ""
    since: int | None = None
    until: int | None = None

    def where(self, vendor: str) -> tuple[str, list[Any]]:
        """Return the condition and its parameters, for a database of Django's vendor name."""
        parts: list[tuple[str, list[Any]]] = [("1 = 1", [])]
        if self.namespaces is not None:
            some = [self.namespaces] if isinstance(self.namespaces, str) else sorted(self.namespaces)
            parts.append(sql.is_among("namespace", some, vendor))
        parts += [
            (f"{column} = %s", [value]) for column in ("name", "kind", "queue") if (value := getattr(self, column))
        ]
        if self.node:
            parts.append((f"{_POSITION_FUNCTION[vendor]}(nodes, %s) > 0", [f"\n{self.node} "]))
        if self.text:
            parts.append(sql.contains("name", self.text, vendor))
        if self.since is not None:
            parts.append(("at >= %s", [self.since]))
        if self.until is not None:
            parts.append(("at < %s", [self.until]))
        return " AND ".join(text for text, _ in parts), [each for _, some in parts for each in some]


def put(decisions: Sequence[Decision], *, using: str = "default") -> None:
    """Keep decisions, in their order; call it inside the transaction that does what was decided."""
    if not decisions:
        return
    rows = []
    for each in decisions:
        nodes = "".join(f"\n{node} {count}" for node, count in each.nodes) + "\n" if each.nodes else ""
        values = {**asdict(each), "queue": each.queue[:LONGEST_QUEUE], "nodes": nodes}
        rows.append([values[field] for field in _FIELDS])
    with connections[using].cursor() as cursor:
        cursor.executemany(_PUT, rows)


def find(filters: Filters, *, limit: int, offset: int = 0, using: str = "default") -> list[StoredDecision]:
    """Return the decisions that match, the newest first."""
    where, params = filters.where(sql.vendor(using))
    text = f"SELECT id, {', '.join(_FIELDS)} FROM cluster_decision WHERE {where} ORDER BY id DESC LIMIT %s OFFSET %s"
    decisions = []
    for number, *values, nodes in sql.rows(using, text, [*params, limit, offset]):
        counts = (line.rpartition(" ") for line in nodes.split("\n") if line)
        fields = dict(zip(_FIELDS, values, strict=False))
        decisions.append(
            StoredDecision(number, Decision(**fields, nodes=tuple((node, int(count)) for node, _, count in counts)))
        )
    return decisions


def count(filters: Filters, *, using: str = "default") -> dict[str, int]:
    """Return how many decisions match, by kind."""
    where, params = filters.where(sql.vendor(using))
    text = f"SELECT kind, COUNT(*) FROM cluster_decision WHERE {where} GROUP BY kind"
    return dict(sql.rows(using, text, params))


def values(column: str, filters: Filters, *, using: str = "default") -> list[str]:
    """Return the namespaces or the queues of the decisions that match, in order."""
    where, params = filters.where(sql.vendor(using))
    return [each for each in sql.values(using, "cluster_decision", column, where, params) if each]


def expire(until: float, *, now: int, using: str = "default") -> int:
    """Remove what is older than is kept, or too much, in small transactions; return how many rows.

    It ends at clock.monotonic() `until` at the latest.
    """
    where = "at < %s OR id <= (SELECT MAX(id) FROM cluster_decision) - %s ORDER BY id"
    oldest = now - settings.DECISION_DAYS * DAY_MS
    return sql.delete_until(until, using, "cluster_decision", "id", where, [oldest, MOST], BATCH)
