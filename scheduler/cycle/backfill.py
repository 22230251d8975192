"""Which groups use reserved room for a while: backfill (the KEP's word; `scheduler.cycle.reservations`), and guarantees.

By their time   groups that, by their own runningEstimate, will have ended when the group with the reservation is expected to start.
                That is the time its reservation says; earlier, if what holds its nodes now will be gone earlier. So a group that
                ends in time delays none.
By their rank   groups of lower priority in the same queue whose pods may be evicted, where preempt is an action: the group with the
                reservation preempts them as soon as it fits then. None may be protected by a budget or by time to cool down.
By their right  groups of queues that have less than their guarantee, up to that: it is there whenever it is asked for. A reservation
                takes no part of it in the end, but it may count on room that others leave only later.

They take turns as others do. A FIFO queue lets no group pass its first one here either.
"""

from __future__ import annotations

from collections.abc import Sequence

from scheduler.cycle import order
from scheduler.cycle.departures import end_of
from scheduler.cycle.reservations import Reservations, ReservedRoom
from scheduler.cycle.world import World
from scheduler.engine import arrange
from scheduler.engine.arrays import Amount
from scheduler.engine.gang import Attempt, Gang
from scheduler.engine.place import Placer
from scheduler.gangs.evictable import may_go
from scheduler.policy.actions import Action
from scheduler.records.records import Group


class Backfill:
    """One round of backfill, at the end of placing."""

    def __init__(self, world: World, reservations: Reservations) -> None:
        self._world, self._reservations = world, reservations
        self._limits: dict[str, int] = {}
        self._placers: dict[tuple[str, ...], Placer] = {}

    def run(self, attempts: list[Attempt]) -> None:
        """Place more of the gangs of these attempts, which are in gang order: replace those that are short, add to others."""
        keys, gangs = list(self._world.gangs), list(self._world.gangs.values())
        reserved = self._reservations.rooms
        short = [number for number, key in enumerate(keys) if key not in reserved and _wants_more(attempts[number])]
        guaranteed = [number for number in short if _has_guarantee_left(gangs[number])]
        for number in order.in_turn(gangs, guaranteed):
            attempts[number] = self._place(gangs[number], attempts[number], tuple(reserved), by_right=True)
        if Action.BACKFILL not in self._world.policy.actions:
            return
        lifted = {number: rooms for number in short if (rooms := self._open_to(keys[number]))}
        failed: set[tuple[object, ...]] = set()
        for number in order.in_turn(gangs, list(lifted)):
            gang = gangs[number]
            likeness = gang.bins, gang.steps, gang.arranged, gang.account, lifted[number]
            if attempts[number].short is not None and likeness in failed:
                continue
            attempts[number] = self._place(gangs[number], attempts[number], lifted[number])
            if attempts[number].short is not None:
                failed.add(likeness)

    def _place(self, gang: Gang, attempt: Attempt, lifted: tuple[str, ...], *, by_right: bool = False) -> Attempt:
        """Return the attempt with what finds room while some reservations are lifted; by_right: no more than is guaranteed."""
        with self._reservations.lifted(self._reservations.rooms[key] for key in lifted):
            placer = self._placers.get(lifted)
            if placer is None:  # one for each such state: in the same one room only shrinks
                placer = self._placers[lifted] = self._world.placer()
            if attempt.short is not None and (
                not by_right or _covers(gang, self._world.cluster.minimum_requests(gang), 1)
            ):
                attempt = placer.place_minimum(gang)
            if attempt.short is None:
                for number, some in enumerate(gang.bins):
                    more = some.count - attempt.taken[number]
                    if by_right:
                        more = _covers(gang, placer.requests_of(gang, number), more)
                    if gang.arranged is None:
                        placer.take(attempt, number, more)
                    elif more > 0:
                        arrange.place_more(placer, attempt, number, more)
        return attempt

    def _open_to(self, key: str) -> tuple[str, ...]:
        """Return the keys of the groups whose reserved room a group may use."""
        group, gang = self._world.snapshot.groups[key], self._world.gangs[key]
        end = end_of(group, self._world.now)
        return tuple(
            each.key
            for each in self._reservations.rooms.values()
            if (end is not None and end <= self._limit(each)) or self._may_be_evicted(group, gang, each)
        )

    def _limit(self, room: ReservedRoom) -> int:
        """Return when users of reserved room must have ended (ms): as expected, or when it is free if sooner; -1 if unknown."""
        limit = self._limits.get(room.key)
        if limit is None:
            limit = self._reservations.by_group[room.key].expected
            if limit is None:
                limit = -1
            elif (free := self._free_at(room)) is not None:
                limit = min(limit, free)
            self._limits[room.key] = limit
        return limit

    def _free_at(self, room: ReservedRoom) -> int | None:
        """Return when all of some reserved room is free (ms), as far as known; None where it is not."""
        last = self._world.now
        for node in room.nodes:
            free = self._world.cluster.free[node].copy()
            for departure in self._reservations.departures.on(node):
                if (free >= 0).all():
                    break
                if departure.end is None:
                    return None
                free += departure.leaver.amounts
                last = max(last, departure.end)
            else:
                if (free < 0).any():
                    return None
        return last

    def _may_be_evicted(self, group: Group, gang: Gang, room: ReservedRoom) -> bool:
        """Tell whether the group with a reservation may preempt a group."""
        keeper = self._world.gangs.get(room.key)
        if keeper is None or Action.PREEMPT not in self._world.policy.actions:
            return False
        if gang.account is not keeper.account or gang.level >= keeper.level or self._world.cluster.has_rules(keeper):
            return False
        mine = self._world.snapshot.groups[room.key]
        if not self._world.snapshot.preempts(mine.priority_class) or not all(
            pod.preempts for pod in mine.pending.values()
        ):
            return False
        pods = (*group.pending.values(), *group.holders.values())
        return all(may_go(pod, group) for pod in pods) and not self._world.protection.may_concern(group, pods)


def _has_guarantee_left(gang: Gang) -> bool:
    """Tell whether a gang's queue, or one above it, has less of something than it is guaranteed."""
    line = gang.account.line if gang.account else ()
    return any(used < guaranteed for each in line for used, guaranteed in zip(each.used, each.guarantee, strict=True))


def _covers(gang: Gang, request: Sequence[Amount], wanted: int) -> int:
    """Return how often, up to `wanted`, a request fits in the guarantee of a queue of a gang's line, of the resources guaranteed."""
    found = 0
    for each in gang.account.line if gang.account else ():
        counts = [(each.guarantee[c] - each.used[c]) // amount for c, amount in request if each.guarantee[c]]
        if counts:
            found = max(found, min(wanted, *counts))
    return found


def _wants_more(attempt: Attempt) -> bool:
    """Tell whether a gang has pods without nodes, and is not behind another one in a FIFO queue."""
    if attempt.behind is not None:
        return False
    return attempt.short is not None or attempt.placed() < sum(some.count for some in attempt.gang.bins)
