"""Custom resources in this process: the definitions in the store, put into the resource table.

The table is brought up to date after every change of a definition that this process makes or hears of, and when
somebody names a kind that is not in it. Asking whether it is current costs one small query. Definitions that did not
change are not read again.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import NamedTuple

from cluster import clock
from cluster.api.cluster_view import ClusterView
from cluster.store import sql, store
from kube import conversion, resources
from kube.custom import definition, kinds, naming
from kube.errors import ApiError, Cause, MethodNotAllowed, NotFound
from kube.lenient import text
from kube.meta import Object
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS as DEFINITIONS
from kube.resources import Resource

log = logging.getLogger(__name__)


class _Definition(NamedTuple):
    """A definition as last read."""

    revision: int
    resources: tuple[Resource, ...]


_lock = threading.Lock()
_definitions: dict[str, _Definition] = {}


def reload() -> None:
    """Bring the resource table up to date with the definitions in the store."""
    global _definitions
    with _lock:
        revisions = dict(
            sql.rows(store.using, "SELECT name, revision FROM cluster_object WHERE resource = %s", [DEFINITIONS.id])
        )
        if revisions == {name: read.revision for name, read in _definitions.items()}:
            return
        changed = [
            f"/{name}"
            for name, revision in revisions.items()
            if name not in _definitions or _definitions[name].revision != revision
        ]
        fresh = {
            stored.name: _Definition(stored.revision, _read(stored.object))
            for stored in store.by_keys(DEFINITIONS, changed).values()
        }
        _definitions = {
            name: fresh.get(name) or _definitions[name] for name in revisions if name in fresh or name in _definitions
        }
        resources.set_custom(one for name in sorted(_definitions) for one in _definitions[name].resources)


def look_again() -> None:
    """Bring the table up to date where that is possible: whoever looks something up there must not fail for it."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        return  # the database is not asked from an event loop
    try:
        reload()
    except Exception as error:  # the database may be away, or not for this caller
        log.debug("definitions not read: %s", error)


def namespaced() -> list[Resource]:
    """Return the kinds whose objects lie in namespaces, also those that users have added, each as it is stored."""
    look_again()
    added = (kind for kind in resources.custom() if kind.storage)
    return [kind for kind in (*resources.ALL, *added) if kind.namespaced]


def _read(crd: Object) -> tuple[Resource, ...]:
    """Return the resources of a definition; one that nobody could have created has none."""
    try:
        return tuple(kinds.resource_of(crd))
    except Exception:
        log.exception("definition %s cannot be served", text(crd, "metadata", "name"))
        return ()


def on_commit(touched: frozenset[str], revision: int) -> None:
    """Reload after a change of a definition that this process has committed."""
    if DEFINITIONS.id in touched:
        reload()


# Rules of admission for definitions


def default(crd: Object, old: Object | None, view: ClusterView) -> None:
    """Fill in a definition; a new one gets its names at once, and with them is served."""
    definition.default(crd)
    if old is None:
        crd["status"] = naming.status({**crd, "status": {}}, names_of_others(crd), clock.milliseconds())


def names_of_others(crd: Object) -> naming.GroupNames:
    """Return the names that other definitions of the same group have."""
    group, name = text(crd, "spec", "group"), text(crd, "metadata", "name")
    siblings = store.find(DEFINITIONS, text=f".{group}") if group else []
    return naming.names_in_use(group, (other.object for other in siblings if other.name != name))


def validate(crd: Object, old: Object | None, view: ClusterView) -> list[Cause]:
    """Return what is wrong with a definition."""
    return definition.check(crd, old)


def warn(crd: Object, old: Object | None, view: ClusterView) -> list[str]:
    """Return what is odd about a definition."""
    return definition.warnings(crd)


# What happens to the objects


def creation_problem(resource: Resource, view: ClusterView) -> ApiError | None:
    """Say why nothing of a custom kind can be created: its definition is gone, or on its way out."""
    crd = view.get(DEFINITIONS, "", resource.id)
    if crd is None or not definition.is_established(crd):
        return NotFound(resource=resource.id)
    if crd["metadata"].get("deletionTimestamp"):
        return MethodNotAllowed(
            "create not allowed while custom resource definition is terminating", resource=resource.id
        )
    return None


def in_storage(resource: Resource, obj: Object) -> tuple[Resource, Object]:
    """Return an object in the form in which objects of its kind are stored, and the resource of that."""
    if resource.view_of is not None:
        return resource.view_of, conversion.stored(resource, obj)
    if resource.schema is None or resource.storage:
        return resource, obj
    try:
        stored = resources.by_id(resource.id)
    except KeyError:
        raise NotFound(resource=resource.id) from None
    return stored, {**obj, "apiVersion": stored.api_version}


def without_status(resource: Resource, obj: Object) -> Object:
    """Return a new custom object without the status that it may not bring."""
    if resource.schema is None or not resource.status_subresource or not isinstance(obj, dict):
        return obj
    return {key: value for key, value in obj.items() if key != "status"}


def replaced(resource: Resource, new: Object, old: Object, subresource: str) -> Object:
    """Return what a custom object is to become: with `status` all but that is the old one's, otherwise that is."""
    if resource.schema is None or not resource.status_subresource or not isinstance(new, dict):
        return new
    if subresource != "status":
        rest = {key: value for key, value in new.items() if key != "status"}
        return {**rest, "status": old["status"]} if "status" in old else rest
    rest = {key: value for key, value in old.items() if key != "status"}
    for field in ("apiVersion", "kind", "status"):
        if field in new:
            rest[field] = new[field]
    version = text(new, "metadata", "resourceVersion") or text(old, "metadata", "resourceVersion")
    return {**rest, "metadata": {**rest["metadata"], "resourceVersion": version}}
