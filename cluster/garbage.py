"""Deleting what belongs to something that is gone (reference: kubernetes-api §4.6).

An object whose owners are all gone is deleted; one that still has an owner
loses the references that dangle. An owner deleted in the foreground stays
until its dependents are gone; one deleted with Orphan leaves them behind.
Large families go in batches, so that no transaction is long.

An owner that waits for its dependents is looked at again when one of them
goes, and now and then by a timer, which outlives this process.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from cluster.consumer import RETRY, Consumer, Plan, Timer
from cluster.store import Create, Delete, Group, Patch, sql, store
from kube import events, resources
from kube.kinds.fields import View
from kube.meta import OwnerReference
from kube.resources import EVENTS, PODS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cluster.store import Change, Stored

NAME = "garbage"
ROOM = 1000  # dependents dealt with in one transaction
RECHECK_MS = 30_000
MOST_ALIVE = 200_000  # uids remembered; forgetting them costs a query each
FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
_MARK = b'"deletionTimestamp"'
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
class State:
    """What is known without asking the store. Losing it costs time, nothing else."""

    alive: set[str] = field(default_factory=set)
    gone: dict[str, None] = field(default_factory=dict)  # uids whose dependents are to be dealt with
    waiting: dict[str, Owner] = field(default_factory=dict)
    due: dict[str, None] = field(default_factory=dict)  # waiting owners to look at


class GarbageCollector(Consumer[State]):
    """Collects dependents of vanished owners, of all kinds that have owners."""

    name = NAME

    def load(self, shard: int, revision: int) -> State:
        """Find every owner that something names and nobody has seen."""
        return State(gone=dict.fromkeys(_vanished()))

    def apply(self, state: State, change: Change) -> None:
        """Leave the state alone: everything is done in plan(), which hears all changes, also after a load."""

    def plan(self, state: State, changes: Sequence[Change], timers: Sequence[Timer], now: int) -> Plan:
        """Delete dependents and release owners, as far as one transaction should reach."""
        doubtful: dict[str, None] = {}
        for change in changes:
            _note(state, change, doubtful)
        for timer in timers:
            _note_timer(state, timer, doubtful)
        _sort_out(state, doubtful)
        work = _Work(state, now)
        work.collect()
        work.release()
        if len(state.alive) > MOST_ALIVE:
            state.alive.clear()
        more = [Timer(_MORE, "", now)] if state.gone or state.due else []
        checks = [
            Timer(_OWNER, uid, now + RECHECK_MS, {"at": list(owner)})
            for uid, owner in state.waiting.items()
            if uid in work.kept or uid in state.due
        ]
        return Plan(work.groups, [*more, *checks])


def _note(state: State, change: Change, doubtful: dict[str, None]) -> None:
    if change.verb == "MODIFIED" and _MARK not in change.body:
        return
    metadata = _decode(change.body).metadata
    owners = [reference.uid for reference in metadata.owner_references]
    if change.verb == "DELETED":
        state.gone[change.uid] = None
        state.alive.discard(change.uid)
        state.waiting.pop(change.uid, None)
        state.due.update(dict.fromkeys(uid for uid in owners if uid in state.waiting))
        return
    if change.verb == "ADDED":
        doubtful.update(dict.fromkeys(uid for uid in owners if uid not in state.alive))
        if change.resource != PODS.id:  # pods are many and own next to nothing
            state.alive.add(change.uid)
    if metadata.deletion_timestamp and {FOREGROUND, ORPHAN} & set(metadata.finalizers):
        state.waiting[change.uid] = Owner(change.resource, change.namespace, change.name)
        state.due[change.uid] = None


def _note_timer(state: State, timer: Timer, doubtful: dict[str, None]) -> None:
    if timer.kind == _OWNER:
        state.waiting[timer.key] = Owner(*timer.payload["at"])
        state.due[timer.key] = None
    elif timer.kind == RETRY:
        # Of an owner that waits, or of one that is gone: the store says which.
        doubtful[timer.key] = None
        if timer.key in state.waiting:
            state.due[timer.key] = None


def _sort_out(state: State, doubtful: dict[str, None]) -> None:
    """Tell which owners of new objects exist, and drop vanished ones that nothing names."""
    unknown = [uid for uid in doubtful if uid not in state.gone]
    living = store.living(unknown)
    state.alive |= living
    state.gone |= dict.fromkeys(uid for uid in unknown if uid not in living)
    state.gone = dict.fromkeys(_named(list(state.gone)))


class _Work:
    """One round of collecting."""

    def __init__(self, state: State, now: int) -> None:
        self.state, self.now = state, now
        self.groups: list[Group] = []
        self.kept: set[str] = set()  # waiting owners that were looked at and still wait

    @property
    def room(self) -> int:
        return ROOM - len(self.groups)

    def collect(self) -> None:
        """Deal with the dependents of owners that are gone."""
        for uid in list(self.state.gone):
            wanted = self.room
            if wanted <= 0:
                return
            found = store.dependents(uid, limit=wanted)
            before = len(self.groups)
            for dependent in found:
                self._collect_one(dependent, uid)
            if len(found) < wanted or len(self.groups) == before:
                del self.state.gone[uid]

    def _collect_one(self, dependent: Stored, gone: str) -> None:
        metadata = dependent.read(_Object).metadata
        if metadata.deletion_timestamp:
            return
        references = metadata.owner_references
        misplaced = [reference for reference in references if _is_misplaced(dependent, reference)]
        if misplaced:
            self._tell_misplaced(dependent, misplaced[0])
            return
        others = [reference.uid for reference in references if reference.uid != gone]
        living = store.living(others) if others else frozenset()
        if living:
            kept = [reference for reference in references if reference.uid in living]
            self._keep_references(dependent, kept, gone)
        else:
            self._delete(dependent)

    def release(self) -> None:
        """Let go of owners whose dependents are gone, or are to be left alone."""
        for uid in list(self.state.due):
            if self.room <= 0:
                return
            del self.state.due[uid]
            owner = self.state.waiting.get(uid)
            found = None if owner is None else _find(owner, uid)
            if found is None:
                self.state.waiting.pop(uid, None)
                continue
            self.kept.add(uid)
            if ORPHAN in found.read(_Object).metadata.finalizers:
                self._orphan(found)
            else:
                self._delete_before(found)

    def _delete_before(self, owner: Stored) -> None:
        """Delete the dependents of an owner, and let it go when none holds it any more."""
        wanted = self.room
        found = store.dependents(owner.uid, limit=wanted)
        blocking = False
        for dependent in found:
            metadata = dependent.read(_Object).metadata
            mine = (reference for reference in metadata.owner_references if reference.uid == owner.uid)
            blocking = blocking or any(reference.block_owner_deletion for reference in mine)
            if not metadata.deletion_timestamp:
                self._delete(dependent)
        if not blocking and len(found) < wanted:
            self._drop_finalizer(owner, FOREGROUND)
        elif len(found) == wanted:
            self.state.due[owner.uid] = None

    def _orphan(self, owner: Stored) -> None:
        """Take an owner out of its dependents' references, then let it go."""
        wanted = self.room
        found = store.dependents(owner.uid, limit=wanted)
        for dependent in found:
            references = dependent.read(_Object).metadata.owner_references
            kept = [reference for reference in references if reference.uid != owner.uid]
            self._keep_references(dependent, kept, owner.uid)
        if found:
            self.state.due[owner.uid] = None
        else:
            self._drop_finalizer(owner, ORPHAN)

    def _delete(self, dependent: Stored) -> None:
        # Groups of one: a dependent that somebody else deletes first must not keep the others.
        kind = resources.of_stored(dependent.resource, dependent.object)
        self.groups.append(Group([Delete(kind, dependent.namespace, dependent.name, uid=dependent.uid)]))

    def _keep_references(self, dependent: Stored, kept: Sequence[OwnerReference], again: str) -> None:
        references = [msgspec.to_builtins(reference) for reference in kept]
        self._patch(dependent, {"metadata": {"ownerReferences": references or None}}, again)

    def _drop_finalizer(self, owner: Stored, finalizer: str) -> None:
        finalizers = [name for name in owner.read(_Object).metadata.finalizers if name != finalizer]
        self._patch(owner, {"metadata": {"finalizers": finalizers or None}}, owner.uid)

    def _patch(self, stored: Stored, patch: dict[str, Any], again: str) -> None:
        # A list is replaced whole, so it must not have changed since it was read.
        kind = resources.of_stored(stored.resource, stored.object)
        write = Patch(kind, stored.namespace, stored.name, patch, revision=stored.revision)
        self.groups.append(Group([write], again))

    def _tell_misplaced(self, dependent: Stored, reference: OwnerReference) -> None:
        message = (
            f"ownerRef {reference.kind} {reference.name} lives in a namespace and {dependent.name} does not; "
            "remove the reference or delete the object by hand."
        )
        about = dependent.object
        event = events.event(
            about,
            "OwnerRefInvalidNamespace",
            message,
            self.now,
            component="garbage-collector",
            kind=events.WARNING,
        )
        self.groups.append(Group([Create(EVENTS, event)]))


def _find(owner: Owner, uid: str) -> Stored | None:
    """Read a waiting owner again; None when it is gone or waits no longer."""
    found = store.by_keys(resources.of_stored(owner.resource, {}), [f"{owner.namespace}/{owner.name}"])
    stored = next(iter(found.values()), None)
    if stored is None or stored.uid != uid:
        return None
    waits = {FOREGROUND, ORPHAN} & set(stored.read(_Object).metadata.finalizers)
    return stored if waits else None


def _is_misplaced(dependent: Stored, reference: OwnerReference) -> bool:
    """Say whether an object of the cluster names an owner inside a namespace, where nobody would look for it."""
    if dependent.namespace:
        return False
    kind = resources.by_kind(reference.api_version, reference.kind)
    return kind is not None and kind.namespaced


def _named(uids: Sequence[str]) -> Iterator[str]:
    """Yield those of the uids that stored objects name as their owner, in the order given."""
    named: set[str] = set()
    for start in range(0, len(uids), sql.CHUNK):
        chunk = list(uids[start : start + sql.CHUNK])
        marks = sql.marks(len(chunk))
        for text in (
            f"SELECT DISTINCT owner FROM cluster_object WHERE owner IN ({marks}) AND NOT (owner = '')"  # noqa: S608  marks only
            " AND resource <> 'events'",
            f"SELECT DISTINCT owner FROM cluster_ownership WHERE owner IN ({marks})",  # noqa: S608  marks only
        ):
            named.update(row[0] for row in sql.rows(store.using, text, chunk))
    return (uid for uid in uids if uid in named)


def _vanished() -> Iterable[str]:
    """Return the uids that stored objects name as their owner and that nothing has; events belong to nobody."""
    found: set[str] = set()
    for text in (
        "SELECT DISTINCT d.owner FROM cluster_object d"
        " WHERE NOT (d.owner = '') AND d.resource <> 'events'"
        " AND NOT EXISTS (SELECT 1 FROM cluster_object o WHERE o.uid = d.owner)",
        "SELECT DISTINCT d.owner FROM cluster_ownership d"
        " WHERE NOT EXISTS (SELECT 1 FROM cluster_object o WHERE o.uid = d.owner)",
    ):
        found.update(row[0] for row in sql.rows(store.using, text))
    return sorted(found)
