"""One scheduling cycle: a pure function from the world to decisions.

Queues take turns by their shares; within a queue pod groups go by priority, then age, then key. A group whose queue is wrong gets
its cause and blocks no other. The policy's actions say which steps are taken.
"""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.cycle.adoptions import adopt
from scheduler.cycle.backfill import Backfill
from scheduler.cycle.enqueue import enqueue
from scheduler.cycle.evictions import Evictions
from scheduler.cycle.idle_room import entrants
from scheduler.cycle.outcomes import Outcomes
from scheduler.cycle.queue_accounts import queue_cause
from scheduler.cycle.rescheduling import moved
from scheduler.cycle.reservations import Reservations
from scheduler.cycle.status import Outcome, Writer, pause_ms
from scheduler.cycle.world import World
from scheduler.decisions import Decisions, Eviction
from scheduler.engine.cause import Cause, Reason
from scheduler.engine.gang import Attempt
from scheduler.engine.place import place
from scheduler.snapshot.snapshot import Snapshot

HOPELESS = frozenset(
    (
        Reason.QUEUE_NOT_FOUND,
        Reason.QUEUE_HAS_CHILDREN,
        Reason.QUEUE_CLOSED,
        Reason.NEVER_FITS,
        Reason.QUEUE_TOO_SMALL,
        Reason.PARENT_TOO_SMALL,
        Reason.QUOTA_EXCEEDED,
    )
)
"""Reasons why a group stays out whatever becomes free on nodes."""


def schedule(snapshot: Snapshot, now: int) -> Decisions:
    """Return what is to be done now. The snapshot is not changed, except for its memory and the layouts that it caches.

    The same snapshot and time give the same decisions, whatever order the changes came in.
    """
    world = World(snapshot, now)
    reservations = Reservations(world)
    evictions = Evictions(world, reservations)
    # 1. Enter: which groups may have pods. None lets a group in, a cause keeps it out.
    entries = enqueue(world, reservations)
    # 2. Place: which pods get nodes, and which groups are let in after all because room would be left for them.
    attempts = _place(world, entries, reservations, evictions)
    entries |= dict.fromkeys(entrants(world, entries))
    # 3. Free: which pods are evicted for groups that found no room.
    world.decisions.evictions = _free(world, attempts, reservations, evictions)
    # 4. Move: which pods are evicted to be recreated elsewhere, if nobody wants the room that they leave.
    if not world.decisions.evictions and world.allocates and not _is_room_wanted(world, entries, attempts):
        world.decisions.evictions = moved(world)
    # 5. Say: what waiting groups are told, and what becomes of pods without a group.
    _say(world, Outcomes(world, entries, attempts, reservations, evictions))
    return world.decisions


def _place(
    world: World, entries: Mapping[str, Cause | None], reservations: Reservations, evictions: Evictions
) -> dict[str, Attempt]:
    """Place the gangs of all groups that are in; return the attempts by group key, in turn.

    Groups that wait for victims or hold reservations come first. At the end others may use reserved room for a while.
    """
    if not world.allocates:
        return {}
    snapshot, entered = world.snapshot, [group for group in world.waiting if entries.get(group.key) is None]
    for group in entered:
        if group.key in snapshot.groups.resting or not (group.exists and group.pending) or queue_cause(snapshot, group):
            continue
        layout = snapshot.layout_of(group)
        if layout.pod_sets and not layout.absent and layout.constraint() is None and not snapshot.unbound_claim(group):
            world.gangs[group.key] = world.gang_of(group, layout)
    reservations.resume()
    reserved = reservations.keep(evictions.keep())
    attempts = place(world.cluster, list(world.gangs.values()), pods=world.pods, tried=reserved)
    reservations.make(dict(zip(world.gangs, attempts, strict=True)))
    if reservations.rooms:
        Backfill(world, reservations).run(attempts)
    if entered:
        world.wake_at(world.rules.due())
    return dict(zip(world.gangs, attempts, strict=True))


def _free(
    world: World, attempts: Mapping[str, Attempt], reservations: Reservations, evictions: Evictions
) -> list[Eviction]:
    """Return which pods are evicted: for groups without room, in turn, and because of the zone of their node."""
    evictions.make_room(world.waiting, attempts)
    reservations.look_again(world.waiting, attempts)
    revoked, again = world.rules.evictions(world.protection)
    world.wake_at(again)
    going = {each.pod.key for each in evictions.found}
    return [*evictions.found, *(each for each in revoked if each.pod.key not in going)]


def _is_room_wanted(world: World, entries: Mapping[str, Cause | None], attempts: Mapping[str, Attempt]) -> bool:
    """Tell whether anybody would take room that becomes free."""
    return (
        bool(world.snapshot.groups.resting)
        or any(cause is not None and cause.reason not in HOPELESS for cause in entries.values())
        or any(attempt.placed() < sum(some.count for some in attempt.gang.bins) for attempt in attempts.values())
    )


def _say(world: World, outcomes: Outcomes) -> None:
    """Decide what is written about the groups that wait, and about those that settled a while ago; adopt pods without a group."""
    snapshot, decisions = world.snapshot, world.decisions
    writer = Writer(decisions, waiting=len(world.waiting), now=world.now)
    for group in world.waiting:
        if outcomes.is_unchanged(group) or (outcomes.goes_on_waiting(group) and writer.was_reported(group)):
            continue
        writer.write(outcomes.of(group))
    adopt(snapshot, decisions, writer)
    decisions.reported = _reported(world)
    for key in decisions.reported:
        if key not in snapshot.groups.waiting and (settled := snapshot.groups[key]).exists:
            writer.write(Outcome(settled, [], []))


def _reported(world: World) -> list[str]:
    """Return the keys of the groups that wait and of those whose pause is over; ask to be woken for the others.

    A change dated later than now was made before the clock was set back.
    """
    snapshot = world.snapshot
    settled = {key: since for key, since in snapshot.groups.unreported.items() if key not in snapshot.groups.waiting}
    pause = pause_ms(len(settled))
    resting = {key: since for key, since in settled.items() if 0 <= world.now - since < pause}
    if resting:
        world.wake_at(min(resting.values()) + pause)
    return sorted(snapshot.groups.unreported.keys() - resting.keys())
