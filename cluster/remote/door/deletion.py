"""How objects of a cluster with an API of its own are deleted.

What goes away is taken out of the mirror by the watch alone, and waited for: only it knows in which order things
happened, so that nothing comes back that is gone.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Unpack

from django.db import transaction as database

from cluster import clock
from cluster.access import Actor
from cluster.api import audit_trail, bulk, rights, transaction
from cluster.api.cluster_view import ClusterView
from cluster.backend import DeleteOptions
from cluster.remote import recorder
from cluster.remote.door import calls, server
from cluster.store import Stored, store
from cluster.writes import Propagation
from kube.errors import ApiError
from kube.meta import Object
from kube.resources import Resource

GONE_WITHIN_S = 3.0  # how long who deletes waits for the watch to say so
LOOK_EVERY_S = 0.03


def delete(actor: Actor, resource: Resource, namespace: str, name: str, **how: Unpack[DeleteOptions]) -> Stored:
    """Delete an object, the one that the mirror shows; return its last state, or the one in which it waits to go."""
    target, is_dry = {"metadata": {"namespace": namespace, "name": name}}, how.get("dry_run", False)
    with audit_trail.following(actor, "delete", resource, target, quiet=is_dry) as step:
        key = (namespace if resource.namespaced else "", name)
        old = _deletable(actor, resource, key, store.by_keys(resource, ["/".join(key)]), ClusterView())
        how["uid"] = how.get("uid") or old.uid
        answer = server.calls(actor).delete(resource, old.namespace, name, **how)
        stored = old if is_dry else _outcomes(resource, [(old, answer)])[0]
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
    """Delete objects, a few at a time; return the outcome of each, in the order given."""
    view, stored = ClusterView(), store.by_keys(resource, [f"{namespace}/{name}" for namespace, name in keys])
    olds = [bulk.attempt(_deletable, actor, resource, key, stored, view) for key in keys]
    api = server.calls(actor)

    def ask(item: tuple[Stored, str]) -> Object:
        old, uid = item
        how: DeleteOptions = {"uid": uid or old.uid, "grace": grace, "propagation": propagation, "dry_run": dry_run}
        return api.delete(resource, old.namespace, old.name, **how)

    wanted = uids or [""] * len(keys)
    pairs = zip(olds, wanted, strict=True)
    answers = calls.each(ask, [old if isinstance(old, ApiError) else (old, uid) for old, uid in pairs])
    done = [
        (old, answer)
        for old, answer in zip(olds, answers, strict=True)
        if not isinstance(old, ApiError) and not isinstance(answer, ApiError)
    ]
    deleted = iter([old for old, _ in done] if dry_run else _outcomes(resource, done))
    outcomes = [answer if isinstance(answer, ApiError) else next(deleted) for answer in answers]
    if not dry_run:
        targets = [{"metadata": {"namespace": namespace, "name": name}} for namespace, name in keys]
        audit_trail.many(actor, "delete", resource, targets, outcomes)
    return outcomes


def _deletable(
    actor: Actor, resource: Resource, key: tuple[str, str], stored: Mapping[str, Stored], view: ClusterView
) -> Stored:
    """Return the object of a key, of those that are stored; raise an ApiError where the actor may not delete it."""
    old = stored.get("/".join(key))
    if old is None:
        transaction.missing(actor, "delete", resource, *key)
    rights.check_delete(actor, "delete", resource, old.object, view)
    return old


def _outcomes(resource: Resource, done: Sequence[tuple[Stored, Object]]) -> list[Stored]:
    """Return deleted objects as they wait to go, or as they last were once the mirror knows that they went."""
    waiting = iter(recorder.confirm(resource, [answer for _, answer in done if _is_waiting(answer)]))
    outcomes = [next(waiting) if _is_waiting(answer) else old for old, answer in done]
    _await_gone([old.uid for old, answer in done if not _is_waiting(answer)])
    return outcomes


def _is_waiting(answer: Object) -> bool:
    """Whether a deletion was answered with an object that is still there."""
    return bool((answer.get("metadata") or {}).get("deletionTimestamp"))


def _await_gone(uids: Sequence[str]) -> None:
    """Wait until the mirror shows no object of these uids, but no longer than people wait for a page.

    Inside a transaction nothing that others write could be seen.
    """
    until = clock.monotonic() + GONE_WITHIN_S
    while uids and not database.get_connection().in_atomic_block and clock.monotonic() < until:
        if not store.living(uids):
            return
        time.sleep(LOOK_EVERY_S)
