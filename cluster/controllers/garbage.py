"""Deleting what belongs to something that is gone (reference: kubernetes-api §4.6).

An object whose owners are all gone is deleted; one that still has an owner loses the references that dangle. An owner
deleted in the foreground stays until the dependents that block it are gone, and no longer counts as an owner meanwhile;
one deleted with Orphan leaves its dependents behind. What is done to a dependent follows from the references that it
names when it is done. Large families go in batches, so that no transaction is long.

An owner that waits for its dependents is looked at again when one of them
goes, and now and then by a timer, which outlives this process.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from cluster.consumers.consumer import RETRY, Consumer, Plan
from cluster.store import Change, Create, Delete, Group, Patch, Stored, sql, store
from cluster.writes import Timer
from kube import events, resources
from kube.kinds.fields import View
from kube.kinds.meta import OwnerReference
from kube.resources import EVENTS, PODS

NAME = "garbage"
ROOM = 1000  # dependents dealt with in one transaction
RECHECK_MS = 30_000
MAX_ALIVE = 200_000  # uids remembered; forgetting them costs a query each
FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
_OWNER, _MORE = "owner", "more"


class _Metadata(View):
    uid: str = ""
    deletion_timestamp: str = ""
    finalizers: list[str] = []
    owner_references: list[OwnerReference] = []


class _Object(View):
    metadata: _Metadata = _Metadata()


_decode = msgspec.json.Decoder(_Object).decode


class Owner(NamedTuple):
    """Where an owner is that waits for its dependents."""

    resource: str
    namespace: str
    name: str


@dataclass(slots=True)
class GarbageState:
    """What needs no query of the store. Losing it costs time, nothing else."""

    alive: set[str] = field(default_factory=set)
    # Uids whose dependents are to be dealt with, and the revision up to which they have been.
    gone: dict[str, int] = field(default_factory=dict)
    waiting: dict[str, Owner] = field(default_factory=dict)
    due: dict[str, int] = field(default_factory=dict)  # waiting owners to look at; the same of their dependents


class GarbageCollector(Consumer[GarbageState]):
    """Collects dependents of vanished owners, of all kinds that have owners."""

    name = NAME

    def load(self, shard: int, revision: int) -> GarbageState:
        """Find every owner that something names and nobody has seen."""
        return GarbageState(gone=dict.fromkeys(_vanished(), 0))

    def apply(self, state: GarbageState, change: Change) -> None:
        """Leave the state alone: everything is done in plan(), which hears all changes, also after a load."""

    def plan(self, state: GarbageState, changes: Sequence[Change], timers: Sequence[Timer], now: int) -> Plan:
        """Delete dependents and release owners, as far as one transaction should reach."""
        doubtful: dict[str, None] = {}
        for change in changes:
            _note(state, change, doubtful)
        for timer in timers:
            if timer.kind == _OWNER:
                state.waiting[timer.key] = Owner(*timer.payload["at"])
                state.due[timer.key] = 0
            elif timer.kind == RETRY:
                # Of an owner that waits, or of one that is gone: the store says which.
                doubtful[timer.key] = None
                if timer.key in state.waiting:
                    state.due[timer.key] = 0
        unknown = [uid for uid in doubtful if uid not in state.gone]
        living = store.living(unknown)
        state.alive |= living
        state.gone |= dict.fromkeys((uid for uid in unknown if uid not in living), 0)
        named = _named(list(state.gone))  # what nothing names has no dependents
        state.gone = {uid: reached for uid, reached in state.gone.items() if uid in named}
        work = _Work(state, now)
        work.collect()
        work.release()
        if len(state.alive) > MAX_ALIVE:
            state.alive.clear()
        more = [Timer(_MORE, "", now)] if state.gone or state.due else []
        checks = [
            Timer(_OWNER, uid, now + RECHECK_MS, {"at": list(owner)})
            for uid, owner in state.waiting.items()
            if uid in work.still_waiting or uid in state.due
        ]
        return Plan(work.groups, [*more, *checks])


def _note(state: GarbageState, change: Change, doubtful: dict[str, None]) -> None:
    metadata = _decode(change.body).metadata
    owners = [reference.uid for reference in metadata.owner_references]
    if change.verb == "DELETED":
        state.gone[change.uid] = 0
        state.alive.discard(change.uid)
        state.waiting.pop(change.uid, None)
        state.due.update(dict.fromkeys((uid for uid in owners if uid in state.waiting), 0))
        return
    # Also of a change: it may have brought a reference.
    doubtful.update(dict.fromkeys(uid for uid in owners if uid not in state.alive))
    if change.verb == "ADDED" and change.resource != PODS.id:  # pods are many and own next to nothing
        state.alive.add(change.uid)
    if metadata.deletion_timestamp and {FOREGROUND, ORPHAN} & set(metadata.finalizers):
        state.waiting[change.uid] = Owner(change.resource, change.namespace, change.name)
        state.due[change.uid] = 0


class _Work:
    """One round of collecting."""

    def __init__(self, state: GarbageState, now: int) -> None:
        self.state, self.now = state, now
        self.groups: list[Group] = []
        self.room = ROOM  # objects that may still be looked at
        self.still_waiting: set[str] = set()  # waiting owners that were looked at and still wait

    def collect(self) -> None:
        """Deal with the dependents of owners that are gone."""
        for uid, after in list(self.state.gone.items()):
            if self.room <= 0:
                return
            dependents, reached = self._dependents(uid, after)
            for dependent in dependents:
                if dependent.read(_Object).metadata.deletion_timestamp:
                    continue
                if (misplaced := _misplaced(dependent)) is None:
                    self._let_go(dependent, uid, uid)
                else:
                    self._tell_misplaced(dependent, misplaced)
            if reached is None:
                del self.state.gone[uid]
            else:
                self.state.gone[uid] = reached

    def _dependents(self, uid: str, after: int) -> tuple[list[Stored], int | None]:
        """Return a batch of the objects that name uid as their owner, but itself, and how far it reaches (None: to the end).

        What is written gets a newer revision, so it is seen once more, and the end is reached.
        """
        wanted = self.room
        naming = store.dependents(uid, after=after, limit=wanted)
        self.room -= len(naming) or 1
        mine = [
            each
            for each in naming
            if each.uid != uid and any(owner.uid == uid for owner in each.read(_Object).metadata.owner_references)
        ]
        return mine, naming[-1].revision if len(naming) == wanted else None

    def _let_go(self, dependent: Stored, owner: str, again: str) -> bool:
        """Delete a dependent of an owner that goes; say whether another owner keeps it."""
        references = dependent.read(_Object).metadata.owner_references
        others = [reference.uid for reference in references if reference.uid != owner]
        living = store.living(others) if others else frozenset()
        remaining = [each for each in references if each.uid in living and not self._is_going(each.uid)]
        if remaining:
            self._keep_references(dependent, remaining, again)
        else:
            self._delete(dependent, again)
        return bool(remaining)

    def _is_going(self, uid: str) -> bool:
        """Say whether an owner waits for its dependents to go: such a one keeps nothing."""
        owner = self._find(uid)
        return owner is not None and ORPHAN not in owner.read(_Object).metadata.finalizers

    def _find(self, uid: str) -> Stored | None:
        """Read a waiting owner again; None when it is gone or waits no longer."""
        owner = self.state.waiting.get(uid)
        if owner is None:
            return None
        key = f"{owner.namespace}/{owner.name}"
        stored = store.by_keys(resources.of_stored(owner.resource, {}), [key]).get(key)
        if stored is None or stored.uid != uid:
            return None
        waits = {FOREGROUND, ORPHAN} & set(stored.read(_Object).metadata.finalizers)
        return stored if waits else None

    def release(self) -> None:
        """Let go of owners whose dependents are gone, or are to be left alone."""
        for uid, after in list(self.state.due.items()):
            if self.room <= 0:
                return
            del self.state.due[uid]
            owner = self._find(uid)
            if owner is None:
                self.state.waiting.pop(uid, None)
                continue
            self.still_waiting.add(uid)
            if ORPHAN in owner.read(_Object).metadata.finalizers:
                self._orphan(owner)
            else:
                self._delete_before(owner, after)

    def _delete_before(self, owner: Stored, after: int) -> None:
        """Delete the dependents of an owner, and let it go when none holds it any more."""
        dependents, reached = self._dependents(owner.uid, after)
        blocking = parted = False
        for dependent in dependents:
            if _misplaced(dependent) is not None:
                continue
            metadata = dependent.read(_Object).metadata
            mine = (reference for reference in metadata.owner_references if reference.uid == owner.uid)
            blocking = blocking or any(reference.block_owner_deletion for reference in mine)
            if not metadata.deletion_timestamp:
                parted = self._let_go(dependent, owner.uid, owner.uid) or parted
        if reached is not None:
            self.state.due[owner.uid] = reached
        elif parted:
            self.state.due[owner.uid] = 0
        elif not blocking and not after:
            self._drop_finalizer(owner, FOREGROUND)

    def _orphan(self, owner: Stored) -> None:
        """Take an owner out of its dependents' references, then let it go."""
        dependents, reached = self._dependents(owner.uid, 0)
        for dependent in dependents:
            references = dependent.read(_Object).metadata.owner_references
            remaining = [reference for reference in references if reference.uid != owner.uid]
            self._keep_references(dependent, remaining, owner.uid)
        if dependents or reached is not None:
            self.state.due[owner.uid] = 0
        else:
            self._drop_finalizer(owner, ORPHAN)

    def _delete(self, dependent: Stored, again: str) -> None:
        # Groups of one: a dependent that somebody else deletes first must not keep the others. And only as it
        # was read: since then it may have got an owner that lives, or lost the one that goes.
        kind = resources.of_stored(dependent.resource, dependent.object)
        write = Delete(kind, dependent.namespace, dependent.name, uid=dependent.uid, version=dependent.version)
        self.groups.append(Group([write], again))

    def _keep_references(self, dependent: Stored, remaining: Sequence[OwnerReference], again: str) -> None:
        references = [msgspec.to_builtins(reference) for reference in remaining]
        self._patch(dependent, {"metadata": {"ownerReferences": references or None}}, again)

    def _drop_finalizer(self, owner: Stored, finalizer: str) -> None:
        finalizers = [name for name in owner.read(_Object).metadata.finalizers if name != finalizer]
        self._patch(owner, {"metadata": {"finalizers": finalizers or None}}, owner.uid)

    def _patch(self, stored: Stored, patch: dict[str, Any], again: str) -> None:
        # A list is replaced whole, so it must not have changed since it was read.
        kind = resources.of_stored(stored.resource, stored.object)
        write = Patch(kind, stored.namespace, stored.name, patch, version=stored.version)
        self.groups.append(Group([write], again))

    def _tell_misplaced(self, dependent: Stored, reference: OwnerReference) -> None:
        message = (
            f"ownerRef {reference.kind} {reference.name} lives in a namespace and {dependent.name} does not; "
            "remove the reference or delete the object by hand."
        )
        about = dependent.object
        event = events.event(
            about, "OwnerRefInvalidNamespace", message, self.now, component="garbage-collector", kind=events.WARNING
        )
        self.groups.append(Group([Create(EVENTS, event)]))


def _misplaced(dependent: Stored) -> OwnerReference | None:
    """Return the owner inside a namespace that an object of the cluster names, where nobody would look for it."""
    if dependent.namespace:
        return None
    for reference in dependent.read(_Object).metadata.owner_references:
        kind = resources.by_kind(reference.api_version, reference.kind)
        if kind is not None and kind.namespaced:
            return reference
    return None


def _named(uids: Sequence[str]) -> set[str]:
    """Return those of the uids that stored objects name as their owner."""
    texts = (
        "SELECT DISTINCT owner FROM cluster_object WHERE owner IN () AND NOT (owner = '') AND resource <> 'events'",
        "SELECT DISTINCT owner FROM cluster_ownership WHERE owner IN ()",
    )
    return {owner for text in texts for (owner,) in sql.rows_among(store.using, text, uids)}


def _vanished() -> Iterable[str]:
    """Return the uids that stored objects name as their owner and that nothing has; events belong to nobody."""
    uids: set[str] = set()
    for text in (
        "SELECT DISTINCT d.owner FROM cluster_object d"
        " WHERE NOT (d.owner = '') AND d.resource <> 'events'"
        " AND NOT EXISTS (SELECT 1 FROM cluster_object o WHERE o.uid = d.owner)",
        "SELECT DISTINCT d.owner FROM cluster_ownership d"
        " WHERE NOT EXISTS (SELECT 1 FROM cluster_object o WHERE o.uid = d.owner)",
    ):
        uids.update(row[0] for row in sql.rows(store.using, text))
    return sorted(uids)
