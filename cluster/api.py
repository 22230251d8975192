"""The one door: every change that a person asks for, whichever way it comes.

A change passes, in this order: the right (`cluster.guard`), the admission
chain (`cluster.admission`), the store, the audit. The last two, and the rules
that look at the cluster, share one database transaction, so nothing is half
done. A change that is denied or refused leaves an audit row too, but nothing
else. With `dry_run` all of it happens and is rolled back, audit included.

Errors are `ApiError`; an Invalid carries its causes with field paths.
`review` is for forms: it reports what is wrong and raises nothing.

Controllers, scheduler and nodes write to the store directly, as the system:
what they do follows from what people did, and is not audited.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, NamedTuple, NoReturn, ParamSpec, TypeVar

from django.db import DatabaseError, transaction

from cluster import access, admission, custom, guard, metadata, trail
from cluster.admission import Admitted, ClusterView
from cluster.store import Create, Delete, Group, Stored, Update, sql, store
from kube import definitions, errors, resources
from kube import patch as patches
from kube.errors import ApiError, BadRequest, Conflict, Forbidden, Invalid, NotFound, ServiceUnavailable
from kube.resources import CREATOR_ANNOTATION

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cluster.access import Actor
    from cluster.store import Write
    from cluster.store.types import Propagation
    from kube.meta import Object
    from kube.resources import Resource

BATCH = 500  # objects per transaction of a bulk change: some 100 ms in which others cannot write
# Rules look at these; each is stored before the next one is judged.
LOOKED_AT = frozenset(
    kind.id
    for kind in (
        resources.QUEUES,
        resources.NAMESPACES,
        resources.PRIORITY_CLASSES,
        resources.CLAIMS,
        resources.CUSTOM_RESOURCE_DEFINITIONS,
    )
)
# Two people who edit a custom resource never overwrite each other unknowingly (§2.4).
NO_VERSION = errors.Cause(
    "FieldValueInvalid", "Invalid value: 0x0: must be specified for an update", "metadata.resourceVersion"
)
WAYS: tuple[tuple[Propagation, str], ...] = (
    ("Foreground", "foregroundDeletion"),
    ("Orphan", "orphan"),
)
P = ParamSpec("P")
R = TypeVar("R")
How = Literal["merge", "json", "strategic"]
Part = Literal["", "status", "finalize", "scale"]
Warn = Callable[[str], None]


class Deletion(NamedTuple):
    """How the objects of one call go; None means what the kind does by default."""

    grace: int | None
    propagation: Propagation | None
    dry_run: bool


def create(
    actor: Actor, resource: Resource, obj: Object, *, dry_run: bool = False, warn: Warn | None = None
) -> Stored:
    """Store a new object. The server notes who created it. `warn` is told what is merely odd."""
    with trail.following(actor, "create", resource, obj, quiet=dry_run) as step:
        shaped = _new(actor, resource, obj)
        with _transaction(dry_run):
            view = ClusterView()
            write = _judged(actor, shaped, view, warn)
            stored = store.write(write)[0]
            step.done(None, stored)
    return stored


def create_many(actor: Actor, resource: Resource, objs: Sequence[Object]) -> list[Stored | ApiError]:
    """Store many new objects of one kind; each stands or fails for itself, in the order given.

    Objects are stored in transactions of up to BATCH, each with its audit rows.
    """
    size = 1 if resource.id in LOOKED_AT else BATCH
    outcomes: list[Stored | ApiError] = []
    for start in range(0, len(objs), size):
        outcomes += _create_batch(actor, resource, objs[start : start + size])
    return outcomes


def _create_batch(actor: Actor, resource: Resource, objs: Sequence[Object]) -> list[Stored | ApiError]:
    # The part that needs no database is done before the transaction holds the database's one write lock.
    shaped = [_attempt(_new, actor, resource, obj) for obj in objs]
    try:
        with _transaction(dry_run=False):
            view = ClusterView()
            _fetch_targets(shaped, view)
            writes = [s if isinstance(s, ApiError) else _attempt(_judged, actor, s, view) for s in shaped]
            outcomes = _commit(writes)
            trail.many(actor, "create", resource, objs, outcomes)
    except ServiceUnavailable as error:
        return [error] * len(objs)
    return outcomes


def _fetch_targets(shaped: Sequence[Admitted | ApiError], view: ClusterView) -> None:
    """Read the jobs that Commands are about in one query."""
    targets = {
        (s.object["metadata"]["namespace"], s.object["target"]["name"])
        for s in shaped
        if not isinstance(s, ApiError)
        and s.resource is resources.COMMANDS
        and not s.causes
        and (s.object.get("target") or {}).get("name")
    }
    if targets:
        view.fetch(resources.JOBS, sorted(targets))


def review(actor: Actor, resource: Resource, obj: Object, *, update: bool = False) -> Admitted:
    """Say what would happen to an object, with causes and warnings, without changing or auditing anything.

    Whatever is wrong is a cause; what has no field of its own is reported for the whole object (field "").
    """
    try:
        shaped = admission.shape(resource, obj)
    except ApiError as error:
        return _as_causes(resource, obj if isinstance(obj, dict) else {}, error)
    view = ClusterView()
    name = metadata.name_of(shaped.object)
    namespace = _namespace(resource, shaped.object)
    old = view.get(resource, namespace, name) if name else None
    if not shaped.causes:
        denied = _rights_causes(actor, resource, shaped.object, old if update else None, view)
        if denied:  # who may not do it does not learn either what else is there
            return Admitted(resource, shaped.object, tuple(denied))
    admitted = admission.judge(shaped, old if update else None, view, warnings=True)
    causes = list(admitted.causes)
    if old is not None and not update and shaped.object["metadata"].get("name"):
        causes.append(errors.Cause("FieldValueDuplicate", f'"{name}" already exists.', "metadata.name"))
    return Admitted(resource, admitted.object, tuple(causes), admitted.warnings)


def _rights_causes(
    actor: Actor, resource: Resource, obj: Object, old: Object | None, view: ClusterView
) -> Sequence[errors.Cause]:
    try:
        if old is None:
            guard.check_create(actor, resource, obj, view)
        else:
            guard.check_change(actor, "update", resource, old, obj, "", view)
    except Forbidden as error:
        return [errors.forbidden("metadata.namespace" if resource.namespaced else "", error.message)]
    return []


def _as_causes(resource: Resource, obj: Object, error: ApiError) -> Admitted:
    causes = error.causes or (errors.Cause(error.reason, error.message, ""),)
    return Admitted(resource, obj, causes)


def update(
    actor: Actor,
    resource: Resource,
    obj: Object,
    *,
    subresource: Part = "",
    dry_run: bool = False,
    warn: Warn | None = None,
) -> Stored:
    """Replace an object. A resourceVersion in it must be the stored one; without one the last writer wins."""
    name = metadata.name_of(obj) if isinstance(obj, dict) else ""
    if not name:
        raise BadRequest("name is required")
    sent = obj["metadata"].get("namespace") or ("default" if resource.namespaced else "")

    def change(old: Object) -> Object:
        if resource.schema is not None and not obj["metadata"].get("resourceVersion"):
            raise Invalid.of(resource.group_kind, name, [NO_VERSION])
        return obj

    return _change(
        actor, "update", resource, str(sent), name, change, subresource, dry_run=dry_run, warn=warn
    )


def patch(
    actor: Actor,
    resource: Resource,
    namespace: str,
    name: str,
    patch: Object | list[Object],
    *,
    how: How = "merge",
    subresource: Part = "",
    dry_run: bool = False,
    warn: Warn | None = None,
) -> Stored:
    """Change parts of an object: by a JSON merge patch, a JSON patch (a list) or a strategic merge patch."""

    def change(old: Object) -> Object:
        try:
            return _patched(resource, old, patch, how)
        except patches.PatchError as error:
            raise BadRequest(str(error)) from None

    return _change(actor, "patch", resource, namespace, name, change, subresource, dry_run=dry_run, warn=warn)


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
    dry_run: bool = False,
    warn: Warn | None = None,
) -> Stored:
    """Change how many replicas an object wants, which asks for the right to its `scale`; `change` does it."""
    return _change(actor, verb, resource, namespace, name, change, "scale", dry_run=dry_run, warn=warn)


def _change(
    actor: Actor,
    verb: str,
    resource: Resource,
    namespace: str,
    name: str,
    change: Callable[[Object], Object],
    subresource: Part,
    *,
    dry_run: bool,
    warn: Warn | None,
) -> Stored:
    """Turn the stored object into another one."""
    target = {"metadata": {"namespace": namespace, "name": name}}
    with trail.following(actor, verb, resource, target, quiet=dry_run) as step, _transaction(dry_run):
        return _change_once(actor, verb, resource, namespace, name, change, subresource, step, warn)


def _change_once(
    actor: Actor,
    verb: str,
    resource: Resource,
    namespace: str,
    name: str,
    change: Callable[[Object], Object],
    subresource: Part,
    step: trail.Step,
    warn: Warn | None,
) -> Stored:
    old = _stored(actor, verb, resource, namespace, name)
    view = ClusterView()
    part: Literal["", "status", "finalize"] = "" if subresource == "scale" else subresource
    before = custom.in_version(resource, old.object)
    new = custom.replaced(resource, change(before), before, part)
    shaped = admission.shape(resource, new, before, part)
    if not shaped.causes:
        _keep_servers_fields(resource, shaped.object, old.object, part)
        guard.check_change(actor, verb, resource, old.object, shaped.object, subresource, view)
    else:
        guard.check_change(actor, verb, resource, old.object, old.object, subresource, view)
    _check_fresh(resource, old, shaped.object)
    if part == "status":
        obj = admission.judge_status(shaped, before, view).checked()
    elif part:
        obj = shaped.checked()
    else:
        obj = _told(admission.judge(shaped, before, view), before, view, warn)
    obj["metadata"]["resourceVersion"] = str(old.revision)
    stored = store.write(Update(*custom.in_storage(resource, obj), part))[0]
    if stored.revision != old.revision:
        step.done(old, stored)
    return stored


def _stored(actor: Actor, verb: str, resource: Resource, namespace: str, name: str) -> Stored:
    """Return the object that is to be changed."""
    try:
        return store.get(resource, namespace if resource.namespaced else "", name)
    except NotFound:
        _missing(actor, verb, resource, namespace, name)


def _missing(actor: Actor, verb: str, resource: Resource, namespace: str, name: str) -> NoReturn:
    """Raise NotFound, or Forbidden for who may not learn whether an object exists."""
    place = name if resource is resources.NAMESPACES else namespace if resource.namespaced else ""
    if not access.allowed(actor, "get", resource, place):
        access.require(actor, verb, resource, place, name)
    raise NotFound.of(resource.id, name)


def _keep_servers_fields(resource: Resource, new: Object, old: Object, subresource: str) -> None:
    """Put back what only the server writes: who created the object and, outside the subresource, its status."""
    creator = guard.creator_of(old)
    _set_creator(new, creator)
    for field in ("name", "namespace", "uid"):
        if field != "uid" or not new["metadata"].get("uid"):
            new["metadata"][field] = old["metadata"].get(field, "")
    if not resource.namespaced:
        new["metadata"].pop("namespace", None)
    if resource.status_subresource and not subresource:
        new.pop("status", None)
        if "status" in old:
            new["status"] = old["status"]


def _set_creator(obj: Object, name: str | None) -> None:
    annotations = obj["metadata"].get("annotations") or {}
    annotations.pop(CREATOR_ANNOTATION, None)
    if name:
        annotations[CREATOR_ANNOTATION] = name
    if annotations:
        obj["metadata"]["annotations"] = annotations
    else:
        obj["metadata"].pop("annotations", None)


def _check_fresh(resource: Resource, old: Stored, new: Object) -> None:
    meta = new.get("metadata")
    version = str((meta.get("resourceVersion") if isinstance(meta, dict) else "") or "")
    if not version or version == str(old.revision):
        return
    if not version.isdecimal():
        raise BadRequest(
            f"resourceVersion is {errors.shown(version)}; it is the number that the server gave."
        )
    who = trail.last_writer(resource, old)
    raise Conflict.of(
        resource.id,
        old.name,
        "the object has been modified; please apply your changes to the latest version and try again."
        f" It was changed{f' by {who}' if who else ''} after you read it"
        f" (you have revision {version}, the newest is {old.revision}).",
    )


def delete(
    actor: Actor,
    resource: Resource,
    namespace: str,
    name: str,
    *,
    uid: str = "",
    revision: int = 0,
    grace: int | None = None,
    propagation: Propagation | None = None,
    dry_run: bool = False,
) -> Stored:
    """Delete an object; what is returned is its last state, or the one in which it waits to go."""
    target = {"metadata": {"namespace": namespace, "name": name}}
    with trail.following(actor, "delete", resource, target, quiet=dry_run) as step, _transaction(dry_run):
        old = _stored(actor, "delete", resource, namespace, name)
        view = ClusterView()
        guard.check_delete(actor, "delete", resource, old.object, view)
        admission.release(resource, old.object, view)
        way = _propagation(resource, old.object, propagation)
        write = Delete(resource, old.namespace, name, uid, revision, grace, way)
        stored = store.write(write)[0]
        step.done(None, stored)
    return stored


def delete_many(
    actor: Actor,
    resource: Resource,
    keys: Sequence[tuple[str, str]],
    *,
    grace: int | None = None,
    propagation: Propagation | None = None,
    dry_run: bool = False,
) -> list[Stored | ApiError]:
    """Delete objects of one kind by (namespace, name); each stands or fails for itself, in the order given."""
    how = Deletion(grace, propagation, dry_run)
    size = 1 if resource.id in LOOKED_AT else BATCH
    outcomes: list[Stored | ApiError] = []
    for start in range(0, len(keys), size):
        outcomes += _delete_batch(actor, resource, keys[start : start + size], how)
    return outcomes


def _delete_batch(
    actor: Actor, resource: Resource, keys: Sequence[tuple[str, str]], how: Deletion
) -> list[Stored | ApiError]:
    targets = [{"metadata": {"namespace": namespace, "name": name}} for namespace, name in keys]
    try:
        with _transaction(how.dry_run):
            view = ClusterView()
            view.fetch(resource, keys)
            writes = [_attempt(_deletion, actor, resource, key, how, view) for key in keys]
            outcomes = _commit(writes)
            if not how.dry_run:
                trail.many(actor, "delete", resource, targets, outcomes)
    except ServiceUnavailable as error:
        return [error] * len(keys)
    return outcomes


def _deletion(
    actor: Actor, resource: Resource, key: tuple[str, str], how: Deletion, view: ClusterView
) -> Write:
    namespace, name = key
    old = view.get(resource, namespace, name)
    if old is None:
        _missing(actor, "delete", resource, namespace, name)
    guard.check_delete(actor, "delete", resource, old, view)
    admission.release(resource, old, view)
    way = _propagation(resource, old, how.propagation)
    return Delete(resource, namespace, name, old["metadata"]["uid"], grace=how.grace, propagation=way)


def _propagation(resource: Resource, obj: Object, asked: Propagation | None) -> Propagation:
    """Return what becomes of dependents: what is asked, what is under way, or the kind's default (§2.4)."""
    finalizers = obj["metadata"].get("finalizers") or ()
    for way, finalizer in WAYS:
        if not asked and finalizer in finalizers:
            return way
    return asked or resource.default_propagation


def _new(actor: Actor, resource: Resource, obj: Object) -> Admitted:
    """Shape a new object and put the server's marks on it."""
    system = access.is_system(actor)
    shaped = admission.shape(resource, custom.without_status(resource, obj))
    if not shaped.causes:
        if shaped.object["metadata"].get("resourceVersion"):
            raise BadRequest("resourceVersion should not be set on objects to be created")
        if not system:
            _set_creator(shaped.object, actor.name)
            if resource.schema is None or resource.status_subresource:
                shaped.object.pop("status", None)
    return shaped


def _judged(actor: Actor, shaped: Admitted, view: ClusterView, warn: Warn | None = None) -> Create:
    """Check the right and the rules; the right comes first, so that nobody learns from refusals."""
    if shaped.causes:
        namespace = _namespace(shaped.resource, shaped.object)
        name = metadata.name_of(shaped.object)
        place = name if shaped.resource is resources.NAMESPACES else namespace
        access.require(actor, "create", shaped.resource, place, name, owner=actor.name)
    else:
        guard.check_create(actor, shaped.resource, shaped.object, view)
    # Rules may write the object's uid into it, so it is decided here and not by the store.
    uid = str(uuid.uuid4())
    if not shaped.causes:
        shaped.object["metadata"]["uid"] = uid
    obj = _told(admission.judge(shaped, None, view), None, view, warn)
    return Create(*custom.in_storage(shaped.resource, obj), uid)


def _told(admitted: Admitted, old: Object | None, view: ClusterView, warn: Warn | None) -> Object:
    """Return the admitted object, or raise its error; what is odd about it is told to `warn`."""
    obj = admitted.checked()
    if warn is not None:
        for text in admission.oddities(admitted.resource, obj, old, view):
            warn(text)
    return obj


def _namespace(resource: Resource, obj: Object) -> str:
    meta = obj.get("metadata")
    given = meta.get("namespace") if isinstance(meta, dict) else ""
    return str(given or "default") if resource.namespaced else ""


def _commit(writes: Sequence[Write | ApiError]) -> list[Stored | ApiError]:
    """Store what can be stored and put each outcome into its place."""
    groups = [Group([write]) for write in writes if not isinstance(write, ApiError)]
    stored = iter(store.commit(groups))
    outcomes: list[Stored | ApiError] = []
    for write in writes:
        outcome = [write] if isinstance(write, ApiError) else next(stored)
        outcomes.append(outcome if isinstance(outcome, ApiError) else outcome[0])
    return outcomes


def _attempt(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R | ApiError:
    try:
        return function(*args, **kwargs)
    except ApiError as error:
        return error


@contextmanager
def _transaction(dry_run: bool) -> Iterator[None]:
    """One transaction, rolled back at its end for a dry run; a database that fails is a ServiceUnavailable.

    It holds the log's lock from its start, so what rules and comparisons have read stays true until the write.
    """
    try:
        with transaction.atomic():
            sql.lock_head(store.using)
            yield
            if dry_run:
                transaction.set_rollback(True)
    except DatabaseError as error:
        raise ServiceUnavailable(
            f"The change was not stored, because the database failed: {error}."
        ) from error
