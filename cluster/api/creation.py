"""How a new object comes into the embedded cluster: alone, with many of one request, or with those of other requests.

What needs nothing but the object (`shaped`) is done before the transaction holds the log's lock; the right and the
rules (`judged`) are looked at inside it, so that what they have read is still so when the object is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ParamSpec, TypeVar

from django.db import DatabaseError

from cluster import access, clock
from cluster.access import Actor
from cluster.api import admission, audit_trail, bulk, custom_kinds, metadata, rights, server_fields, transaction, walls
from cluster.api.cluster_view import ClusterView
from cluster.backend import Admitted, Creation
from cluster.store import Create, Stored, store
from kube import apply as applying
from kube import resources
from kube.errors import ApiError, BadRequest, ServiceUnavailable
from kube.meta import Object
from kube.resources import Resource

# Kinds whose status a creation may give. Who announces a node says at once what it offers. What vcctl wishes of a new
# queue it writes there; the rules of queues read it and write the status anew.
STATUS_ON_CREATE = frozenset({resources.NODES.id, resources.QUEUES.id})
P = ParamSpec("P")
R = TypeVar("R")
Warn = Callable[[str], None]


def create(
    actor: Actor, resource: Resource, obj: Object, *, manager: str = "", dry_run: bool = False, warn: Warn | None = None
) -> Stored:
    """Store a new object. The server notes who created it. `warn` is called with what is merely odd.

    With a manager, who manages which field is noted from the start.
    """
    with audit_trail.following(actor, "create", resource, obj, quiet=dry_run) as step:
        new = shaped(actor, resource, obj)
        with transaction.transaction(dry_run):
            write = judged(actor, new, ClusterView(), warn, manager)
            stored = store.write(write)[0]
            step.done(None, stored)
    return server_fields.as_dry(stored, None) if dry_run else stored


def create_many(actor: Actor, resource: Resource, objs: Sequence[Object]) -> list[Stored | ApiError]:
    """Store many new objects of one kind; return the outcome of each, in the order given.

    Objects are stored in transactions of up to BATCH, each with its audit rows.
    """
    size = bulk.batch_size(resource)
    outcomes: list[Stored | ApiError] = []
    for start in range(0, len(objs), size):
        batch = objs[start : start + size]
        # The part that needs no database is done before the transaction holds the database's one write lock.
        new = [bulk.attempt(shaped, actor, resource, obj) for obj in batch]
        try:
            with transaction.transaction(dry_run=False):
                view = ClusterView()
                _fetch_targets(new, view)
                writes = [n if isinstance(n, ApiError) else bulk.attempt(judged, actor, n, view) for n in new]
                stored = bulk.commit(writes)
                audit_trail.many(actor, "create", resource, batch, stored)
        except ServiceUnavailable as error:
            stored = [error] * len(batch)
        outcomes += stored
    return outcomes


def create_each(
    creations: Sequence[Creation], more: Callable[[], Sequence[Creation]] = tuple
) -> list[Stored | Exception]:
    """Store the objects of several requests, all of one kind, in one transaction and in the order given.

    Each outcome is that of `create`, with the exception that it would raise in place of the object. `more` is called
    once the log's lock is held, and returns the creations that came meanwhile.
    """
    if bulk.batch_size(creations[0].resource) == 1:
        return [_alone(each) for each in creations]
    every = list(creations)
    new = [_shaped(each) for each in every]
    locked = written = False
    try:
        with transaction.transaction(dry_run=False):
            locked = True
            late = more()
            every += late
            new += map(_shaped, late)
            view = ClusterView()
            _fetch_targets(new, view)
            writes = [
                n if isinstance(n, Exception) else _outcome(judged, each.actor, n, view, each.warn, each.manager)
                for each, n in zip(every, new, strict=True)
            ]
            outcomes = bulk.commit(writes)
            audit_trail.each("create", every, outcomes)
            written = True
    except Exception as error:
        if locked and not written:
            # One of them is the reason. Nothing of any is stored, so each can be answered for itself.
            return [_alone(each) for each in every]
        return [error] * len(every)
    return outcomes


def _shaped(one: Creation) -> Admitted | Exception:
    return _outcome(shaped, one.actor, one.resource, one.object)


def _alone(one: Creation) -> Stored | Exception:
    try:
        return create(one.actor, one.resource, one.object, manager=one.manager, warn=one.warn)
    except Exception as error:
        return error


def _outcome(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R | Exception:
    """Return what the function returns or raises; after an error of the database there is nothing to go on with."""
    try:
        return function(*args, **kwargs)
    except DatabaseError:
        raise
    except Exception as error:
        return error


def _fetch_targets(new: Sequence[Admitted | Exception], view: ClusterView) -> None:
    """Read the jobs that Commands are about in one query."""
    targets = {
        (n.object["metadata"]["namespace"], n.object["target"]["name"])
        for n in new
        if not isinstance(n, Exception)
        and n.resource is resources.COMMANDS
        and not n.causes
        and (n.object.get("target") or {}).get("name")
    }
    if targets:
        view.fetch(resources.JOBS, sorted(targets))


def shaped(actor: Actor, resource: Resource, obj: Object) -> Admitted:
    """Shape a new object and put the server's marks on it."""
    system = access.is_system(actor)
    new = admission.shape(resource, custom_kinds.without_status(resource, obj))
    if not new.causes:
        if new.object["metadata"].get("resourceVersion"):
            raise BadRequest("resourceVersion should not be set on objects to be created")
        if not system:
            server_fields.set_creator(new.object, None if access.node_of(actor) else actor.name)
            if resource.status_subresource and resource.id not in STATUS_ON_CREATE:
                new.object.pop("status", None)
    return new


def judged(
    actor: Actor, new: Admitted, view: ClusterView, warn: Warn | None = None, manager: str | None = ""
) -> Create:
    """Check the right and the rules; the right comes first, so that nobody learns from refusals.

    manager None leaves the managedFields as they are.
    """
    check_right(actor, new, view)
    # Rules may write the object's uid into it, so it is decided here and not by the store.
    uid = store.uids()
    if not new.causes:
        new.object["metadata"]["uid"] = uid
        if manager:  # What is filled in below belongs to nobody.
            tracked = applying.track(None, new.object, new.resource, manager=manager, now=clock.milliseconds())
            new = replace(new, object=tracked)
        elif manager is not None:
            new.object["metadata"].pop("managedFields", None)
    obj = admitted(admission.judge(new, None, view), None, view, warn)
    if warn is not None:
        for text in walls.warnings(actor, new.resource, obj, view):
            warn(text)
    return Create(*custom_kinds.in_storage(new.resource, obj), uid)


def allowed(actor: Actor, new: Admitted, view: ClusterView) -> Object:
    """Return a shaped object that the actor may create; Forbidden comes before what is wrong with its shape."""
    check_right(actor, new, view)
    return new.checked()


def check_right(actor: Actor, new: Admitted, view: ClusterView) -> None:
    """Raise Forbidden unless the actor may create a new object, also one whose shape is wrong."""
    if not new.causes:
        rights.check_create(actor, new.resource, new.object, view)
        return
    namespace = metadata.namespace_of(new.resource, new.object)
    name = metadata.name_of(new.object)
    right_namespace = rights.right_namespace(new.resource, namespace, name)
    access.require(actor, "create", new.resource, right_namespace, name, owner=actor.name)


def admitted(outcome: Admitted, old: Object | None, view: ClusterView, warn: Warn | None) -> Object:
    """Return the admitted object, or raise its error; `warn` is called with what is odd about it."""
    obj = outcome.checked()
    if warn is not None:
        for text in admission.oddities(outcome.resource, obj, old, view):
            warn(text)
    return obj
