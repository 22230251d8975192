"""What becomes of a change in the embedded cluster, verb by verb; how new objects come in is in `cluster.api.creation`.

A change passes, in this order: the right (`cluster.api.rights`), the admission
chain (`cluster.api.admission`), the store, the audit. The last two, and the rules
that look at the cluster, share one database transaction, so nothing is half
done. A change that is denied or refused leaves an audit row too, but nothing
else. With `dry_run` all of it happens and is rolled back, audit included.

Errors are `ApiError`; an Invalid carries its causes with field paths.
`review` is for forms: it reports what is wrong and raises nothing (`cluster.api.preview`).

Controllers, scheduler and nodes write as the system, past all of this: what
they do follows from what people did, and is not audited.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

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
from cluster.backend import How, Part
from cluster.store import Delete, Stored, Update, Write, store
from cluster.store.types import Propagation
from kube import apply as applying
from kube import conversion, definitions, errors, resources
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


class Deletion(NamedTuple):
    """How the objects of one call go; None means what the kind does by default."""

    grace: int | None
    propagation: Propagation | None
    dry_run: bool


class Replacement(NamedTuple):
    """How an object is changed: what it becomes, under which verb that needs a right, and who manages it then.

    manager None means that `make` sees to the managedFields itself.
    """

    verb: str
    make: Callable[[Object], Object]
    subresource: Part
    manager: str | None
    dry_run: bool
    warn: Warn | None


def update(
    actor: Actor,
    resource: Resource,
    obj: Object,
    *,
    manager: str = "",
    subresource: Part = "",
    dry_run: bool = False,
    warn: Warn | None = None,
) -> Stored:
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

    change = Replacement("update", make, subresource, manager or UNNAMED, dry_run, warn)
    return _change(actor, resource, namespace, name, change)


def patch(
    actor: Actor,
    resource: Resource,
    namespace: str,
    name: str,
    patch: Object | list[Object],
    *,
    how: How = "merge",
    manager: str = "",
    subresource: Part = "",
    dry_run: bool = False,
    warn: Warn | None = None,
) -> Stored:
    """Change parts of an object: by a JSON merge patch, a JSON patch (a list) or a strategic merge patch.

    A patch that cannot be done is Invalid (§2.4). Managers are as in `update`.
    """

    def make(old: Object) -> Object:
        return patched(resource, old, patch, how)

    change = Replacement("patch", make, subresource, manager or UNNAMED, dry_run, warn)
    return _change(actor, resource, namespace, name, change)


def patched(resource: Resource, old: Object, change: Object | list[Object], how: How) -> Object:
    """Return what a patch makes of an object; Invalid when it cannot be done."""
    try:
        return _patched(resource, old, change, how)
    except patches.PatchTooLargeError as error:
        raise RequestEntityTooLarge(str(error)) from None
    except patches.PatchError as error:
        raise Invalid(f"{REJECTED}: {error.told}", noted=f"{REJECTED}: {error}") from None


def _patched(resource: Resource, old: Object, change: Object | list[Object], how: How) -> Object:
    if how == "json":
        if not isinstance(change, list):
            raise BadRequest("A JSON patch is a list of operations.")
        return patches.json_patch(old, change)
    if not isinstance(change, dict):
        raise BadRequest("A merge patch is a mapping of fields.")
    if how == "merge":
        return patches.merge(old, change)
    return patches.strategic(old, change, definitions.of(resource))


def scale(
    actor: Actor,
    verb: str,
    resource: Resource,
    namespace: str,
    name: str,
    change: Callable[[Object], Object],
    *,
    manager: str = "",
    dry_run: bool = False,
    warn: Warn | None = None,
) -> Stored:
    """Change how many replicas an object wants, which asks for the right to its `scale`; `change` does it."""
    done = Replacement(verb, change, "scale", manager or UNNAMED, dry_run, warn)
    return _change(actor, resource, namespace, name, done)


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

    target = {"metadata": {"namespace": namespace, "name": name}}
    with (
        audit_trail.following(actor, "apply", resource, target, quiet=dry_run) as step,
        transaction.transaction(dry_run),
    ):
        wish = admission.plain(resource, config)
        if not subresource and not _is_there(resource, namespace, name):
            stored = _apply_new(actor, resource, namespace, name, make, warn)
            step.done(None, stored)
            return server_fields.as_dry(stored, None) if dry_run else stored, True
        change = Replacement("patch", make, subresource, None, dry_run, warn)
        return _change_once(actor, resource, namespace, name, change, step), False


def _is_there(resource: Resource, namespace: str, name: str) -> bool:
    key = f"{namespace if resource.namespaced else ''}/{name}"
    return key in store.by_keys(resource, [key])


def _apply_new(
    actor: Actor,
    resource: Resource,
    namespace: str,
    name: str,
    make: Callable[[Object | None], Object],
    warn: Warn | None,
) -> Stored:
    place = name if resource is resources.NAMESPACES else namespace if resource.namespaced else ""
    access.require(actor, "patch", resource, place, name, owner=actor.name)
    access.require(actor, "create", resource, place, name, owner=actor.name)
    new = make(None)
    if uid := new["metadata"].get("uid"):
        detail = (
            f"uid mismatch: the provided object specified uid {errors.shown(uid)}, and no existing object was found"
        )
        raise Conflict.of(resource.id, name, detail)
    return store.write(creation.judged(actor, creation.shaped(actor, resource, new), ClusterView(), warn, None))[0]


def _change(actor: Actor, resource: Resource, namespace: str, name: str, change: Replacement) -> Stored:
    """Turn the stored object into another one."""
    target = {"metadata": {"namespace": namespace, "name": name}}
    following = audit_trail.following(actor, change.verb, resource, target, quiet=change.dry_run)
    with following as step, transaction.transaction(change.dry_run):
        return _change_once(actor, resource, namespace, name, change, step)


def _change_once(
    actor: Actor, resource: Resource, namespace: str, name: str, change: Replacement, step: audit_trail.AuditedChange
) -> Stored:
    verb, subresource = change.verb, change.subresource
    old = transaction.stored(actor, verb, resource, namespace, name)
    view = ClusterView()
    part: Literal["", "status", "finalize"] = "" if subresource == "scale" else subresource
    before = conversion.shown(resource, old.object)
    made = _made(actor, resource, before, change)
    shaped = admission.shape(resource, custom_kinds.replaced(resource, made, before, part), before, part)
    if not shaped.causes:
        server_fields.servers_fields(resource, shaped.object, old.object, part)
        rights.check_change(actor, verb, resource, old.object, shaped.object, subresource, view)
    else:
        rights.check_change(actor, verb, resource, old.object, None, subresource, view)
    server_fields.check_fresh(resource, old, shaped.object)
    if part == "status":
        obj = admission.judge_status(shaped, before, view).checked()
    elif part:
        obj = shaped.checked()
    else:
        obj = creation.told(admission.judge(shaped, before, view), before, view, change.warn)
    obj = _with_managers(resource, obj, before, made, change)
    obj["metadata"]["resourceVersion"] = old.version
    managed = obj["metadata"].get("managedFields") if part == "status" else None
    stored = store.write(Update(*custom_kinds.in_storage(resource, obj), part, managed))[0]
    if stored.revision != old.revision:
        step.done(old, stored)
    return server_fields.as_dry(stored, old) if change.dry_run else stored


def _made(actor: Actor, resource: Resource, old: Object, change: Replacement) -> Object:
    """Return what a change makes of an object; why it cannot be made is for those who may read it."""
    try:
        return change.make(old)
    except ApiError:
        place, name = rights.place_of(resource, old), metadata.name_of(old)
        if not access.allowed(actor, "get", resource, place, owner=creator_of(old)):
            access.require(actor, change.verb, resource, place, name)
        raise


def _with_managers(resource: Resource, obj: Object, old: Object, made: Object, change: Replacement) -> Object:
    """Return an admitted object with who manages its fields now."""
    part = change.subresource
    if part == "finalize":
        return obj
    if change.manager is not None:
        return applying.track(old, obj, resource, manager=change.manager, subresource=part, now=clock.milliseconds())
    return {**obj, "metadata": {**obj["metadata"], "managedFields": made["metadata"].get("managedFields", [])}}


def delete(
    actor: Actor,
    resource: Resource,
    namespace: str,
    name: str,
    *,
    uid: str = "",
    version: str = "",
    grace: int | None = None,
    propagation: Propagation | None = None,
    dry_run: bool = False,
) -> Stored:
    """Delete an object; what is returned is its last state, or the one in which it waits to go."""
    target = {"metadata": {"namespace": namespace, "name": name}}
    with (
        audit_trail.following(actor, "delete", resource, target, quiet=dry_run) as step,
        transaction.transaction(dry_run),
    ):
        old = transaction.stored(actor, "delete", resource, namespace, name)
        view = ClusterView()
        rights.check_delete(actor, "delete", resource, old.object, view)
        admission.release(resource, old.object, view)
        way = _propagation(resource, old.object, propagation)
        write = Delete(resource, old.namespace, name, uid, version, grace, way)
        stored = store.write(write)[0]
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
    """Delete objects of one kind by (namespace, name); each stands or fails for itself, in the order given.

    uids are preconditions, one for each key; "" stands for whichever object has the name.
    """
    how = Deletion(grace, propagation, dry_run)
    size = bulk.batch_size(resource)
    outcomes: list[Stored | ApiError] = []
    wanted = uids or [""] * len(keys)
    for start in range(0, len(keys), size):
        end = start + size
        outcomes += _delete_batch(actor, resource, keys[start:end], wanted[start:end], how)
    return outcomes


def _delete_batch(
    actor: Actor, resource: Resource, keys: Sequence[tuple[str, str]], uids: Sequence[str], how: Deletion
) -> list[Stored | ApiError]:
    targets = [{"metadata": {"namespace": namespace, "name": name}} for namespace, name in keys]
    try:
        with transaction.transaction(how.dry_run):
            view = ClusterView()
            view.fetch(resource, keys)
            writes = [
                bulk.attempt(_deletion, actor, resource, key, uid, how, view)
                for key, uid in zip(keys, uids, strict=True)
            ]
            outcomes = bulk.commit(writes)
            if not how.dry_run:
                audit_trail.many(actor, "delete", resource, targets, outcomes)
    except ServiceUnavailable as error:
        return [error] * len(keys)
    return outcomes


def _deletion(
    actor: Actor, resource: Resource, key: tuple[str, str], uid: str, how: Deletion, view: ClusterView
) -> Write:
    namespace, name = key
    old = view.get(resource, namespace, name)
    if old is None:
        transaction.missing(actor, "delete", resource, namespace, name)
    rights.check_delete(actor, "delete", resource, old, view)
    admission.release(resource, old, view)
    way = _propagation(resource, old, how.propagation)
    uid = uid or old["metadata"]["uid"]
    return Delete(resource, namespace, name, uid, grace=how.grace, propagation=way)


def _propagation(resource: Resource, obj: Object, asked: Propagation | None) -> Propagation:
    """Return what becomes of dependents: what is asked, what is under way, or the kind's default (§2.4)."""
    finalizers = obj["metadata"].get("finalizers") or ()
    for way, finalizer in WAYS:
        if not asked and finalizer in finalizers:
            return way
    return asked or resource.default_propagation
