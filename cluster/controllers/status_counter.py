"""Consumers that keep numbers in the status of objects which are about others of their namespace.

What changes in a namespace that has such an object makes its numbers stale; they are then counted anew from the store.
A namespace without one costs a dictionary lookup a change; one in which much happens is counted now and then, the
seldomer the more there is to count.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil

import msgspec

from cluster import clock
from cluster.consumers.consumer import Consumer, Plan
from cluster.store import Change, Group, Update, store
from cluster.writes import Timer
from kube import lenient, meta
from kube.kinds.fields import View
from kube.kinds.pod import ENDED
from kube.meta import Object
from kube.resources import PODS, Resource

SOONEST_S = 0.2  # between two counts of a namespace
_COUNT = "count"
SHARE = 10  # a namespace may take one part in so many of the worker process' time


class _Status(View):
    phase: str = ""


class _Pod(View):
    status: _Status = _Status()


_phase = msgspec.json.Decoder(_Pod).decode


def condition(
    before: Object, kind: str, reason: str, message: str, now: int, *, holds: bool, generation: int
) -> Object:
    """Return a condition for a status that was `before` so far; its transition is as old as its value."""
    value = "True" if holds else "False"
    old: Object = next((each for each in lenient.sequence(before, "conditions") if each.get("type") == kind), {})
    since = old.get("lastTransitionTime") if old.get("status") == value else None
    return {
        "type": kind,
        "status": value,
        "reason": reason,
        "message": message,
        "observedGeneration": generation,
        "lastTransitionTime": since or meta.timestamp(now),
    }


def status_update(kind: Resource, obj: Object, status: Object) -> Update:
    """Return the write that gives an object this status, if it is the one with its uid."""
    metadata = {key: obj["metadata"][key] for key in ("namespace", "name", "uid") if key in obj["metadata"]}
    about = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}
    return Update(kind, {**about, "status": status}, "status")


@dataclass(slots=True)
class CountersState:
    """Where there is something to keep, what is stale, and when a namespace may be counted again.

    That is by the monotonic clock: one that is set back would hold the numbers up.
    """

    names: dict[str, dict[str, object]] = field(default_factory=dict)  # namespace → name → spec
    stale: dict[str, None] = field(default_factory=dict)
    earliest: dict[str, float] = field(default_factory=dict)


class Recounter(Consumer[CountersState]):
    """Keeps the status of all objects of `kind`."""

    kind: Resource

    @abstractmethod
    def matters(self, change: Change) -> bool:
        """Say whether a change of another object may change a number."""

    @abstractmethod
    def statuses(self, namespace: str, keepers: Sequence[Object], now: int) -> list[Object]:
        """Return the status that each of a namespace's objects should have."""

    def load(self, shard: int, revision: int) -> CountersState:
        """Count everything once."""
        state = CountersState()
        for stored in store.find(self.kind):
            state.names.setdefault(stored.namespace, {})[stored.name] = stored.object.get("spec")
        state.stale = dict.fromkeys(state.names)
        return state

    def apply(self, state: CountersState, change: Change) -> None:
        """Note which namespace's numbers may be wrong."""
        if change.resource == self.kind.id:
            specs = state.names.setdefault(change.namespace, {})
            spec = change.object.get("spec")
            if change.verb == "DELETED":
                specs.pop(change.name, None)
                if not specs:
                    del state.names[change.namespace]
                    state.earliest.pop(change.namespace, None)
            elif change.name not in specs or specs[change.name] != spec:
                specs[change.name] = spec
                state.stale[change.namespace] = None
                state.earliest.pop(change.namespace, None)
        if change.namespace in state.names and self.matters(change):
            state.stale[change.namespace] = None

    def plan(self, state: CountersState, changes: Sequence[Change], timers: Sequence[Timer], now: int) -> Plan:
        """Count where numbers may be wrong and it is not too soon."""
        for timer in timers:
            if timer.key in state.names:
                state.stale[timer.key] = None
        groups: list[Group] = []
        later: list[Timer] = []
        begun = clock.monotonic()
        for namespace in state.stale:
            wait_s = state.earliest.get(namespace, begun) - begun
            if wait_s > 0:
                later.append(Timer(_COUNT, namespace, now + ceil(wait_s * 1000)))
                continue
            start = clock.monotonic()
            keepers = [stored.object for stored in store.find(self.kind, namespace=namespace)]
            wanted = self.statuses(namespace, keepers, now)
            counted = clock.monotonic()
            state.earliest[namespace] = counted + SOONEST_S + SHARE * (counted - start)
            for keeper, status in zip(keepers, wanted, strict=True):
                if status != keeper.get("status"):
                    groups.append(Group([status_update(self.kind, keeper, status)], namespace))
        state.stale.clear()
        return Plan(groups, later)


def has_ended(change: Change) -> bool:
    """Say whether a pod has run to an end."""
    return change.resource == PODS.id and _phase(change.body).status.phase in ENDED
