"""What every change through the door (`cluster.api`) begins with: its transaction, and the object that it is about."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from django.db import DatabaseError
from django.db import transaction as database

from cluster import access
from cluster.access import Actor, nodes
from cluster.api import audit_trail, rights
from cluster.api.audit_trail import AuditedChange
from cluster.store import Stored, sql, store
from kube.errors import NotFound, ServiceUnavailable
from kube.resources import Resource


@contextmanager
def transaction(dry_run: bool) -> Iterator[None]:
    """One transaction, rolled back at its end for a dry run; a database that fails is a ServiceUnavailable.

    It holds the log's lock from its start, so what rules and comparisons have read stays true until the write.
    """
    try:
        with database.atomic():
            sql.lock_head(store.using)
            yield
            if dry_run:
                database.set_rollback(True)
    except DatabaseError as error:
        raise ServiceUnavailable(f"The change was not stored, because the database failed: {error}.") from error


@contextmanager
def change(
    actor: Actor, verb: str, resource: Resource, namespace: str, name: str, *, dry_run: bool
) -> Iterator[AuditedChange]:
    """One transaction for a change of one object, and its row of the audit, which one that fails leaves as well."""
    target = {"metadata": {"namespace": namespace, "name": name}}
    with audit_trail.following(actor, verb, resource, target, quiet=dry_run) as step, transaction(dry_run):
        yield step


def stored(actor: Actor, verb: str, resource: Resource, namespace: str, name: str) -> Stored:
    """Return the object that is to be changed."""
    try:
        return store.get(resource, namespace if resource.namespaced else "", name)
    except NotFound:
        missing(actor, verb, resource, namespace, name)


def missing(actor: Actor, verb: str, resource: Resource, namespace: str, name: str) -> NoReturn:
    """Raise NotFound, or Forbidden for who may not learn whether an object exists."""
    right_namespace = rights.right_namespace(resource, namespace, name)
    if node := access.node_of(actor):
        nodes.require(node, verb, resource.id, right_namespace, name)
    elif not access.allowed(actor, "get", resource, right_namespace):
        access.require(actor, verb, resource, right_namespace, name)
    raise NotFound.of(resource.id, name)
