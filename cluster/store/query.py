"""Turning a search for objects into SQL. Every filter has an index of `cluster.models.Object` behind it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from cluster.store import sql
from kube import resources, terms
from kube.selector import Requirement

# Columns, with a minus those that run backwards. `made` is `created`, but that a later change of an object does not
# move it among those that were made in the same moment; and it is answered by an index alone.
ORDERS: dict[str, tuple[str, ...]] = {
    "name": ("namespace", "name"),
    "created": ("created", "revision"),
    "-created": ("-created", "-revision"),
    "made": ("created", "namespace", "name"),
    "-made": ("-created", "namespace", "name"),
    "revision": ("revision",),
    "-revision": ("-revision",),
    "-name": ("-namespace", "-name"),
    **{
        order: (order, "-created", "namespace", "name")
        for order in ("phase", "-phase", "queue", "-queue", "creator", "-creator")
    },
}
PARTIAL = ("node", "owner", "trouble")  # columns whose index leaves out what is empty
RARE = ("uid", "owner", "node")  # columns of which each value has few objects
GROUPS = ("phase", "queue", "namespace", "node", "creator", "owner", "trouble")
# Columns of which an index has the values in order: of every kind, but for the creators, of jobs alone.
VALUES = ("namespace", "queue", "creator")
LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")  # of a selector that `Filter.labels` takes
_POSITION_FUNCTION = {"sqlite": "INSTR", "postgresql": "STRPOS"}
_COLUMNS = ("namespace", "name", "phase", "queue", "node", "owner", "creator", "uid", "trouble")


def ordered(order: str, *, backwards: bool = False, is_sorted: bool = False) -> str:
    """Return what follows ORDER BY; `is_sorted` keeps databases from walking all objects in the order of an index."""
    columns = []
    for each in ORDERS[order]:
        name = each.removeprefix("-")
        is_down = each.startswith("-") is not backwards
        column = f"o.{name}"
        if is_sorted:  # an expression has no index
            column = f"+{column}" if name in ("created", "revision") else f"{column} || ''"
        columns.append(f"{column}{' DESC' if is_down else ''}")
    return ", ".join(columns)


FEW = 2_000  # rows that are sooner sorted than met with on a walk through all


def is_sooner_sorted(order: str, filters: Mapping[str, Any], total: int | None) -> bool:
    """Say whether what filters find is sooner sorted than met with on a walk through all in an order.

    It is where they find few, and where the index of the order lacks what they look at. `total` is how many they find;
    where nobody counted, the columns decide.
    """
    if total is None:
        return any(filters.get(each) for each in (*RARE, "queue"))
    return total <= FEW or (
        order.removeprefix("-") in ("name", "queue", "creator")
        and any(name != "namespace" and value for name, value in filters.items())
    )


class Span(NamedTuple):
    """Which rows of a search to read, perhaps from its other end."""

    limit: int
    offset: int
    backwards: bool = False

    @classmethod
    def of(cls, limit: int, offset: int, total: int | None) -> Span:
        """Return the span for a page; `total` is how many rows the search finds, None where nobody counted."""
        if total is None:
            return cls(limit, offset)
        limit = max(min(limit, total - offset), 0)
        if not limit:
            return cls(0, 0)
        if offset > total // 2:
            return cls(limit, total - offset - limit, True)
        return cls(limit, offset)


@dataclass(frozen=True, kw_only=True)
class Filter:
    """What objects to find; None means any. A collection matches any of its members.

    `since` and `until` bound when an object was made, in ms; the second is left out. `labels` are conditions with
    `LABEL_OPERATORS`, and `exit_code` is one with which a container ended: only kinds whose index has terms have these.
    `cause` is the trouble of an object or of a living pod that it controls.
    """

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
    until: int | None = None
    labels: Collection[Requirement] = ()
    exit_code: int | None = None
    cause: str | None = None

    def where(self, resource: str, vendor: str) -> tuple[str, list[Any]]:
        """Return the condition (without WHERE) and its parameters, for a database of Django's vendor name."""
        parts, params = ["o.resource = %s"], list[Any]([resource])
        for column in _COLUMNS:
            value = getattr(self, column)
            if value is None:
                continue
            values = [value] if isinstance(value, str) else list(value)
            part, more = sql.is_among(f"o.{column}", values, vendor)
            parts.append(part)
            params.extend(more)
            if column in PARTIAL and values:
                # Without the index's own condition SQLite reads all objects of the kind instead.
                parts.append(f"NOT (o.{column} = '')")
        for part, more in self._others(vendor):
            parts.append(part)
            params.extend(more)
        return " AND ".join(parts), params

    def _others(self, vendor: str) -> Iterator[tuple[str, list[Any]]]:
        """Yield the conditions that are more than a column's values."""
        if self.text:
            yield sql.contains("o.name", self.text, vendor)
        if self.since is not None:
            yield "o.created >= %s", [self.since]
        if self.until is not None:
            yield "o.created < %s", [self.until]
        for wanted in self.labels:
            if wanted.operator not in LABEL_OPERATORS:
                raise ValueError(f"labels are not searched by {wanted.operator}; use {', '.join(LABEL_OPERATORS)}")
            by_value = wanted.operator in ("In", "NotIn")
            keys = [(wanted.key, value) for value in sorted(wanted.values)] if by_value else [(wanted.key,)]
            text, params = _has_term([terms.label(*key) for key in keys], vendor)
            yield (text if wanted.operator in ("In", "Exists") else f"NOT {text}"), params
        if self.cause:
            yield _CAUSED, [self.cause, resources.PODS.id, self.cause]
        if self.exit_code is not None:
            yield _has_term([terms.exit_code(self.exit_code)], vendor)


# The pods are looked up once, by the index that has those with a trouble alone.
_CAUSED = (
    "((o.trouble = %s AND NOT (o.trouble = '')) OR o.uid IN (SELECT p.owner FROM cluster_object p"
    " WHERE p.resource = %s AND p.trouble = %s AND NOT (p.trouble = '')))"
)


def _has_term(sought: list[str], vendor: str) -> tuple[str, list[Any]]:
    """Return the condition that one of these parts is in the terms; LIKE would ignore case on SQLite."""
    return f"({' OR '.join([f'{_POSITION_FUNCTION[vendor]}(o.terms, %s) > 0'] * len(sought))})", [*sought]
