"""What would happen to an object: the questions of forms, which change nothing."""

from __future__ import annotations

from collections.abc import Sequence

from cluster.access import Actor
from cluster.api import admission, metadata, rights, walls
from cluster.api.cluster_view import ClusterView
from cluster.backend import Admitted
from kube import errors
from kube.errors import ApiError, Forbidden, Invalid
from kube.meta import Object
from kube.resources import Resource


def review(actor: Actor, resource: Resource, obj: Object, *, update: bool = False) -> Admitted:
    """Say what would happen to an object, with causes and warnings, without changing or auditing anything.

    Whatever is wrong is a cause; what has no field of its own is reported for the whole object (field "").
    """
    try:
        shaped = admission.shape(resource, obj)
    except ApiError as error:
        causes = error.causes or (errors.Cause(error.reason, error.message, ""),)
        return Admitted(resource, obj if isinstance(obj, dict) else {}, causes)
    view = ClusterView()
    name = metadata.name_of(shaped.object)
    namespace = metadata.namespace_of(resource, shaped.object)
    old = view.get(resource, namespace, name) if name else None
    if not shaped.causes:
        denied = _rights_causes(actor, resource, shaped.object, old if update else None, view)
        if denied:  # who may not do it does not learn either what else is there
            return Admitted(resource, shaped.object, tuple(denied))
    admitted = admission.judge(shaped, old if update else None, view, warnings=True)
    causes = admitted.causes
    if old is not None and not update and shaped.object["metadata"].get("name"):
        causes = (*causes, errors.Cause("FieldValueDuplicate", f'"{name}" already exists.', "metadata.name"))
    unwalled = () if old is not None else walls.warnings(actor, resource, admitted.object, view)
    return Admitted(resource, admitted.object, causes, (*admitted.warnings, *unwalled))


def _rights_causes(
    actor: Actor, resource: Resource, obj: Object, old: Object | None, view: ClusterView
) -> Sequence[errors.Cause]:
    try:
        if old is None:
            rights.check_create(actor, resource, obj, view)
        else:
            rights.check_change(actor, "update", resource, old, obj, "", view)
    except Invalid as error:
        return error.causes
    except Forbidden as error:
        return [errors.forbidden("metadata.namespace" if resource.namespaced else "", error.message)]
    return []
