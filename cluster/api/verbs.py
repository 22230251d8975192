"""What becomes of a change in the embedded cluster, verb by verb; how new objects come in is in `cluster.api.creation`.

A change passes, in this order: the right (`cluster.api.rights`), the admission chain (`cluster.api.admission`), the
store, the audit. The last two, and the rules that look at the cluster, share one database transaction, so nothing is
half done. A change that is denied or refused leaves an audit row too, but nothing else. With `dry_run` all of it
happens and is rolled back, audit included.

Errors are `ApiError`; an Invalid carries its causes with field paths.
`review` is for forms: it reports what is wrong and raises nothing (`cluster.api.preview`).

Controllers, scheduler and nodes write as the system, past all of this: what
they do follows from what people did, and is not audited.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, Unpack

from cluster import access, clock
from cluster.access import Actor
from cluster.access.ownership import creator_of
from cluster.api import (
    admission,
    audit_trail,
    bulk,
    creation,
    custom_kinds,
    metadata,
    rights,
    server_fields,
    transaction,
)
from cluster.api.cluster_view import ClusterView
from cluster.api.creation import Warn
from cluster.backend import DeleteOptions, How, Options, Part, PartOptions
from cluster.store import Delete, Stored, Update, store
from cluster.writes import Propagation
from kube import apply as applying
from kube import conversion, definitions, errors
from kube import patch as patches
from kube.errors import ApiError, BadRequest, Conflict, Invalid, RequestEntityTooLarge, ServiceUnavailable
from kube.meta import Object
from kube.resources import Resource

# Two people who edit a custom resource never overwrite each other unknowingly (§2.4).
NO_VERSION = errors.Cause(
    "FieldValueInvalid", "Invalid value: 0x0: must be specified for an update", "metadata.resourceVersion"
)
REJECTED = "the server rejected our request due to an error in our request"
UNNAMED = "volcano-ui"  # manages what the pages change
WAYS: tuple[tuple[Propagation, str], ...] = (("Foreground", "foregroundDeletion"), ("Orphan", "orphan"))


class Replacement(NamedTuple):
    """How an object is changed: what it becomes, under which verb that needs a right, and who manages it then.

    manager "" stands for UNNAMED, and None means that `make` sees to the managedFields itself.
    """

    verb: str
    make: Callable[[Object], Object]
    subresource: Part = ""
    manager: str | None = ""
    dry_run: bool = False
    warn: Warn | None = None


def update(actor: Actor, resource: Resource, obj: Object, **options: Unpack[PartOptions]) -> Stored:
    """Replace an object. A resourceVersion in it must be the stored one; without one the last writer wins.

    Where the managers of its fields are known, what changes is manager's then (UNNAMED without one).
    """
    name = metadata.name_of(obj) if isinstance(obj, dict) else ""
    if not name:
        raise BadRequest("name is required")
    namespace = metadata.namespace_of(resource, obj)

    def make(old: Object) -> Object:
        if resource.schema is not None and not obj["metadata"].get("resourceVersion"):
            raise Invalid.of(resource.group_kind, name, [NO_VERSION])
        return obj

    return _change(actor, resource, namespace, name, Replacement("update", make, **options))


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
    """Change parts of an object: by a JSON merge patch, a JSON patch (a list) or a strategic merge patch.

    A patch that cannot be done is Invalid (§2.4). Managers are as in `update`.
    """
    change = Replacement("patch", lambda old: patched(resource, old, patch, how), **options)
    return _change(actor, resource, namespace, name, change)


def patched(resource: Resource, old: Object, change: Object | list[Object], how: How) -> Object:
    """Return what a patch makes of an object; Invalid when it cannot be done."""
    try:
        if how == "json":
            if not isinstance(change, list):
                raise BadRequest("A JSON patch is a list of operations.")
            return patches.json_patch(old, change)
        if not isinstance(change, dict):
            raise BadRequest("A merge patch is a mapping of fields.")
        if how == "merge":
            return patches.merge(old, change)
        return patches.strategic(old, change, definitions.of(resource))
    except patches.PatchTooLargeError as error:
        raise RequestEntityTooLarge(str(error)) from None
    except patches.PatchError as error:
        raise Invalid(f"{REJECTED}: {error.detail}", noted=f"{REJECTED}: {error}") from None


def scale(
    actor: Actor,
    verb: str,
    resource: Resource,
    namespace: str,
    name: str,
    change: Callable[[Object], Object],
    **options: Unpack[Options],
) -> Stored:
    """Change how many replicas an object wants, which asks for the right to its `scale`; `change` does it."""
    return _change(actor, resource, namespace, name, Replacement(verb, change, "scale", **options))


def apply(
    actor: Actor,
    resource: Resource,
    namespace: str,
    name: str,
    config: Object,
    *,
    manager: str,
    force: bool = False,
    subresource: Part = "",
    dry_run: bool = False,
    warn: Warn | None = None,
) -> tuple[Stored, bool]:
    """Lay what a manager wants over an object, as `kube.apply.apply` does; say whether that created it.

    It takes the right to patch, and to create an object that is not there.
    Conflict where others manage what would change, unless forced.
    """

    def make(old: Object | None) -> Object:
        def complete(obj: Object) -> Object:
            return admission.completed(resource, obj, old or {}, ClusterView(), subresource)

        return applying.apply(
            old,
            wish,
            resource,
            manager=manager,
            force=force,
            subresource=subresource,
            complete=complete,
            now=clock.milliseconds(),
        )

    with transaction.change(actor, "apply", resource, namespace, name, dry_run=dry_run) as step:
        wish = admission.plain(resource, config)
        key = f"{namespace if resource.namespaced else ''}/{name}"
        if not subresource and key not in store.by_keys(resource, [key]):
            stored = _apply_new(actor, resource, namespace, name, make, warn)
            step.done(None, stored)
            return server_fields.as_dry(stored, None) if dry_run else stored, True
        change = Replacement("patch", make, subresource, None, dry_run, warn)
        return _change_once(actor, resource, namespace, name, change, step), False


def _apply_new(
    actor: Actor,
    resource: Resource,
    namespace: str,
    name: str,
    make: Callable[[Object | None], Object],
    warn: Warn | None,
) -> Stored:
    right_namespace = rights.right_namespace(resource, namespace, name)
    access.require(actor, "patch", resource, right_namespace, name, owner=actor.name)
    access.require(actor, "create", resource, right_namespace, name, owner=actor.name)
    new = make(None)
    if uid := new["metadata"].get("uid"):
        detail = f"the provided object specified uid {errors.quoted(uid)}"
        raise Conflict.of(resource.id, name, f"uid mismatch: {detail}, and no existing object was found")
    return store.write(creation.judged(actor, creation.shaped(actor, resource, new), ClusterView(), warn, None))[0]


def _change(actor: Actor, resource: Resource, namespace: str, name: str, change: Replacement) -> Stored:
    """Turn the stored object into another one."""
    with transaction.change(actor, change.verb, resource, namespace, name, dry_run=change.dry_run) as step:
        return _change_once(actor, resource, namespace, name, change, step)


def _change_once(
    actor: Actor, resource: Resource, namespace: str, name: str, change: Replacement, step: audit_trail.AuditedChange
) -> Stored:
    verb, subresource = change.verb, change.subresource
    old = transaction.stored(actor, verb, resource, namespace, name)
    view = ClusterView()
    part: Literal["", "status", "finalize"] = "" if subresource == "scale" else subresource
    before = conversion.converted(resource, old.object)
    result = _changed(actor, resource, before, change)
    shaped = admission.shape(resource, custom_kinds.replaced(resource, result, before, part), before, part)
    if not shaped.causes:
        server_fields.servers_fields(resource, shaped.object, old.object, part)
    wanted = None if shaped.causes else shaped.object
    rights.check_change(actor, verb, resource, old.object, wanted, subresource, view)
    server_fields.check_fresh(resource, old, shaped.object)
    if part == "status":
        obj = admission.judge_status(shaped, before, view).checked()
    elif part:
        obj = shaped.checked()
    else:
        obj = creation.admitted(admission.judge(shaped, before, view), before, view, change.warn)
    if change.manager is None and subresource != "finalize":
        obj["metadata"]["managedFields"] = result["metadata"].get("managedFields", [])
    elif subresource != "finalize":
        manager, now = change.manager or UNNAMED, clock.milliseconds()
        obj = applying.track(before, obj, resource, manager=manager, subresource=subresource, now=now)
    obj["metadata"]["resourceVersion"] = old.version
    managed = obj["metadata"].get("managedFields") if part == "status" else None
    stored = store.write(Update(*custom_kinds.in_storage(resource, obj), part, managed))[0]
    if stored.revision != old.revision:
        step.done(old, stored)
    return server_fields.as_dry(stored, old) if change.dry_run else stored


def _changed(actor: Actor, resource: Resource, old: Object, change: Replacement) -> Object:
    """Return what a change makes of an object; why it cannot be made is for those who may read it."""
    try:
        return change.make(old)
    except ApiError:
        namespace, name = rights.right_namespace_of(resource, old), metadata.name_of(old)
        if not access.allowed(actor, "get", resource, namespace, owner=creator_of(old)):
            access.require(actor, change.verb, resource, namespace, name)
        raise


def delete(actor: Actor, resource: Resource, namespace: str, name: str, **how: Unpack[DeleteOptions]) -> Stored:
    """Delete an object; what is returned is its last state, or the one in which it waits to go."""
    with transaction.change(actor, "delete", resource, namespace, name, dry_run=how.get("dry_run", False)) as step:
        old = transaction.stored(actor, "delete", resource, namespace, name)
        stored = store.write(_deletion(actor, resource, old.object, ClusterView(), **how))[0]
        step.done(None, stored)
    return stored


def delete_many(
    actor: Actor,
    resource: Resource,
    keys: Sequence[tuple[str, str]],
    *,
    uids: Sequence[str] = (),
    grace: int | None = None,
    propagation: Propagation | None = None,
    dry_run: bool = False,
) -> list[Stored | ApiError]:
    """Delete objects of one kind by (namespace, name); return the outcome of each, in the order given.

    uids are preconditions, one for each key; "" stands for whichever object has the name.
    """
    size = bulk.batch_size(resource)
    outcomes: list[Stored | ApiError] = []

    def deletion(key: tuple[str, str], uid: str, view: ClusterView) -> Delete:
        old = view.get(resource, *key)
        if old is None:
            transaction.missing(actor, "delete", resource, *key)
        uid = uid or old["metadata"]["uid"]
        return _deletion(actor, resource, old, view, uid=uid, grace=grace, propagation=propagation)

    for start in range(0, len(keys), size):
        batch = keys[start : start + size]
        targets = [{"metadata": {"namespace": namespace, "name": name}} for namespace, name in batch]
        wanted = zip(batch, uids[start : start + size] or [""] * len(batch), strict=True)
        try:
            with transaction.transaction(dry_run):
                view = ClusterView()
                view.fetch(resource, batch)
                stored = bulk.commit([bulk.attempt(deletion, key, uid, view) for key, uid in wanted])
                if not dry_run:
                    audit_trail.many(actor, "delete", resource, targets, stored)
        except ServiceUnavailable as error:
            stored = [error] * len(batch)
        outcomes += stored
    return outcomes


def _deletion(actor: Actor, resource: Resource, old: Object, view: ClusterView, **how: Unpack[DeleteOptions]) -> Delete:
    """Return the write that deletes a stored object, once the right and the rules let it go."""
    rights.check_delete(actor, "delete", resource, old, view)
    admission.release(resource, old, view)
    metadata = old["metadata"]
    # What becomes of dependents: what is asked, what is under way, or the kind's default (§2.4).
    finalizers = metadata.get("finalizers") or ()
    under_way = [way for way, finalizer in WAYS if finalizer in finalizers]
    way = how.get("propagation") or (*under_way, resource.default_propagation)[0]
    uid, version, grace = how.get("uid", ""), how.get("version", ""), how.get("grace")
    return Delete(resource, metadata.get("namespace") or "", metadata["name"], uid, version, grace, way)
