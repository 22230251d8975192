"""Room reserved for groups that smaller ones would otherwise starve (design §4; the KEP's backfill).

A group whose minimum has waited for longer than the policy's `reserves_ms`, and would fit if enough of what runs had ended, gets
a *reservation*: the nodes where it will fit soonest, by the `runningEstimate`s of the jobs that run there. Jobs without an
estimate are taken to end last, node by node, starting where the fewest pods have to end. From then on that room is the group's:
what is free of it stays free, what others leave there is not given out again, and its queue is charged with it. Excepted are

* groups of higher priority in its queue, which come before it;
* with the action backfill, groups that by their own estimate will have ended when it is expected to start, and groups that it may
  preempt then (`scheduler.cycle.backfill`).

The group may start anywhere as soon as it fits. Whoever may change the group may give its room back
(`kube.volcano.reserved_room.RELEASED`); then it waits as long again before it gets any. There is one reservation per queue, as
the queue's order says which group is next, and at most MOST altogether. So what stays idle although it is wanted is less than the
minima of so many groups. Where what runs does not end, a reservation is given back after a while (HOLDS) for as long, so that
others start, and then made again for twice as long. So every group that fits starts at last if running jobs end at all, and room
is reserved in vain for half of the time at most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property

import numpy as np
from msgspec.structs import replace

from kube.volcano.reserved_room import Places, Reservation
from scheduler.cycle import order
from scheduler.cycle.departures import Departures, held_on
from scheduler.cycle.world import World
from scheduler.engine.accounts import Account
from scheduler.engine.arrays import Vector
from scheduler.engine.cluster import Cluster
from scheduler.engine.gang import Attempt, Gang
from scheduler.engine.soonest import soonest
from scheduler.gangs import fruitless, reserved
from scheduler.gangs.layout import Layout
from scheduler.reasons.explain import fits_on_empty_nodes
from scheduler.records.records import Group
from scheduler.victims.overlap import Holders, Overlap

MOST = 8
"""The most reservations at a time."""
HOLDS = 12
"""How many times the wait room is reserved at first, where it is unknown when what runs there ends."""
TRIES = 8
"""The most groups for which places are sought in vain in one cycle."""
COSTLY = 2000
"""With more pods on nodes than this, all of which are looked at, searches rest after each one."""
ALL = ("reserve",)
"""The likeness under which all searches rest."""


class ReservedRoom:
    """Reserved room: charged to its nodes and, as far as no pod holds it, to its queue, unless it is lifted for a while."""

    def __init__(
        self, cluster: Cluster, key: str, level: int, account: Account, amounts: Mapping[int, Vector], holders: Holders
    ) -> None:
        """amounts are what is reserved, by node; holders what pods hold on these nodes."""
        self.key, self.level, self.account = key, level, account
        self.nodes = list(amounts)
        self._cluster, self._holders = cluster, holders
        self._amounts = np.array(list(amounts.values()), dtype=np.int64)
        self._total = self._amounts.sum(axis=0)
        self._overlap: Overlap | None = None

    @property
    def is_charged(self) -> bool:
        """Whether the room is reserved at present."""
        return self._overlap is not None

    def charge(self, *, on: bool) -> None:
        """Reserve the room, or lift that with on=False."""
        if on == self.is_charged:
            return
        sign = 1 if on else -1
        if self._overlap is not None:
            self._overlap.take_off(on=False)
            self._overlap = None
        else:
            free = np.maximum(self._cluster.free[self.nodes], 0)
            taken = dict(zip(self.nodes, np.maximum(self._amounts - free, 0), strict=True))
            self._overlap = Overlap(self.account, self._total, taken, self._holders)
        self._cluster.free[self.nodes] -= sign * self._amounts
        self._cluster.touched.extend(self.nodes)
        self.account.charge(enumerate(self._total.tolist()), sign)
        if self._overlap is not None:
            self._overlap.take_off(on=True)

    def count_once(self, *, on: bool) -> None:
        """Count what pods still hold of the room once on queues, or twice with on=False."""
        if self._overlap is not None:
            self._overlap.take_off(on=on)

    def charged(self) -> Iterator[tuple[Account, Vector]]:
        """Yield the accounts that the room is charged to at present, each with the amounts."""
        if self._overlap is not None:
            yield from self._overlap.charged(self._total)

    def is_free(self) -> bool:
        """Tell whether all of the room is free; it must be lifted."""
        return bool((self._cluster.free[self.nodes] >= self._amounts).all())


class Reservations:
    """The reservations of one cycle: those that stand, those that are made, and those that end."""

    def __init__(self, world: World) -> None:
        self._world, self._wait = world, world.policy.reserves_ms
        self.departures = Departures(world)
        self.by_group: dict[str, Reservation] = {}
        """The reservations that stand after this cycle, by group key."""
        self.in_vain: set[str] = set()
        """Groups whose room is given back although they have not started."""
        self.rooms: dict[str, ReservedRoom] = {}

    def has_changed(self, key: str) -> bool:
        """Tell whether the reservation of a group is made, changed or ended by this cycle."""
        return self.by_group.get(key) != self._world.snapshot.groups.reserved.get(key)

    # At the entry

    def may_enter(self, group: Group) -> bool:
        """Tell whether a group that is kept out has waited long enough to be let in whatever room there is."""
        if self._wait is None or group.queue in self._queues:
            return False
        due = self._patience(group) + self._wait
        if due > self._world.now:
            self._world.wake_at(due)
            return False
        return self._is_open(group)

    def enter(self, group: Group) -> None:
        """Reserve a place in line for a group that is let in: room is sought when its pods exist."""
        self._make(group)

    # On nodes

    def resume(self) -> None:
        """Reserve the room of the cycle before again, so that nothing placed from now on takes it from its group."""
        if self._wait is None:
            return
        for key, reservation in self._still_waiting.items():
            group = self._world.snapshot.groups[key]
            if key in self._world.gangs:
                self._charge(group, self._world.snapshot.layout_of(group), reservation)
            else:
                self._without_gang(group)

    def keep(self, tried: dict[int, Attempt]) -> dict[int, Attempt]:
        """Place the groups that have reservations, or keep their room; return the attempts by gang number, with those of `tried`.

        tried are the attempts of gangs that came before.
        """
        if self._wait is None:
            return tried
        tried = dict(tried)
        mine = self._still_waiting
        keys, gangs = list(self._world.gangs), list(self._world.gangs.values())
        for number in order.first(self._world.gangs, mine) if mine else ():
            key = keys[number]
            attempt = tried.get(number)
            if attempt is None:
                with self.aside(key):
                    attempt = self._world.placer().place_minimum(gangs[number])
                    if attempt.short is not None and key in mine:
                        attempt = self._place_on_reserved(key, gangs[number], mine[key].places) or attempt
            if key in mine:
                self.drop(key)
            if attempt.short is None:
                tried[number] = attempt
            elif key in mine and number not in tried:
                self._go_on(self._world.snapshot.groups[key], mine[key])
                tried[number] = attempt
        fitting: set[tuple[object, ...]] = set()
        others = {key: gang for number, (key, gang) in enumerate(self._world.gangs.items()) if number not in tried}
        assumed = {keys[number]: attempt for number, attempt in tried.items() if attempt.placed()}
        self._make_for_others(others, assumed, lambda gang: not self._fits(gang, fitting))
        return tried

    def make(self, attempts: Mapping[str, Attempt]) -> None:
        """Make reservations for groups that have waited too long and would have fitted before others were placed in this cycle.

        With a stream of others that may be so in each cycle. attempts are those of all gangs, by group key.
        """
        if self._wait is None:
            return
        before = self._still_waiting.keys() | self._world.snapshot.groups.nominated
        others = {
            key: attempt.gang for key, attempt in attempts.items() if attempt.short is not None and key not in before
        }
        assumed = {key: attempt for key, attempt in attempts.items() if attempt.placed()}
        self._make_for_others(others, assumed, lambda gang: True)

    def _place_on_reserved(self, key: str, gang: Gang, places: Places) -> Attempt | None:
        """Place a gang on its reserved room, which is lifted now; None while not all of that is free.

        On the same nodes, room reserved for groups expected to start later need not be free yet.
        """
        own = self.rooms.get(key)
        if own is None or gang.account is None or gang.arranged is not None:
            return None
        if self._world.cluster.has_rules(gang) or not self._is_usable(gang, places):
            return None
        later = [each for each in self.rooms.values() if self._due(each) > self._due(own)]
        with self.lifted(later):
            if not own.is_free() or gang.account.allowed(self._world.cluster.minimum_requests(gang), 1) != 1:
                return None
        attempt = Attempt(gang)
        numbers = self._world.snapshot.nodes.numbers()
        runs = [
            [([numbers[name] for name, _ in there], [pods for _, pods in there])] if there else [] for there in places
        ]
        self._world.placer().redo(gang, attempt, runs)
        return attempt

    def _due(self, room: ReservedRoom) -> tuple[bool, int, int, str]:
        """Return the sort key of expected starts: unknown ones last, in the order in which the reservations were made."""
        reservation = self.by_group[room.key]
        return reservation.expected is None, reservation.expected or 0, reservation.made, room.key

    @contextmanager
    def aside(self, key: str) -> Iterator[None]:
        """Lift, for the length of the block, the reservations of a group itself and of those of lower priority in its queue."""
        gang = self._world.gangs[key]
        with self.lifted(
            each
            for each in self.rooms.values()
            if each.key == key or (each.account is gang.account and each.level < gang.level)
        ):
            yield

    @contextmanager
    def lifted(self, rooms: Iterable[ReservedRoom]) -> Iterator[None]:
        """Lift some reservations for the length of the block; those dropped meanwhile, or lifted before, are not charged at its end."""
        charged = [each for each in rooms if each.is_charged]
        for each in charged:
            each.charge(on=False)
        try:
            yield
        finally:
            for each in charged:
                each.charge(on=self.rooms.get(each.key) is each)

    @contextmanager
    def counted_twice(self) -> Iterator[None]:
        """Count pods that may be treated as gone beside the room reserved where they are, for the length of the block."""
        for each in self.rooms.values():
            each.count_once(on=False)
        try:
            yield
        finally:
            for each in self.rooms.values():
                each.count_once(on=True)

    def charged(self) -> dict[Account, Vector]:
        """Return what reservations charge to each queue at present that none of its pods uses."""
        total: dict[Account, Vector] = {}
        for each in self.rooms.values():
            for account, amounts in each.charged():
                total[account] = total.get(account, 0) + amounts
        return total

    def drop(self, key: str) -> None:
        """End the reservation of a group that gets its room in another way."""
        self.by_group.pop(key, None)
        if (room := self.rooms.pop(key, None)) is not None:
            room.charge(on=False)

    def keeper(self, gang: Gang) -> str:
        """Return the key of a group whose reserved room a gang would fit in, "" where there is none."""
        for each in self.rooms.values():
            with self.lifted([each]):
                if self._world.placer().fits(gang):
                    return each.key
        return ""

    def look_again(self, groups: Iterable[Group], attempts: Mapping[str, Attempt]) -> None:
        """Ask to be woken when the next of these groups that still lack room has waited too long."""
        if self._wait is None:
            return
        for group in groups:
            attempt = attempts.get(group.key)
            if attempt is None or attempt.short is None or group.queue in self._queues:
                continue
            due = group.created + self._wait
            if due <= self._world.now:
                due = self._since(group) + self._wait
            if due > self._world.now:
                self._world.wake_at(due)

    # What was reserved before

    @cached_property
    def _still_waiting(self) -> dict[str, Reservation]:
        """The reservations made before, except those given back and those of groups that are nominated or wait no more."""
        found = {}
        for key in sorted(self._world.snapshot.groups.reserved):
            group = self._world.snapshot.groups[key]
            is_short = key in self._world.snapshot.groups.waiting and not (0 < group.min_member <= group.ready())
            goes_on = is_short and key not in self._world.snapshot.groups.nominated and not group.is_outside
            if goes_on and not group.has_released(self._world.snapshot.groups.reserved[key]):
                found[key] = self._world.snapshot.groups.reserved[key]
        return found

    def _without_gang(self, group: Group) -> None:
        """Go on for a group that is not placed in this cycle: its pods are being created, or its bindings are retried soon."""
        reservation = self._world.snapshot.groups.reserved[group.key]
        layout = self._world.snapshot.layout_of(group)
        if group.key in self._world.snapshot.groups.resting:
            self._charge(group, layout, reservation)
        elif layout.absent and self._world.now < reservation.made + (self._wait or 0):
            self.by_group[group.key] = reservation
            self._world.wake_at(reservation.made + (self._wait or 0))

    def _go_on(self, group: Group, reservation: Reservation) -> None:
        """Keep the room of a group that still does not fit, choose it anew where it is no longer usable, or give it back."""
        reservation = self._limited(reservation)
        if self._world.now >= reservation.until:
            self.in_vain.add(group.key)
            return
        layout = self._world.snapshot.layout_of(group)
        if not self._is_usable(self._world.gangs[group.key], reservation.places):
            choice = self._choose(group)
            if choice is None:
                return
            reservation = self._limited(replace(reservation, places=choice[0], expected=choice[1]))
        self._world.wake_at(reservation.until)
        self._charge(group, layout, reservation)

    def _is_usable(self, gang: Gang, places: Places) -> bool:
        """Tell whether places are those of a whole minimum, on nodes that could still hold it, and its queue may ever use so much."""
        if len(places) != len(gang.bins) or not any(places):
            return False
        if gang.account is not None and not gang.account.could_hold(self._world.cluster.minimum_requests(gang)):
            return False
        counts = [sum(pods for _, pods in some) for some in places]
        if any(sum(counts[some] for some in step.bins) < step.need for step in gang.steps):
            return False
        requested: dict[int, np.ndarray] = {}
        for some, there in zip(gang.bins, places, strict=True):
            pod_class = self._world.cluster.classes[some.pod_class]
            for name, pods in there:
                node = self._world.snapshot.nodes.numbers().get(name)
                if node is None or pod_class.verdicts[node]:
                    return False
                requested[node] = requested.get(node, 0) + pod_class.request * pods
        return all((amounts <= self._world.cluster.allocatable[node]).all() for node, amounts in requested.items())

    def _charge(self, group: Group, layout: Layout, reservation: Reservation) -> None:
        """Charge the reserved room of a group."""
        requests = (some.shape.request.items() for some in layout.pod_sets)
        requested = tuple(
            tuple(sorted((name, amount) for name, amount in each if amount and name != "pods")) for each in requests
        )
        self.by_group[group.key] = replace(reservation, requests=requested)
        amounts: dict[int, np.ndarray] = {}
        for some, there in zip(layout.pod_sets, reservation.places, strict=False):
            vector = self._world.snapshot.nodes.vector(some.shape)
            for name, pods in there:
                if (node := self._world.snapshot.nodes.numbers().get(name)) is not None:
                    amounts[node] = amounts.get(node, 0) + vector * pods
        account = self._world.accounts.get(group.queue)
        if amounts and account is not None:
            holders = held_on(self._world, amounts)
            room = ReservedRoom(self._world.cluster, group.key, layout.gang.level, account, amounts, holders)
            room.charge(on=True)
            self.rooms[group.key] = room

    # New reservations

    def _make_for_others(
        self, gangs: Mapping[str, Gang], assumed: Mapping[str, Attempt], is_short: Callable[[Gang], bool]
    ) -> None:
        """Make a reservation, in each queue without one, for the first group that has waited too long and is short.

        gangs are those that may get one, by group key. assumed are the attempts by which others have got nodes in this cycle.
        """
        if self._is_resting(ALL):
            return
        self.departures = Departures(self._world, assumed)
        # A queue whose reservation has ended in this cycle may have the next one here: at the entry, which comes first in each
        # cycle, a group may always have waited too long, and groups that are inside already would never get one.
        self._queues = {self._world.snapshot.groups[key].queue for key in self.by_group}
        tries, is_cut = 0, False
        latest = self._world.now - self._wait if self._wait is not None else 0
        for key, gang in gangs.items():
            group = self._world.snapshot.groups[key]
            if group.created > latest or gang.account is None or not gang.steps:
                continue
            if not self._is_open(group) or self._since(group) > latest:
                continue
            if self._is_resting(self._likeness(gang)) or not is_short(gang):
                continue
            if tries >= TRIES:
                is_cut = True
                continue
            found = self._choose(group)
            if found is None:
                tries += 1
                continue
            self._make(group, *found)
            self._charge(group, self._world.snapshot.layout_of(group), self.by_group[key])
            if len(self.departures.ordered) > COSTLY:
                self._rest(ALL)
                is_cut = True
        if is_cut:
            self._world.wake_at(self._world.now + fruitless.REST_MS)

    def _fits(self, gang: Gang, fitting: set[tuple[object, ...]]) -> bool:
        """Tell whether a gang has room now; fitting has the likenesses of those that do, and is added to."""
        likeness = self._likeness(gang)
        if likeness in fitting:
            return True
        fits = self._world.placer().fits(gang)
        if fits and gang.arranged is None:
            fitting.add(likeness)
        return fits

    def _make(self, group: Group, places: Places = (), expected: int | None = None) -> None:
        before = reserved.given_back_of(group.conditions)
        hold = 2 * before.hold if before else HOLDS * (self._wait or 0)
        self.by_group[group.key] = self._limited(Reservation(self._world.now, hold, expected, places))
        self._queues.add(group.queue)

    def _limited(self, reservation: Reservation) -> Reservation:
        """Set the later limit of a reservation whose group is expected to start so late that its first limit is too early."""
        late = (reservation.expected or 0) + (self._wait or 0)
        is_later = reservation.expected is not None and late > reservation.made + reservation.hold
        return replace(reservation, later=late if is_later else None)

    @cached_property
    def _queues(self) -> set[str]:
        """The queues that have a reservation."""
        reservations = (
            (self._world.snapshot.groups[key], each) for key, each in self._world.snapshot.groups.reserved.items()
        )
        return {
            group.queue
            for group, each in reservations
            if group.key in self._world.snapshot.groups.waiting and not group.has_released(each)
        }

    def _is_open(self, group: Group) -> bool:
        """Tell whether a group's queue may have one more reservation, and the group one again."""
        if group.queue in self._queues or len(self._queues) >= MOST:
            return False
        before = reserved.given_back_of(group.conditions)
        if before is not None and self._world.now < before.at + before.hold:
            self._world.wake_at(before.at + before.hold)
            return False
        return True

    def _since(self, group: Group) -> int:
        """Return since when a group waits for nodes: the latest of its creation, its first waiting pod's, and its giving room back."""
        layout = self._world.snapshot.layout_of(group)
        return max(self._patience(group), layout.pod_sets[0].pods[0].created)

    def _patience(self, group: Group) -> int:
        """Return since when a group has waited without giving back room; not later than now."""
        return max(group.created, min(group.released, self._world.now))

    def _choose(self, group: Group) -> tuple[Places, int | None] | None:
        """Return where a group will fit soonest, and when, if that is known; None where it would not even if all had ended."""
        gang = self._world.gangs[group.key]
        if not fits_on_empty_nodes(self._world.cluster, gang):
            return None
        leavers = self.departures.but(group)
        with self.counted_twice():
            found = soonest(self._world.cluster, gang, [each.leaver for each in leavers], pods=self._world.pods)
        if found is None:
            self._rest(self._likeness(gang))
            return None
        attempt, gone = found
        names = self._world.snapshot.nodes.names()
        places = tuple(
            tuple((names[node], pods) for node, pods in sorted(_counts(runs).items())) for runs in attempt.runs
        )
        end = leavers[gone - 1].end if gone else self._world.now
        return places, end if end is not None and end > self._world.now else None

    def _likeness(self, gang: Gang) -> tuple[object, ...]:
        """Return the key of searches with equal results. It has the reservations, as there may be room once one ends."""
        reserved_keys = tuple(sorted(self.rooms)) if len(self._world.snapshot.groups.holding) <= COSTLY else ()
        return *ALL, gang.bins, gang.steps, gang.account.name if gang.account else "", reserved_keys

    def _rest(self, likeness: tuple[object, ...]) -> None:
        changes = -1 if likeness == ALL else self._world.snapshot.changes
        fruitless.note(self._world.snapshot.memory.fruitless, likeness, self._world.now, changes=changes)

    def _is_resting(self, likeness: tuple[object, ...]) -> bool:
        """Tell whether places for such gangs were sought recently, at great cost or in vain, or in vain in an unchanged world."""
        searches = self._world.snapshot.memory.fruitless
        if likeness in searches and searches[likeness].changes == self._world.snapshot.changes:
            return True
        search = fruitless.resting(searches, likeness, self._world.now)
        if search is None:
            return False
        self._world.wake_at(search.due)
        return True


def _counts(runs: Sequence[tuple[list[int], list[int]]]) -> dict[int, int]:
    """Return how many pods are on each node."""
    found: dict[int, int] = {}
    for nodes, counts in runs:
        for node, pods in zip(nodes, counts, strict=True):
            found[node] = found.get(node, 0) + pods
    return found
