"""A structural schema, and what becomes of an object under it.

The order is the API server's: unknown fields are dropped, nulls and defaults
are settled, then the object is checked: values, embedded resources, lists.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from kube import schema as schemas
from kube.custom import checking, extensions, nodes, shaping
from kube.custom.checking import MISSING
from kube.custom.nodes import Node
from kube.definitions import OBJECT_META
from kube.errors import MAX_CAUSES, Cause
from kube.meta import Object
from kube.resource import Resource


class Structural(dict[str, Any]):
    """The `openAPIV3Schema` of a version, which is translated when it is first needed."""

    @cached_property
    def node(self) -> Node:
        """The schema as a tree."""
        return nodes.compiled(self)


def of(resource: Resource) -> Structural:
    """Return the schema of a custom resource."""
    schema = resource.schema
    return schema if isinstance(schema, Structural) else Structural(schema or {})


def shape(structural: Structural, obj: Object) -> list[str]:
    """Drop the fields that the schema does not have, and fill in its defaults; return the paths of what was dropped."""
    node = structural.node
    dropped = shaping.prune(obj, node)
    shaping.drop_nulls(obj, node)
    shaping.default(obj, node)
    return dropped


def check(structural: Structural, obj: Object, old: Object | None = None) -> list[Cause]:
    """Return what is wrong with an object that was shaped; what was wrong in `old` already may stay so."""
    node = structural.node
    causes = checking.check(obj, node, "", MISSING if old is None else old)
    causes += extensions.check_embedded(obj, node)
    if old is None or not any(extensions.check_lists(old, node)):
        causes += extensions.check_lists(obj, node)
    return causes[:MAX_CAUSES]


def check_status(structural: Structural, obj: Object, old: Object) -> list[Cause]:
    """Return what is wrong with the status of an object; the rest of it is the stored one's."""
    node = structural.node.properties.get("status")
    if node is None or "status" not in obj:
        return []
    causes = checking.check(obj["status"], node, "status", old.get("status", MISSING))
    causes += extensions.check_embedded(obj["status"], node, "status")
    if not any(extensions.check_lists(old.get("status"), node)):
        causes += extensions.check_lists(obj["status"], node, "status")
    return causes[:MAX_CAUSES]


def unknown_fields(structural: Structural, obj: Object) -> list[str]:
    """Return the paths of the fields that would be dropped, and of unknown metadata."""
    unknown = shaping.prune(shaping.copied(obj), structural.node)
    metadata = obj.get("metadata")
    if isinstance(metadata, dict):
        unknown += (f"metadata.{path}" for path in schemas.unknown_fields(metadata, OBJECT_META))
    return unknown
