"""Which fields of an object its kind does not know, for `fieldValidation`.

The definitions decide, or the schema of a custom resource.
"""

from __future__ import annotations

import re
from typing import Any

from kube import definitions, schema
from kube.custom import structural
from kube.meta import Object
from kube.resource import Resource

MOST = schema.MAX_UNKNOWN
DIRECTIVES = ("$patch", "$retainKeys", "$setElementOrder/", "$deleteFromPrimitiveList/")

# Spellings of Volcano's own example jobs that admission accepts, where Kubernetes' schema has no place for them.
_OLDER = {
    "jobs.batch.volcano.sh": re.compile(
        r"spec\.(tasks|taskSpecs)\[\d+\]\.template\.spec\.priorityClass|spec\.volumes\[\d+\]\.claim"
    )
}


def unknown_fields(resource: Resource, obj: Object) -> list[str]:
    """Return the paths of the fields that the kind does not know, such as `spec.containers[0].imagee`."""
    if resource.schema is not None:
        return structural.unknown_fields(structural.of(resource), obj) if isinstance(obj, dict) else []
    paths = schema.unknown_fields(obj, definitions.of(resource))
    older = _OLDER.get(resource.id)
    return [path for path in paths if older is None or not older.fullmatch(path)]


def written(change: Any, how: str) -> list[Any]:
    """Return objects with the fields that a patch gives values to; how is `merge`, `strategic` or `json`.

    A field that a patch removes may be unknown: that is how one gets rid of it.
    """
    if how != "json":
        return [_without_directives(change, strategic=how == "strategic")]
    return [
        _placed(str(operation.get("path", "")), operation.get("value"))
        for operation in (change if isinstance(change, list) else ())
        if isinstance(operation, dict) and operation.get("op") in ("add", "replace")
    ]


def _without_directives(value: Any, *, strategic: bool) -> Any:
    if type(value) is dict:
        return {
            key: _without_directives(item, strategic=strategic)
            for key, item in value.items()
            if item is not None and not (strategic and key.startswith(DIRECTIVES))
        }
    if type(value) is list:
        return [_without_directives(item, strategic=strategic) for item in value]
    return value


def _placed(pointer: str, value: Any) -> Any:
    """Return an object that has value where a JSON pointer says."""
    for part in reversed(pointer.split("/")[1:]):
        if part == "-" or part.isdecimal():
            before = int(part) if part.isdecimal() and len(part) < 3 else 0
            value = [*([None] * before), value]
        else:
            value = {part.replace("~1", "/").replace("~0", "~"): value}
    return value
