"""How new objects come into a cluster with an API of its own: alone, many at once, or with what they own."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Unpack

from cluster.access import Actor
from cluster.api import admission, audit_trail, bulk
from cluster.api import creation as embedded
from cluster.api.cluster_view import ClusterView
from cluster.backend import Options, OwnedRefused
from cluster.remote import recorder
from cluster.remote.door import calls, server
from cluster.remote.door.calls import Calls
from cluster.remote.mirroring import kinds
from cluster.store import Stored, store
from kube.errors import AlreadyExists, ApiError
from kube.meta import Object
from kube.owners import controller_reference
from kube.resources import Resource


def create(actor: Actor, resource: Resource, obj: Object, **options: Unpack[Options]) -> Stored:
    """Create an object."""
    is_dry = options.get("dry_run", False)
    with audit_trail.following(actor, "create", resource, obj, quiet=is_dry) as step:
        new = ready(actor, resource, obj, ClusterView(), options.get("warn"))
        manager, api = options.get("manager", ""), server.calls(actor)
        try:
            answer = api.create(resource, new, manager=manager, dry_run=is_dry)
        except AlreadyExists:
            # What has the name is mirrored, where the mirror has nothing: it may be the same, sent before.
            namespace, name = new["metadata"].get("namespace") or "", new["metadata"]["name"]
            if not store.by_keys(resource, [f"{namespace}/{name}"]):
                with suppress(ApiError):
                    recorder.stored_answer(resource, api.read(resource, namespace, name))
            raise
        stored = recorder.stored_answer(resource, answer, is_dry)
        step.done(None, stored)
    return stored


def create_many(actor: Actor, resource: Resource, objs: Sequence[Object]) -> list[Stored | ApiError]:
    """Create many objects, a few at a time; return the outcome of each, in the order given."""
    view = ClusterView()
    new = [bulk.attempt(ready, actor, resource, obj, view) for obj in objs]
    api = server.calls(actor)
    answers = calls.each(lambda one: api.create(resource, one), new)
    outcomes = recorder.stored_answers(resource, answers)
    audit_trail.many(actor, "create", resource, objs, outcomes)
    return outcomes


def create_with_owned(actor: Actor, resource: Resource, obj: Object, owned: Resource, objs: Sequence[Object]) -> Stored:
    """Create an object and many that it owns; when one is refused, take all back and say which (OwnedRefused).

    No transaction spans the calls: should this process be killed among them, what was made so far stays.
    """
    view = ClusterView()
    api = server.calls(actor)
    with audit_trail.following(actor, "create", resource, obj, quiet=False) as step:
        holder = ready(actor, resource, obj, view)
        new = [bulk.attempt(ready, actor, owned, one, view) for one in objs]
        OwnedRefused.check(new)
        owner = api.create(resource, holder)
        reference = controller_reference(resource, owner["metadata"]["name"], owner["metadata"]["uid"])
        for one in new:
            one["metadata"]["ownerReferences"] = [reference]  # type: ignore[index]  # none is an error
        answers = calls.each(lambda one: api.create(owned, one), new)
        try:
            OwnedRefused.check(answers)
        except OwnedRefused:
            _take_back(api, resource, owner, owned, answers)
            raise
        stored = recorder.stored_answer(resource, owner)
        step.done(None, stored)
        stored_owned = [one for one in recorder.stored_answers(owned, answers) if not isinstance(one, ApiError)]
        audit_trail.owned(actor, stored, owned, stored_owned)
    return stored


def _take_back(
    api: Calls, resource: Resource, owner: Object, owned: Resource, answers: Sequence[Object | ApiError]
) -> None:
    """Delete the owner and what was made of the rest; an owner that is gone takes what is left with it."""

    def delete(kind: Resource, obj: Object) -> Object:
        meta = obj["metadata"]
        namespace = meta.get("namespace") or ""
        return api.delete(kind, namespace, meta["name"], uid=meta["uid"], propagation="Background")

    calls.each(lambda obj: delete(resource, obj), [owner])
    calls.each(lambda obj: delete(owned, obj), [one for one in answers if not isinstance(one, ApiError)])


def ready(
    actor: Actor, resource: Resource, obj: Object, view: ClusterView, warn: embedded.Warn | None = None
) -> Object:
    """Return an object as it is sent; the right comes first, as everywhere.

    Kubernetes judges its own kinds. Of Volcano's it knows no more than a schema, and webhooks that fill them in and
    judge them need not be installed: so that is done by our rules, over the mirror.
    """
    shaped = embedded.shaped(actor, resource, obj)
    new = embedded.allowed(actor, shaped, view)
    if resource not in kinds.VOLCANOS:
        return new
    return embedded.admitted(admission.judge(shaped, None, view), None, view, warn)
