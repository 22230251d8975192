"""What became of each group that waits, and why it goes on waiting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

import msgspec

from scheduler.cycle.evictions import Evictions
from scheduler.cycle.queue_accounts import queue_cause
from scheduler.cycle.reservations import Reservations
from scheduler.cycle.status import NOTED_PODS, Outcome, reports_missing_pods
from scheduler.cycle.world import World
from scheduler.decisions import Bind
from scheduler.engine.cause import Cause, Listed, Reason, listed, listed_names
from scheduler.engine.gang import Attempt, Bin, Gang, GangStep
from scheduler.engine.place import Placer
from scheduler.gangs import half_bound
from scheduler.gangs.gang_layout import first_pods
from scheduler.gangs.layout import Layout
from scheduler.gangs.waits import made_until
from scheduler.reasons.explain import Names, explain, explain_rest
from scheduler.reasons.explain_arranged import explain_arranged, explain_arranged_rest
from scheduler.records.records import Group

KEEPABLE = frozenset(
    (
        Reason.NOT_ENOUGH_RESOURCES,
        Reason.QUEUE_LIMIT,
        Reason.PARENT_LIMIT,
        Reason.QUEUE_GUARANTEES,
        Reason.QUEUE_OVER_DESERVED,
    )
)
"""Reasons that may be due to room reserved for another group."""


class Outcomes:
    """What the steps of a cycle came to: entries of groups outside (None lets in) and attempts to place gangs, both by group key."""

    def __init__(
        self,
        world: World,
        entries: Mapping[str, Cause | None],
        attempts: Mapping[str, Attempt],
        reservations: Reservations,
        evictions: Evictions,
    ) -> None:
        self._world, self._entries, self._attempts = world, entries, attempts
        self._reservations, self._evictions = reservations, evictions
        self._keys = list(world.gangs)
        nodes = world.snapshot.nodes
        self._names = Names(nodes.names(), list(nodes.columns))
        self._causes: dict[tuple[Gang, int], Cause] = {}

    def is_unchanged(self, group: Group) -> bool:
        """Tell whether nothing has to be said of a group: it still waits for its first pods, as in the cycle before."""
        if group.pending or group.is_outside or group.key in self._world.snapshot.groups.dirty:
            return False
        due = made_until(group, self._world.now)
        self._world.wake_at(due)
        return due is not None

    def goes_on_waiting(self, group: Group) -> bool:
        """Tell whether a group waited before, waits still, and nothing of its own changed."""
        if group.key in self._world.snapshot.groups.dirty or self._evictions.has_changed(group.key):
            return False
        if self._reservations.has_changed(group.key):
            return False
        if self._entries.get(group.key) is not None or not self._world.allocates:
            return True
        attempt = self._attempts.get(group.key)
        return attempt is not None and not attempt.has_minimum()

    def of(self, group: Group) -> Outcome:
        """Return what became of a waiting group, with the cause if it goes on waiting."""
        found = self._outcome(group)
        found.reservation = self._reservations.by_group.get(group.key)
        found.in_vain = group.key in self._reservations.in_vain
        waits = group.exists and found.cause is not None and not found.binds
        if waits and half_bound.is_half_bound(group, self._world.snapshot.layout_of(group)):
            found.given_back = half_bound.given_back(group)
        return found

    def _outcome(self, group: Group) -> Outcome:
        if not group.exists:
            return self._after_grace(group, Cause(Reason.GROUP_NOT_FOUND, group=group.name))
        layout = self._world.snapshot.layout_of(group)
        pods = layout.pods()
        cause = self._entries.get(group.key) or queue_cause(self._world.snapshot, group)
        entered = group.is_outside and cause is None
        if cause is not None:
            return Outcome(group, [], first_pods(group, NOTED_PODS), _about_the_rest(group, cause))
        if (constraint := layout.constraint()) is not None:
            cause = Cause(Reason.UNKNOWN_CONSTRAINT, constraint=constraint)
            return Outcome(group, [], pods, _about_the_rest(group, cause), entered)
        if claim := self._world.snapshot.unbound_claim(group):
            cause = Cause(Reason.CLAIM_NOT_BOUND, claim=claim)
            return Outcome(group, [], pods, _about_the_rest(group, cause), entered)
        if layout.absent:
            return self._absent(group, layout, entered=entered)
        if pods and not self._world.allocates:
            return Outcome(group, [], pods, _about_the_rest(group, Cause(Reason.NOT_ALLOCATING)), entered)
        attempt = self._attempts.get(group.key)
        if attempt is None:
            return Outcome(group, [], pods, entered=entered)
        if attempt.behind is not None:
            first = self._world.snapshot.groups[self._keys[attempt.behind]].name
            cause = Cause(Reason.QUEUE_ORDER, queue=group.queue, group=first)
            return Outcome(group, [], pods, _about_the_rest(group, cause), entered)
        if attempt.short is not None:
            return Outcome(group, [], pods, self._shortage(group, layout), entered)
        return self._started(group, layout, attempt, entered=entered)

    def _started(self, group: Group, layout: Layout, attempt: Attempt, *, entered: bool) -> Outcome:
        binds: list[Bind] = []
        unbound = []
        for number, some in enumerate(layout.pod_sets):
            taken = attempt.taken[number]
            chosen = attempt.nodes(number).tolist() if taken else []
            binds += [Bind(pod, self._names.nodes[node]) for pod, node in zip(some.pods[:taken], chosen, strict=True)]
            unbound += some.pods[taken:]
        cause = None
        if unbound:
            gang = self._world.gangs[group.key]
            tell = explain_arranged_rest if gang.arranged is not None else explain_rest
            cause = tell(self._explainer, gang, attempt, self._names, started=group.ready())
            if cause is not None and gang.arranged is None:
                cause = self._unless_reserved(_one_more(gang, attempt), cause)
        minima = half_bound.needs(layout.gang, attempt.taken, binds)
        outcome = Outcome(group, binds, unbound, cause, entered, minima)
        if layout.gang.arranged is not None and binds and self._world.cluster.hyper_nodes is not None:
            there = (pod.node for pod in group.holders.values())
            outcome.hyper_node = self._world.cluster.hyper_nodes.lowest_around([*there, *(b.node for b in binds)])
        return outcome

    def _absent(self, group: Group, layout: Layout, *, entered: bool) -> Outcome:
        """Return the outcome for a gang some of whose pods do not exist."""
        exist = layout.needed - layout.absent
        cause = Cause(
            Reason.SCHEDULING_GATED if layout.gated else Reason.NOT_ENOUGH_TASKS,
            fit=group.ready() + exist,
            needed=group.ready() + layout.needed,
            gated=layout.gated,
        )
        if entered:
            return Outcome(group, [], [], None, entered)
        if group.scheduled() >= group.min_member and not group.pending:
            return Outcome(group, [], [])  # all have run or run still; nothing is missing (§5.2)
        return self._after_grace(group, cause)

    def _after_grace(self, group: Group, cause: Cause) -> Outcome:
        due = made_until(group, self._world.now)
        if due is not None and not reports_missing_pods(group):
            self._world.wake_at(due)
            return Outcome(group, [], [])
        return Outcome(group, [], first_pods(group, NOTED_PODS), cause)

    def _shortage(self, group: Group, layout: Layout) -> Cause:
        """Return why a gang has no room, with what protects pods from eviction for it."""
        cause = self._evictions.cause_of(group.key) or self._explain_reserved(group, layout)
        cause = cause or self._explain(group, layout)
        protected = self._evictions.protected_from(group.key)
        return msgspec.structs.replace(cause, protected=listed(protected)) if protected else cause

    def _explain(self, group: Group, layout: Layout) -> Cause:
        """Return why a gang did not fit; equal gangs are explained once."""
        gang = self._world.gangs[group.key]
        key = replace(gang, level=0, held=()), layout.needed
        cause = self._causes.get(key)
        if cause is None:
            cause = self._explained(self._explainer, gang, layout)
            if keeping := self._evictions.keepers(gang):
                cause = _of_reserved_room(cause, Reason.ROOM_KEPT, keeping=listed_names(keeping))
            cause = self._unless_reserved(gang, cause)
            if cause.reason is Reason.NOT_ENOUGH_RESOURCES and not cause.never:
                withholding = listed_names(self._evictions.withholding(gang))
                cause = msgspec.structs.replace(cause, withholding=withholding)
            self._causes[key] = cause
        return cause

    def _explained(self, placer: Placer, gang: Gang, layout: Layout) -> Cause:
        tell = explain_arranged if gang.arranged is not None else explain
        return tell(placer, gang, self._names, needed=layout.needed)

    def _explain_reserved(self, group: Group, layout: Layout) -> Cause | None:
        """Return why a gang with reserved room waits; None for all others."""
        reservation = self._reservations.by_group.get(group.key)
        if group.key not in self._reservations.rooms or reservation is None:
            return None
        with self._reservations.aside(group.key):
            gang, placer = self._world.gangs[group.key], self._world.placer()
            cause = self._explained(placer, gang, layout)
        nodes = sorted({node for some in reservation.places for node, _ in some})
        places = listed_names(nodes)
        return _of_reserved_room(
            cause, Reason.RESERVED, since=reservation.made, expected=reservation.expected, places=places
        )

    def _unless_reserved(self, gang: Gang, cause: Cause) -> Cause:
        """Return the cause, or that the room is reserved for another group if this one would fit in it."""
        if cause.reason not in KEEPABLE or cause.never or not self._reservations.rooms:
            return cause
        if not (keeper := self._reservations.keeper(gang)):
            return cause
        since = self._reservations.by_group[keeper].made
        keeping = listed_names((self._world.snapshot.groups[keeper].name,))
        return _of_reserved_room(cause, Reason.ROOM_KEPT, keeping=keeping, since=since)

    @cached_property
    def _explainer(self) -> Placer:
        return self._world.placer()


def _of_reserved_room(
    cause: Cause,
    reason: Reason,
    *,
    keeping: Listed = (),
    since: int = 0,
    expected: int | None = None,
    places: Listed = (),
) -> Cause:
    """Return a cause that is about a reservation alone; what nodes lack without it, Volcano's text says."""
    return Cause(
        reason,
        started=cause.started,
        fit=cause.fit,
        nodes=cause.nodes,
        tally=cause.tally,
        keeping=keeping,
        since=since,
        expected=expected,
        places=places,
    )


def _one_more(gang: Gang, attempt: Attempt) -> Gang:
    """Return a gang of only the first pod of this one that has no node."""
    some = next(each for each, taken in zip(gang.bins, attempt.taken, strict=True) if taken < each.count)
    return replace(gang, bins=(Bin(some.pod_class, 1),), steps=(GangStep(1, (0,)),))


def _about_the_rest(group: Group, cause: Cause) -> Cause:
    """Return the cause, marked as about the pods beyond the minimum where the minimum has its nodes."""
    ready = group.ready()
    started = bool(ready) and ready >= group.min_member
    return msgspec.structs.replace(cause, started=True) if started else cause
