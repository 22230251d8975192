"""What would happen to an object: first by our own rules and the mirror, then by a dry run of the cluster."""

from __future__ import annotations

from cluster.access import Actor
from cluster.api import metadata
from cluster.api import preview as embedded
from cluster.api.cluster_view import ClusterView
from cluster.backend import Admitted
from cluster.remote.door import creation, server
from cluster.remote.door.calls import Calls
from cluster.store import store
from kube.errors import ApiError, Cause, Conflict
from kube.meta import Object
from kube.resources import Resource


def review(actor: Actor, resource: Resource, obj: Object, *, update: bool = False) -> Admitted:
    """Say what our rules think of an object, by the mirror, and then what the cluster says to a dry run."""
    admitted = embedded.review(actor, resource, obj, update=update)
    if admitted.causes or server.permits().refusal("update" if update else "create", resource.id):
        return admitted
    try:
        api = server.calls(actor)
        if update:
            _replace(api, resource, obj)
        else:
            api.create(resource, creation.ready(actor, resource, obj, ClusterView()), dry_run=True)
    except ApiError as error:
        if error.code >= 500:  # that the cluster does not answer is no fault of the object
            text = f"The cluster could not be asked. {error.message}"
            return Admitted(admitted.resource, admitted.object, warnings=(*admitted.warnings, text))
        causes = error.causes or (Cause(error.reason, error.message, ""),)
        return Admitted(admitted.resource, admitted.object, causes, admitted.warnings)
    return admitted


def _replace(api: Calls, resource: Resource, obj: Object) -> None:
    """Try to replace an object, whichever version was read: that it changes meanwhile is no fault of what is written."""
    namespace, name = metadata.namespace_of(resource, obj), metadata.name_of(obj)
    version = obj["metadata"].get("resourceVersion") or store.get(resource, namespace, name).version
    try:
        api.replace(resource, _at(obj, version), dry_run=True)
    except Conflict:
        newest = api.read(resource, namespace, name)["metadata"]["resourceVersion"]
        api.replace(resource, _at(obj, newest), dry_run=True)


def _at(obj: Object, version: str) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": version}}
