"""Reading JSON that may have any shape.

Admission rules run on what a person wrote before the schema has accepted it.
These readers return something empty where the type is not the expected
one, so that every rule can run on every input and all problems are reported at
once; the wrong type itself is `kube.schema`'s to report.
"""

from __future__ import annotations

from typing import Any


def mapping(value: Any, *path: str) -> dict[str, Any]:
    """Return the mapping at path below value, or an empty one."""
    found = _at(value, path)
    return found if isinstance(found, dict) else {}


def sequence(value: Any, *path: str) -> list[Any]:
    """Return the list at path below value, or an empty one."""
    found = _at(value, path)
    return found if isinstance(found, list) else []


def text(value: Any, *path: str) -> str:
    """Return the text at path below value, or an empty one."""
    found = _at(value, path)
    return found if isinstance(found, str) else ""


def whole(value: Any, *path: str) -> int | None:
    """Return the whole number at path below value, or None."""
    found = _at(value, path)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def texts(value: Any, *path: str) -> list[str]:
    """Return the texts in the list at path below value; what is not a text is left out."""
    return [item for item in sequence(value, *path) if isinstance(item, str)]


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value
