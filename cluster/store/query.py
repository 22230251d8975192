"""Turning a search for objects into SQL. Every filter has an index of `cluster.models.Object` behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection

ORDERS = {
    "name": "o.namespace, o.name",
    "-name": "o.namespace DESC, o.name DESC",
    "created": "o.created, o.revision",
    "-created": "o.created DESC, o.revision DESC",
    "phase": "o.phase, o.created DESC",
    "-phase": "o.phase DESC, o.created DESC",
    "queue": "o.queue, o.created DESC",
    "-queue": "o.queue DESC, o.created DESC",
    "revision": "o.revision",
    "-revision": "o.revision DESC",
    "creator": "o.creator, o.created DESC",
    "-creator": "o.creator DESC, o.created DESC",
}
PARTIAL = ("node", "owner", "trouble")  # columns whose index leaves out what is empty
GROUPS = ("phase", "queue", "namespace", "node", "creator", "owner")


@dataclass(frozen=True, kw_only=True)
class Filter:
    """What objects to find; None means any. A collection matches any of its members."""

    namespace: str | Collection[str] | None = None
    name: str | Collection[str] | None = None
    phase: str | Collection[str] | None = None
    queue: str | Collection[str] | None = None
    node: str | Collection[str] | None = None
    owner: str | Collection[str] | None = None
    creator: str | Collection[str] | None = None
    uid: str | Collection[str] | None = None
    trouble: str | Collection[str] | None = None
    text: str | None = None
    since: int | None = None

    def where(self, resource: str) -> tuple[str, list[Any]]:
        """Return the condition (without WHERE) and its parameters."""
        parts, params = ["o.resource = %s"], list[Any]([resource])
        for column in ("namespace", "name", "phase", "queue", "node", "owner", "creator", "uid", "trouble"):
            value = getattr(self, column)
            if value is None:
                continue
            values = [value] if isinstance(value, str) else list(value)
            parts.append(f"o.{column} IN ({', '.join(['%s'] * len(values))})" if values else "1 = 0")
            params.extend(values)
            if column in PARTIAL and values:
                # Without the index's own condition SQLite reads all objects of the kind instead.
                parts.append(f"NOT (o.{column} = '')")
        if self.text:
            parts.append("LOWER(o.name) LIKE %s ESCAPE '!'")
            params.append(f"%{_escaped(self.text.lower())}%")
        if self.since is not None:
            parts.append("o.created >= %s")
            params.append(self.since)
        return " AND ".join(parts), params


def _escaped(text: str) -> str:
    return text.replace("!", "!!").replace("%", "!%").replace("_", "!_")
