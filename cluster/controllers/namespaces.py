"""Namespaces from their first to their last object (reference: kubernetes-api §4.6).

Every namespace that is in use gets its finalizer, its label, the service account `default` and, where the API has an
authority of its own, its certificate in the config map `kube-root-ca.crt`. One that is being deleted is emptied, owners
first and kind by kind, custom ones included; pods get their grace, and objects with finalizers wait for whoever put
them there. When nothing is left the finalizer `kubernetes` goes, and with the last finalizer the namespace.

Controllers write to the store directly, so something may still be made in a
namespace that is about to go. What is found in it afterwards is deleted too.

All that is known is in the store: a new process goes on where another ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings

from cluster.api import custom_kinds
from cluster.consumers.consumer import RETRY, Consumer, Plan
from cluster.rules.namespaces import FINALIZER, NAME_LABEL
from cluster.rules.pod.pods import DEFAULT_ACCOUNT
from cluster.store import Change, Create, Delete, Group, Patch, Stored, Update, store
from cluster.writes import Timer
from kube import meta, resources
from kube.kinds.fields import View
from kube.meta import Object
from kube.resources import CONFIGMAPS, NAMESPACES, SERVICE_ACCOUNTS, Resource

NAME = "namespaces"
AUTHORITY = "kube-root-ca.crt"
# What every namespace has, by its kind.
REQUIRED = {SERVICE_ACCOUNTS.id: DEFAULT_ACCOUNT, CONFIGMAPS.id: AUTHORITY}
ROOM = 1000  # objects deleted in one transaction
_MAKERS = (resources.CRON_JOBS, resources.JOB_FLOWS)  # they go first, as they make jobs
SOONEST_MS, LATEST_MS = 200, 5000  # between two looks at a namespace that waits for its pods
AFTER_MS = 10_000  # when a namespace that is gone is looked into again
MAX_LOOKS = 30
_LOOK, _GONE = "look", "gone"


class _Metadata(View):
    deletion_timestamp: str = ""
    finalizers: list[str] = []


class _Object(View):
    metadata: _Metadata = _Metadata()


@dataclass(slots=True)
class NamespacesState:
    """What needs no query of the store. Losing it costs time, nothing else."""

    due: dict[str, None] = field(default_factory=dict)
    waits: dict[str, int] = field(default_factory=dict)  # milliseconds until the next look, by namespace


@dataclass(slots=True)
class Content:
    """What is left in a namespace."""

    counts: dict[str, int] = field(default_factory=dict)  # by resource
    finalizers: dict[str, int] = field(default_factory=dict)
    deletions: list[Group] = field(default_factory=list)


class NamespaceController(Consumer[NamespacesState]):
    """Equips namespaces and empties those that go."""

    name = NAME

    def load(self, shard: int, revision: int) -> NamespacesState:
        """Look at every namespace once."""
        return NamespacesState(due={stored.name: None for stored in store.find(NAMESPACES)})

    def apply(self, state: NamespacesState, change: Change) -> None:
        """Leave the state alone: plan() hears all changes, also after a load."""

    def plan(self, state: NamespacesState, changes: Sequence[Change], timers: Sequence[Timer], now: int) -> Plan:
        """Do the next step for each namespace that something happened to."""
        plan: tuple[list[Group], list[Timer]] = ([], [])
        for change in changes:
            self._note(state, change, plan[1], now)
        for timer in timers:
            if timer.kind in (_LOOK, RETRY):
                state.due[timer.key] = None
        names = list(state.due)
        namespaces = store.by_keys(NAMESPACES, [f"/{name}" for name in names])
        for name in names:
            stored = namespaces.get(f"/{name}")
            if stored is None:
                state.waits.pop(name, None)
            elif "deletionTimestamp" in stored.object["metadata"]:
                self._empty(state, stored, plan, now)
            else:
                plan[0].extend(_missing(stored.object))
        for timer in timers:
            if timer.kind == _GONE:
                self._look_after(timer, plan, now)
        state.due.clear()
        return Plan(*plan)

    def _note(self, state: NamespacesState, change: Change, timers: list[Timer], now: int) -> None:
        if change.resource == NAMESPACES.id:
            state.due[change.name] = None
            if change.verb == "DELETED":
                timers.append(Timer(_GONE, change.name, now + AFTER_MS, {"looks": 1}))
        elif change.name == REQUIRED[change.resource]:
            state.due[change.namespace] = None

    def _empty(self, state: NamespacesState, stored: Stored, plan: tuple[list[Group], list[Timer]], now: int) -> None:
        """Delete what is in a namespace, or let it go when there is nothing any more."""
        name, namespace = stored.name, stored.object
        left = content(name)
        plan[0].extend(left.deletions)
        others = [each for each in (namespace.get("spec") or {}).get("finalizers") or () if each != FINALIZER]
        if left.counts or others:
            plan[0].extend(_with_conditions(namespace, left, now))
        if not left.counts:
            if others != ((namespace.get("spec") or {}).get("finalizers") or []):
                metadata = {"name": name, "uid": namespace["metadata"]["uid"]}
                shell = {"metadata": metadata, "spec": {"finalizers": others}}
                plan[0].append(Group([Update(NAMESPACES, shell, "finalize")], name))
            return
        wait = 0 if left.deletions else min(state.waits.get(name, SOONEST_MS // 2) * 2, LATEST_MS)
        state.waits[name] = wait or SOONEST_MS // 2
        plan[1].append(Timer(_LOOK, name, now + wait))

    def _look_after(self, timer: Timer, plan: tuple[list[Group], list[Timer]], now: int) -> None:
        """Delete what was made in a namespace while it went; one of the same name may exist again."""
        name = timer.key
        if store.by_keys(NAMESPACES, [f"/{name}"]):
            return
        left = content(name)
        plan[0].extend(left.deletions)
        looks = int(timer.payload.get("looks", 1))
        if left.counts and looks < MAX_LOOKS:
            plan[1].append(Timer(_GONE, name, now + AFTER_MS, {"looks": looks + 1}))


def _missing(namespace: Object) -> Iterator[Group]:
    """Yield the writes that give a namespace what every namespace has."""
    metadata, name = namespace["metadata"], namespace["metadata"]["name"]
    patch: dict[str, Any] = {}
    if (metadata.get("labels") or {}).get(NAME_LABEL) != name:
        patch["metadata"] = {"labels": {NAME_LABEL: name}}
    if not (namespace.get("spec") or {}).get("finalizers"):
        patch["spec"] = {"finalizers": [FINALIZER]}
    if patch:
        yield Group([Patch(NAMESPACES, "", name, patch, uid=metadata["uid"])], name)
    if not (namespace.get("status") or {}).get("phase"):
        active = {"status": {"phase": "Active"}}
        yield Group([Patch(NAMESPACES, "", name, active, "status", metadata["uid"])], name)
    if not store.by_keys(SERVICE_ACCOUNTS, [f"{name}/{DEFAULT_ACCOUNT}"]):
        account = {"metadata": {"namespace": name, "name": DEFAULT_ACCOUNT}}
        yield Group([Create(SERVICE_ACCOUNTS, account)], name)
    # By it programs in the namespace find the authority that the API's certificate is from.
    if text := authority_text():
        key, data = f"{name}/{AUTHORITY}", {"ca.crt": text}
        config_map = store.by_keys(CONFIGMAPS, [key]).get(key)
        old = (config_map.object.get("data") or {}) if config_map else {}
        if config_map is None:
            config = {"metadata": {"namespace": name, "name": AUTHORITY}, "data": data}
            yield Group([Create(CONFIGMAPS, config)], name)
        elif old != data:
            yield Group([Patch(CONFIGMAPS, name, AUTHORITY, {"data": dict.fromkeys(old) | data})], name)


def authority_text() -> str:
    """Return the certificate of the API's authority; "" when there is none, or clients know it already."""
    path = settings.API_CERTIFICATE_CA
    if settings.API_CERTIFICATE is None and path is None:
        path = settings.DATA / "pki" / "ca.crt"
    try:
        return str(path.read_text()) if path else ""
    except OSError:
        return ""


def content(namespace: str) -> Content:
    """Return what is left in a namespace, with the deletions that one transaction should hold."""
    # Owners go before what they own, events last.
    first = (*_MAKERS, resources.JOBS, resources.BATCH_JOBS, resources.POD_GROUPS)
    last = (resources.PODS, resources.EVENTS)
    between = [kind for kind in custom_kinds.namespaced() if kind not in (*first, *last)]
    left = Content()
    for kind in (*first, *between, *last):
        number = sum(store.count(kind, namespace=namespace).values())
        if number:
            left.counts[kind.id] = number
            _note_kind(kind, namespace, left)
    return left


def _note_kind(kind: Resource, namespace: str, left: Content) -> None:
    """Note what holds the objects of one kind, and delete those that nobody has deleted yet."""
    offset = 0
    while True:
        page = store.find(kind, namespace=namespace, limit=ROOM, offset=offset)
        for stored in page:
            metadata = stored.read(_Object).metadata
            if not metadata.deletion_timestamp and len(left.deletions) < ROOM:
                # Groups of one: an object that somebody else deletes first must not keep the others.
                left.deletions.append(Group([Delete(kind, namespace, stored.name, uid=stored.uid)]))
            for name in metadata.finalizers:
                left.finalizers[name] = left.finalizers.get(name, 0) + 1
        offset += len(page)
        if len(page) < ROOM or len(left.deletions) >= ROOM:
            return


_WELL = (  # conditions that are False where all goes well: type, reason and message, in Kubernetes' words
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    ("NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
    ("NamespaceDeletionContentFailure", "ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
    ("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed"),
    ("NamespaceFinalizersRemaining", "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
)  # fmt: skip


def _with_conditions(namespace: Object, left: Content, now: int) -> Iterator[Group]:
    """Yield the write that says in the namespace's conditions what it waits for."""
    metadata = namespace["metadata"]
    before = {each["type"]: each for each in (namespace.get("status") or {}).get("conditions") or ()}
    objects = ", ".join(
        f"{resource if '.' in resource else resource + '.'} has {number} resource instances"
        for resource, number in sorted(left.counts.items())
    )
    finalizers = ", ".join(f"{name} in {number} resource instances" for name, number in sorted(left.finalizers.items()))
    waits_for = {}
    if objects:
        waits_for["NamespaceContentRemaining"] = "SomeResourcesRemain", f"Some resources are remaining: {objects}"
    if finalizers:
        text = f"Some content in the namespace has finalizers remaining: {finalizers}"
        waits_for["NamespaceFinalizersRemaining"] = "SomeFinalizersRemain", text
    conditions = []
    for kind, *well in _WELL:
        status = "True" if kind in waits_for else "False"
        reason, message = waits_for.get(kind, well)
        old = before.get(kind, {})
        since = (old.get("lastTransitionTime") if old.get("status") == status else None) or meta.timestamp(now)
        condition = {"type": kind, "status": status, "reason": reason, "message": message}
        conditions.append({**condition, "lastTransitionTime": since})
    if conditions != list(before.values()):
        patch = {"status": {"conditions": conditions}}
        yield Group([Patch(NAMESPACES, "", metadata["name"], patch, "status", metadata["uid"])])
