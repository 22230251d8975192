"""The audit rows of `cluster.api`: what is written about a change, done or not."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from django.db import DatabaseError

from cluster import access
from cluster.access import Actor, audit
from cluster.access.audit import Deed
from cluster.backend import Creation
from cluster.models import AuditEntry
from cluster.store import Stored
from kube import lenient, resources
from kube.errors import ApiError, Forbidden
from kube.meta import Object
from kube.resources import Resource

# Programs write these by themselves, every few seconds: what is done to them says nothing of anybody.
UNAUDITED = frozenset({resources.EVENTS.id, resources.LEASES.id})
log = logging.getLogger(__name__)


class AuditedChange:
    """One change on its way; `done` is called inside its transaction."""

    def __init__(self, actor: Actor, verb: str, resource: Resource, obj: Object, *, quiet: bool) -> None:
        self._about = (actor, verb, resource, obj)
        self._quiet = quiet

    def done(self, old: Stored | None, new: Stored) -> None:
        """Write that old became new; old is None where nothing is compared."""
        actor, verb, resource, _ = self._about
        if self._quiet or not _is_audited(actor, resource):
            return
        entry = _entry(actor, verb, resource, new.object, new)
        if old is not None:
            entry.changes = audit.changes(old.object, new.object, secret=resource is resources.SECRETS)
        audit.record(entry)

    def failed(self, error: ApiError) -> None:
        """Write that the change was denied or refused."""
        if self._quiet or error.code >= 500 or _is_retried(self._about[0], error):
            return
        try:
            audit.record(_failure(*self._about, error))
        except DatabaseError:
            # Who asked gets the reason of the refusal, not that it could not be written down.
            log.exception("audit row not written")


@contextmanager
def following(actor: Actor, verb: str, resource: Resource, obj: Object, *, quiet: bool) -> Iterator[AuditedChange]:
    """Leave a row about what happens in the block: the block's own when it is done, otherwise why it was not."""
    step = AuditedChange(actor, verb, resource, obj, quiet=quiet)
    try:
        yield step
    except ApiError as error:
        step.failed(error)
        raise


def many(
    actor: Actor, verb: str, resource: Resource, objs: Sequence[Object], outcomes: Sequence[Stored | ApiError]
) -> None:
    """Write a row for each object that was changed, and one for each kind of refusal with its count."""
    rows = []
    refused: dict[tuple[str, str], Deed] = {}
    for obj, outcome in zip(objs, outcomes, strict=True):
        if not isinstance(outcome, ApiError):
            rows.append(_entry(actor, verb, resource, obj, outcome))
            continue
        entry = _failure(actor, verb, resource, obj, outcome)
        first = refused.setdefault((entry.namespace, outcome.reason), entry)
        if first is not entry:
            first.count += 1
    audit.record_many([*rows, *refused.values()])


def owned(actor: Actor, owner: Stored, resource: Resource, objs: Sequence[Stored]) -> None:
    """Write one row, with their count, for all that an object owns from its creation on."""
    if not objs:
        return
    row = _entry(actor, "create", resource, objs[0].object, objs[0])
    if len(objs) > 1:
        row.name, row.uid, row.count = f"{objs[0].name} … {objs[-1].name}", "", len(objs)
    row.message = f"{row.message} Owned by {owner.resource} {owner.name}.".strip()
    audit.record(row)


def each(verb: str, creations: Sequence[Creation], outcomes: Sequence[Stored | Exception]) -> None:
    """Write the rows that each creation would leave alone, in one statement."""
    rows = []
    for (actor, resource, obj, *_), outcome in zip(creations, outcomes, strict=True):
        if isinstance(outcome, ApiError):
            if outcome.code < 500 and not _is_retried(actor, outcome):
                rows.append(_failure(actor, verb, resource, obj, outcome))
        elif not isinstance(outcome, Exception) and _is_audited(actor, resource):
            rows.append(_entry(actor, verb, resource, outcome.object, outcome))
    audit.record_many(rows)


def _is_audited(actor: Actor, resource: Resource) -> bool:
    """Whether a change is a person's doing; what nodes do follows from what people did."""
    return resource.id not in UNAUDITED and not access.node_of(actor)


def _is_retried(actor: Actor, error: ApiError) -> bool:
    """Whether a refusal only says that a node's copy was behind: the node reads the object and tries again."""
    return bool(access.node_of(actor)) and error.reason != Forbidden.reason


def last_writer(resource: Resource, stored: Stored) -> str:
    """Return who last changed an object, "" when it was the system or is not known."""
    about = AuditEntry.objects.filter(resource=resource.id, namespace=stored.namespace, name=stored.name)
    last = about.filter(revision=stored.revision).values_list("actor", flat=True).first()
    return last or ""


def last_editor(resource: Resource, stored: Stored) -> str:
    """Return who last changed an object otherwise than by its status, "" when the audit does not know of anybody."""
    about = AuditEntry.objects.filter(resource=resource.id, namespace=stored.namespace, name=stored.name)
    edits = about.filter(verb__in=("update", "patch", "apply"), outcome="done", uid=stored.uid)
    return edits.order_by("-at").values_list("actor", flat=True).first() or ""


def _failure(actor: Actor, verb: str, resource: Resource, obj: Any, error: ApiError) -> Deed:
    entry = _entry(actor, verb, resource, obj, None)
    entry.outcome = "denied" if error.reason == Forbidden.reason else "refused"
    entry.message = f"{entry.message} {error.noted}".strip()
    return entry


def _entry(actor: Actor, verb: str, resource: Resource, obj: Any, stored: Stored | None) -> Deed:
    """Return a row about an object, which need not be well shaped. A Command is a deed done to its target."""
    metadata = lenient.mapping(obj, "metadata")
    target = lenient.mapping(obj, "target") if resource is resources.COMMANDS and verb == "create" else {}
    aim = resources.by_kind(str(target.get("apiVersion") or ""), str(target.get("kind") or ""))
    namespace = (str(metadata.get("namespace") or "default")) if resource.namespaced else ""
    row = Deed(
        actor=actor.real or actor.name,
        verb=verb,
        resource=resource.id,
        namespace=stored.namespace if stored else namespace,
        name=stored.name if stored else str(metadata.get("name") or metadata.get("generateName") or ""),
        uid=stored.uid if stored else "",
        revision=stored.revision if stored else None,
        message=f"As {actor.name}." if actor.real else "",
    )
    if aim is not None:
        row.verb, row.resource = str(obj.get("action") or "command")[:32], aim.id
        row.name, row.uid = str(target.get("name") or ""), str(target.get("uid") or "")[:36]
        row.namespace = row.namespace if aim.namespaced else ""
        row.revision = None
    return row
