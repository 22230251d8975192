"""The schemas of everything served, by Kubernetes' names: those of `kube.definitions`, and what only an API has.

That is the lists of each kind, the schemas of custom resources, and kinds without a schema of their own.
They are OpenAPI 3.0 schemas that refer to each other.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from typing import Any

from kube import definitions as kinds
from kube.definitions import GROUP_VERSION_KIND, REFERENCE
from kube.meta import Object
from kube.resource import Resource

PATCH = f"{kinds.META}.Patch"
_TYPE_FIELDS: Object = {
    "apiVersion": {
        "description": "The version of the schema of this object, with its group: group/version.",
        "type": "string",
    },
    "kind": {"description": "The kind of this object, in CamelCase. It cannot be changed.", "type": "string"},
}


def reference(name: str) -> Object:
    """Return a schema that stands for the named definition."""
    return {"$ref": REFERENCE + name}


class Definitions:
    """All definitions that are served. Any thread may ask; what was made never changes."""

    def __init__(self) -> None:
        self._added: dict[str, Object] = {}
        self._custom: dict[str, Resource] = {}
        self._lock = threading.RLock()

    def __getitem__(self, name: str) -> Object:
        return self._added.get(name) or kinds.named(name)

    def of(self, resource: Resource) -> str:
        """Return the name of a resource's definition."""
        if resource.schema is None:
            return self.kind(resource.group, resource.version, resource.kind)
        with self._lock:
            name = f"{kinds.prefix(resource.group, resource.version)}.{resource.kind}"
            if self._custom.get(name) is not resource:
                schema = {**(resource.schema or {}), "type": "object"}
                schema["properties"] = {
                    **(schema.get("properties") or {}),
                    **_TYPE_FIELDS,
                    "metadata": {
                        "description": "Standard metadata of an object.",
                        "allOf": [reference(kinds.OBJECT_META)],
                    },
                }
                marked = _group_version_kind(resource.group, resource.version, resource.kind)
                self._added[name] = {**schema, GROUP_VERSION_KIND: [marked]}
                self._custom[name] = resource
            return name

    def kind(self, group: str, version: str, kind: str) -> str:
        """Return the name of the definition of a kind."""
        name = f"{kinds.prefix(group, version)}.{kind}"
        if not kinds.exists(name):
            self._added.setdefault(
                name, {"type": "object", GROUP_VERSION_KIND: [_group_version_kind(group, version, kind)]}
            )
        return name

    def list_of(self, resource: Resource) -> str:
        """Return the name of the definition of a list of a resource's objects."""
        item = self.of(resource)
        metadata = {"description": "Metadata of the list.", "allOf": [reference(self.meta("ListMeta"))]}
        self._added[f"{item}List"] = {
            "description": f"{resource.list_kind} is a list of {resource.kind} objects.",
            "type": "object",
            "required": ["items"],
            "properties": {
                **_TYPE_FIELDS,
                "metadata": metadata,
                "items": {"description": "The objects.", "type": "array", "items": reference(item)},
            },
            GROUP_VERSION_KIND: [_group_version_kind(resource.group, resource.version, resource.list_kind)],
        }
        return f"{item}List"

    def meta(self, kind: str) -> str:
        """Return the name of a definition of apimachinery, such as `ObjectMeta`."""
        return f"{kinds.META}.{kind}"

    def reachable(self, names: Iterable[str]) -> dict[str, Object]:
        """Return these definitions and all that they refer to, by name."""
        reached: dict[str, Object] = {}
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name not in reached:
                reached[name] = self[name]
                waiting.extend(referred(reached[name]))
        return dict(sorted(reached.items()))


definitions = Definitions()


def referred(schema: Any) -> Iterator[str]:
    """Return the names that a schema refers to."""
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key == "$ref" and isinstance(value, str):
                yield value.removeprefix(REFERENCE)
            else:
                yield from referred(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from referred(item)


def _group_version_kind(group: str, version: str, kind: str) -> Object:
    return {"group": group, "version": version, "kind": kind}
