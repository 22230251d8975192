"""How objects of a cluster with an API of its own are changed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Unpack

from cluster.access import Actor
from cluster.access.ownership import creator_of
from cluster.api import admission, audit_trail, metadata, rights, server_fields, transaction, verbs
from cluster.api.cluster_view import ClusterView
from cluster.backend import How, PartOptions
from cluster.remote import recorder
from cluster.remote.door import server
from cluster.remote.door.calls import Calls
from cluster.store import Stored
from kube.errors import ApiError, BadRequest, Conflict, Forbidden
from kube.meta import Object
from kube.resources import Resource


def update(actor: Actor, resource: Resource, obj: Object, **options: Unpack[PartOptions]) -> Stored:
    """Replace an object; without a resourceVersion the one that the mirror has must be the newest."""
    _only_whole(resource, options)
    name = metadata.name_of(obj)
    if not name:
        raise BadRequest("name is required")

    def change(old: Stored) -> Object:
        version = obj["metadata"].get("resourceVersion") or old.version
        return {**obj, "metadata": {**obj["metadata"], "uid": old.uid, "resourceVersion": version}}

    def call(api: Calls, old: Stored, new: Object, **how: Any) -> Object:
        return api.replace(resource, new, **how)

    namespace = metadata.namespace_of(resource, obj)
    return _change(actor, "update", resource, (namespace, name), change, call, options)


def patch(
    actor: Actor,
    resource: Resource,
    namespace: str,
    name: str,
    patch: Object | list[Object],
    *,
    how: How = "merge",
    **options: Unpack[PartOptions],
) -> Stored:
    """Change parts of an object. What it would become is judged by the mirror, what becomes of it by the cluster."""
    _only_whole(resource, options)

    def change(old: Stored) -> Object:
        result = verbs.patched(resource, old.object, patch, how)
        if creator_of(result) != creator_of(old.object):
            raise Forbidden.of(resource.id, name, "who created an object is noted once and stays so")
        return result

    def call(api: Calls, old: Stored, new: Object, **more: Any) -> Object:
        return api.patch(resource, old, patch, how, **more)

    return _change(actor, "patch", resource, (namespace, name), change, call, options)


def _change(
    actor: Actor,
    verb: str,
    resource: Resource,
    key: tuple[str, str],
    change: Callable[[Stored], Object],
    call: Callable[..., Object],
    options: PartOptions,
) -> Stored:
    """Have the API change an object, once the actor may make of it what `change` says."""
    namespace, name = key
    is_dry = options.get("dry_run", False)
    target = {"metadata": {"namespace": namespace, "name": name}}
    with audit_trail.following(actor, verb, resource, target, quiet=is_dry) as step:
        old = transaction.stored(actor, verb, resource, namespace, name)
        shaped = admission.shape(resource, change(old), old.object)
        if not shaped.causes:
            server_fields.servers_fields(resource, shaped.object, old.object, "")
        wanted = None if shaped.causes else shaped.object
        rights.check_change(actor, verb, resource, old.object, wanted, "", ClusterView())
        new = shaped.checked()
        manager = options.get("manager", "")
        api = server.calls(actor)
        try:
            answer = call(api, old, new, manager=manager, dry_run=is_dry)
        except Conflict:
            # It is mirrored as it is now, so that who was refused for an old version and tries again has the newest.
            with suppress(ApiError):
                newest = api.read(resource, namespace, name)
                if newest["metadata"]["uid"] == old.uid:  # that another has its name by now is for the watch to tell
                    recorder.stored_answer(resource, newest, is_dry=False)
            raise
        stored = recorder.stored_answer(resource, answer, is_dry)
        if stored.version != old.version:
            step.done(old, stored)
    return stored


def _only_whole(resource: Resource, options: PartOptions) -> None:
    if part := options.get("subresource", ""):
        raise server.not_here(f"changing the {part} of {resource.plural}")
