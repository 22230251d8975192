"""How an object and the many that it owns come into the embedded cluster: all of them, or nothing.

One transaction, so the log's lock is held for all: 10,000 jobs take some two seconds, in which nobody else writes
(docs/design/door.md). What needs nothing but the objects is done before.
"""

from __future__ import annotations

from collections.abc import Sequence

from cluster.access import Actor
from cluster.api import audit_trail, bulk, creation, transaction
from cluster.api.cluster_view import ClusterView
from cluster.backend import Admitted, OwnedRefused
from cluster.store import Stored, store
from kube.errors import ApiError
from kube.meta import Object
from kube.owners import controller_reference
from kube.resources import Resource


def create_with_owned(actor: Actor, resource: Resource, obj: Object, owned: Resource, objs: Sequence[Object]) -> Stored:
    """Store a new object and many of one kind that it owns as their controller, and return it.

    When one of them is refused nothing is stored, and OwnedRefused says which and why. What is wrong with the owner is
    raised as `create` does. The audit gets a row for the owner and one for all that it owns.
    """
    with audit_trail.following(actor, "create", resource, obj, quiet=False) as step:
        holder = creation.shaped(actor, resource, obj)
        new = [bulk.attempt(creation.shaped, actor, owned, one) for one in objs]
        with transaction.transaction(dry_run=False):
            owner = store.write(creation.judged(actor, holder, ClusterView()))[0]
            stored = _store(actor, owner, resource, new)
            step.done(None, owner)
            audit_trail.owned(actor, owner, owned, stored)
    return owner


def _store(actor: Actor, owner: Stored, resource: Resource, new: Sequence[Admitted | ApiError]) -> Sequence[Stored]:
    """Judge and store what an object owns; OwnedRefused leaves the transaction to be rolled back."""
    view = ClusterView()
    reference = controller_reference(resource, owner.name, owner.uid)
    writes = []
    for one in new:
        if not isinstance(one, ApiError) and not one.causes:
            one.object["metadata"]["ownerReferences"] = [reference]
        writes.append(one if isinstance(one, ApiError) else bulk.attempt(creation.judged, actor, one, view))
    OwnedRefused.check(writes)
    outcomes = bulk.commit(writes)
    OwnedRefused.check(outcomes)
    return [outcome for outcome in outcomes if not isinstance(outcome, ApiError)]
