"""The life of a CustomResourceDefinition: its names, its status, and its end.

A definition that is deleted stays until all objects of its kind are gone; they are deleted first, a thousand at a time.
What a definition leaves behind all the same, because somebody took its finalizer away, goes after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from cluster.api import custom_kinds
from cluster.consumers.consumer import Consumer, Plan
from cluster.store import Change, Delete, Group, Patch, Stored, Update, store
from cluster.writes import Timer
from kube import resources
from kube.custom import naming
from kube.custom.definition import CLEANUP
from kube.custom.naming import TERMINATING
from kube.lenient import texts
from kube.meta import Object
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS as DEFINITIONS

ROOM = 1000  # objects deleted in one transaction
RECHECK_MS = 1000
PAGE = 500
_ENDING = "ending"
_MARK = b'"deletionTimestamp"'


@dataclass(slots=True)
class DefinitionsState:
    """All definitions by name, and those to look at."""

    definitions: dict[str, Object]
    due: dict[str, None] = field(default_factory=dict)


class Definitions(Consumer[DefinitionsState]):
    """Keeps the status of definitions, and ends them."""

    name = "definitions"

    def load(self, shard: int, revision: int) -> DefinitionsState:
        """Read all definitions."""
        definitions = {stored.name: stored.object for stored in store.find(DEFINITIONS)}
        return DefinitionsState(definitions, dict.fromkeys(definitions))

    def apply(self, state: DefinitionsState, change: Change) -> None:
        """Take a definition's new version; the others of its group may get names that it gave up."""
        if change.verb == "DELETED":
            state.definitions.pop(change.name, None)
        else:
            state.definitions[change.name] = change.object
        group = change.name.partition(".")[2]
        state.due.update(dict.fromkeys(name for name in state.definitions if name.partition(".")[2] == group))
        state.due[change.name] = None

    def plan(self, state: DefinitionsState, changes: Sequence[Change], timers: Sequence[Timer], now: int) -> Plan:
        """Bring each definition that is due to where it belongs."""
        custom_kinds.reload()
        names = dict.fromkeys([*state.due, *(change.name for change in changes), *(t.key for t in timers)])
        state.due.clear()
        groups: list[Group] = []
        again: list[Timer] = []
        for name in names:
            crd = state.definitions.get(name)
            if crd is not None and not crd["metadata"].get("deletionTimestamp"):
                others = (other for key, other in state.definitions.items() if key != name)
                status = naming.status(crd, naming.names_in_use(crd["spec"]["group"], others), now)
                if status != crd.get("status"):
                    groups.append(Group([Update(DEFINITIONS, {**crd, "status": status}, "status")], name))
                continue
            ending = list(_delete_objects(name) if crd is None else _end(crd, now))
            groups += ending
            if ending or (crd is not None and CLEANUP in texts(crd, "metadata", "finalizers")):
                again.append(Timer(_ENDING, name, now + RECHECK_MS))
        return Plan(groups, again)


def _end(crd: Object, now: int) -> Iterator[Group]:
    """Delete the objects of a kind, or let its definition go when there are none."""
    name = crd["metadata"]["name"]
    old = crd.get("status") or {}
    if CLEANUP not in texts(crd, "metadata", "finalizers"):
        return
    if store.find(resources.of_stored(name, {}), limit=1):
        reason, message = "InstanceDeletionInProgress", "CustomResource deletion is in progress"
        status = naming.with_condition(old, TERMINATING, "True", reason, message, now)
        if status != old:
            yield Group([Update(DEFINITIONS, {**crd, "status": status}, "status")], name)
        yield from _delete_objects(name)
        return
    status = naming.with_condition(old, TERMINATING, "False", "InstanceDeletionCompleted", "removed all instances", now)
    finalizers = [one for one in texts(crd, "metadata", "finalizers") if one != CLEANUP]
    yield Group(
        [
            Update(DEFINITIONS, {**crd, "status": status}, "status"),
            Patch(DEFINITIONS, "", name, {"metadata": {"finalizers": finalizers or None}}),
        ],
        name,
    )


def _delete_objects(id: str) -> list[Group]:  # noqa: A002  a resource's
    """Return the deletions of up to ROOM objects of a kind that nobody has deleted yet."""
    living: list[Stored] = []
    offset = 0
    while batch := store.find(resources.of_stored(id, {}), order="created", limit=PAGE, offset=offset):
        living += (one for one in batch if _MARK not in one.body)
        if len(living) >= ROOM:
            break
        offset += PAGE
    return [
        Group([Delete(resources.of_stored(id, one.object), one.namespace, one.name, uid=one.uid)])
        for one in living[:ROOM]
    ]
