"""Objects and helpers that the tests of tables share."""

from __future__ import annotations

from kube import meta, printing
from kube.resources import Resource

NOW = meta.parse_time("2026-03-01T12:00:00Z")
SECOND, MINUTE, HOUR, DAY = 1000, 60_000, 3_600_000, 86_400_000
BORN = "2026-03-01T11:57:00Z"  # three minutes before NOW


def ago(ms: int) -> str:
    return meta.timestamp(NOW - ms)


def cells(resource: Resource, obj: dict) -> dict:
    """The row of an object, by the names of its columns."""
    titles = [column["name"] for column in printing.columns(resource)]
    return dict(zip(titles, printing.row(resource, obj, NOW), strict=True))


def shown(resource: Resource, obj: dict, *titles: str) -> list:
    row = cells(resource, obj)
    return [row[title] for title in titles]
