"""Columns and rows of any kind of object."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from kube import conversion, lenient, resources
from kube.meta import Object
from kube.printing import ages, paths, values
from kube.printing.cells import CELLS, PrintedRow
from kube.printing.descriptions import DESCRIPTIONS
from kube.resources import PODS, Column, Resource

Printer = Callable[[PrintedRow], Any]

# What a kind without columns shows; the second is a moment here and not an age.
DEFAULT = (Column("Name", path="metadata.name"), Column("Created At", cell="created_at", type="date"))
_COMPLETED = {"Succeeded": "The pod has completed successfully.", "Failed": "The pod failed."}


def columns(resource: Resource) -> list[Object]:
    """Return the `columnDefinitions` of a table of these objects."""
    custom = resource.is_custom
    return [
        {
            "name": column.name,
            # Kubernetes' own kinds write an age as text, and declare it so.
            "type": "string" if column.type == "date" and column.path and not custom else column.type,
            "format": column.format or ("name" if _names(column) else ""),
            "description": _description(resource, column, custom),
            "priority": column.priority,
        }
        for column in resource.columns or DEFAULT
    ]


def row(resource: Resource, obj: Object, now: int) -> list[Any]:
    """Return the cells of an object, one for each column; any object at all has a row, a view's as it is stored."""
    subject = PrintedRow(conversion.stored(resource, lenient.mapping(obj)), now)
    return [cell(subject) for cell in _printers(resource.columns or DEFAULT, resource.is_custom)]


def completed(resource: Resource, obj: Object) -> list[Object]:
    """Return the conditions of an object's row: a pod that has ended is complete."""
    phase = lenient.text(obj, "status", "phase") if resource == PODS else ""
    if phase not in _COMPLETED:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": _COMPLETED[phase]}]


def check(resource: Resource) -> None:
    """Raise PathError or LookupError for a column that cannot be printed."""
    _printers(resource.columns, resource.is_custom)


def _names(column: Column) -> bool:
    return column.name == "Name" and column.path == "metadata.name"


def _description(resource: Resource, column: Column, custom: bool) -> str:
    if column.description:
        return column.description
    if custom and column.name not in ("Name", "Age"):
        return f"Custom resource definition column (in JSONPath format): {_dotted(column.path)}"
    kind = "" if custom else resource.kind
    return DESCRIPTIONS.get((kind, column.name)) or DESCRIPTIONS.get(("", column.name), "")


@lru_cache(maxsize=512)
def _printers(of: tuple[Column, ...], custom: bool) -> tuple[Printer, ...]:
    return tuple(_printer(column, custom) for column in of)


def _printer(column: Column, custom: bool) -> Printer:
    if column.cell:
        if column.cell not in CELLS:
            raise LookupError(f"Column {column.name} names the cell {column.cell}, which kube.printing has not.")
        return CELLS[column.cell]
    if not custom and (keys := _plain(column.path)):
        return _built_in(column, keys)
    path = paths.parse(_dotted(column.path))
    return lambda subject: _first(path, column.type, subject)


def _dotted(path: str) -> str:
    return path if path.startswith(".") else f".{path}"


def _plain(path: str) -> tuple[str, ...]:
    """Return the keys of a path of names only, which is followed without the machinery of JSONPath."""
    return tuple(path.split(".")) if path and not path.startswith(".") and "[" not in path else ()


def _built_in(column: Column, keys: tuple[str, ...]) -> Printer:
    """Return the printer of a field of a built-in kind: what is absent reads as Go's zero value."""
    if column.type == "date":
        return lambda subject: ages.age(subject.at(*keys), subject.now)
    if column.type in ("integer", "boolean"):
        zero = 0 if column.type == "integer" else False
        return lambda subject: values.typed(column.type, subject.at(*keys), subject.now) or zero
    return lambda subject: values.text(subject.at(*keys)) or column.missing


def _first(path: paths.Operand, kind: str, subject: PrintedRow) -> Any:
    """Return what a custom resource's column shows: the first value at its path, or nothing."""
    try:
        matches = path(subject.obj)
    except paths.PathError:
        return None
    return values.typed(kind, matches[0], subject.now) if matches else None


# A column with an unknown cell fails here, at import, and not with the first request for its table.
for _resource in resources.served():
    check(_resource)
