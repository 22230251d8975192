"""Which pod groups enter: go from Pending to Inqueue, only then does their job create the pods.

Rules: reference/volcano-scheduler §2.1, §3.6 (capacity) and §3.10
(overcommit), with the defects of §11 mended (design §4):

* A group that states no minResources enters at once.
* Otherwise its minResources must fit in 1.2 times the cluster, less what is in
  use and less what groups that entered before may still take (their
  minResources beyond what they hold already). Nodes that are not ready or
  closed to new pods do not count.
* They must fit in the same way under the capability of its queue and of every
  queue above it; that is a limit, not an estimate, so nothing is overcommitted.
* What a group may still take is no more than its queues admit, so that a
  backlog behind a low ceiling takes nothing from the others.
* Pods that cannot be placed yet (scheduling gates, demands that the scheduler
  does not know, a queue that takes no pods) reserve nothing.
* What groups of lower priority use or may take is no obstacle, so that an
  urgent job comes as far as having pods even on a full cluster or queue.
* A group whose minResources exceed 1.2 times the whole cluster or a capability
  stays out, as its pods would only be waste; it gets a cause with the numbers.
  One whose single pods are too large enters, since only its pods show that.
* A queue that does not exist, is Closed, or has queues below it lets nobody
  in. A Closing queue goes on with what is in it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from kube.kinds.scheduling import PodGroupPhase, QueueState
from scheduler.cycle.ceilings import queue_cause
from scheduler.engine.cause import Cause, Promise, Reason
from scheduler.snapshot.nodes import LARGEST

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kube.amounts import Amounts
    from scheduler.cycle.ceilings import Ceilings
    from scheduler.engine.cluster import Cluster
    from scheduler.snapshot.nodes import PodShape
    from scheduler.snapshot.records import Group
    from scheduler.snapshot.snapshot import Snapshot

OVERCOMMIT_PERCENT = 120

Minimum = tuple[tuple[str, int], ...]


class Claim(NamedTuple):
    """What somebody in a queue holds, or (groups > 0) may still take; `times` over."""

    priority: int
    queue: str
    amounts: Amounts
    times: int
    groups: int = 0


def is_outside(group: Group) -> bool:
    """Tell whether a group has not been let in yet."""
    return group.phase in ("", PodGroupPhase.PENDING)


def enqueue(
    snapshot: Snapshot, ordered: Sequence[Group], cluster: Cluster, ceilings: Ceilings
) -> dict[str, Cause | None]:
    """Decide about each group that is outside: None lets it in, a cause keeps it out.

    ordered are the groups that wait, highest priority first. The cluster is
    as it is before anything is placed.
    """
    answers: dict[str, Cause | None] = {}
    gate: _Gate | None = None
    for group in ordered:
        if not is_outside(group):
            continue
        cause = queue_cause(snapshot, group) or _closed(snapshot, group)
        if cause is None and group.min_resources:
            gate = gate or _Gate(snapshot, ordered, cluster, ceilings)
            cause = gate.ask(group, snapshot.priority_of(group.priority_class))
        answers[group.key] = cause
    return answers


def _closed(snapshot: Snapshot, group: Group) -> Cause | None:
    if snapshot.queues[group.queue].state != QueueState.CLOSED:
        return None
    return Cause(Reason.QUEUE_CLOSED, queue=group.queue)


class _Room:
    """What may still be given out under one ceiling: that of the cluster (name is empty), or of a queue.

    whole is what people call the size, limit what may be given out at most.
    Resources that a queue does not limit are in none of them. largest is by
    resource the queue whose groups may still take most of it, as the fields of
    a Promise.
    """

    __slots__ = ("largest", "left", "limit", "name", "whole")

    def __init__(self, name: str, whole: Amounts, limit: Amounts, left: Amounts) -> None:
        self.name, self.whole, self.limit, self.left = name, whole, limit, left
        self.largest: dict[str, list[Any]] = {}


class _Gate:
    """What may still be given out. It only falls: from priority to priority, and with each group let in."""

    def __init__(
        self, snapshot: Snapshot, ordered: Iterable[Group], cluster: Cluster, ceilings: Ceilings
    ) -> None:
        used = list(_used(snapshot))
        self._cluster = _room_of_cluster(snapshot, cluster, used)
        self._queues = [_room_of_queue(snapshot, name) for name in ceilings.names]
        self._limits = ceilings.limits
        self._rooms: dict[str, list[_Room]] = {}
        # Taken from the end: of each priority first what is held, then what is expected, in the order of entry.
        claims = [*reversed(_expected(snapshot, ordered)), *used]
        self._claims = sorted(claims, key=lambda claim: claim.priority)
        self._refused: dict[tuple[tuple[int, ...], Minimum], Cause] = {}
        self._promised: dict[tuple[str, str], list[Any]] = {}

    def ask(self, group: Group, priority: int) -> Cause | None:
        """Let a group in and count its minimum, or return why not; priority never rises between calls."""
        while self._claims and self._claims[-1].priority >= priority:
            self._take(self._claims.pop())
        wanted = group.min_resources or ()
        known = self._limits(group.queue), wanted
        cause = self._refused.get(known)
        if cause is None:
            cause = self._obstacle(self._rooms_of(group.queue), wanted)
            if cause is None:
                self._take(Claim(priority, group.queue, _rest(group), 1, 1))
            else:
                self._refused[known] = cause
        return cause

    def _rooms_of(self, queue: str) -> list[_Room]:
        """Return the ceilings over a queue, its own first, that of the cluster last."""
        rooms = self._rooms.get(queue)
        if rooms is None:
            rooms = [*(self._queues[number] for number in self._limits(queue)), self._cluster]
            self._rooms[queue] = rooms
        return rooms

    def _take(self, claim: Claim) -> None:
        """Subtract a claim. What groups may still take is cut to what their queues admit."""
        rooms = self._rooms_of(claim.queue)
        for name, each in claim.amounts.items():
            amount = each * claim.times
            if claim.groups:
                for room in rooms[:-1]:
                    amount = min(amount, max(room.left.get(name, amount), 0))
                self._promise(claim, name, amount)
            for room in rooms:
                if name in room.left:
                    room.left[name] -= amount

    def _promise(self, claim: Claim, resource: str, amount: int) -> None:
        """Note for the sentences what groups may still take; what a queue may take never falls."""
        if not amount:
            return
        promise = self._promised.setdefault((claim.queue, resource), [0, claim.queue, 0])
        promise[0] += amount
        promise[2] += claim.groups
        for room in self._rooms_of(claim.queue):
            room.largest[resource] = max(room.largest.get(resource, promise), promise)

    def _obstacle(self, rooms: Sequence[_Room], wanted: Minimum) -> Cause | None:
        """Return the cause of the first resource that is short, one that can never be there first."""
        short: tuple[_Room, str, int] | None = None
        for name, amount in wanted:
            for room in rooms:
                left = room.left.get(name, 0)
                if amount <= left or (room.name and name not in room.limit):
                    continue
                if amount > room.limit.get(name, 0):
                    return _cause(room, name, amount, never=True)
                short = short or (room, name, amount)
        return _cause(*short, never=False) if short else None


def _cause(room: _Room, resource: str, amount: int, *, never: bool) -> Cause:
    largest = room.largest.get(resource)
    if room.name:
        reason = Reason.QUEUE_TOO_SMALL if never else Reason.QUEUE_LIMIT
    else:
        reason = Reason.NEVER_FITS if never else Reason.NOT_ENOUGH_RESOURCES
    return Cause(
        reason,
        never=never,
        entering=True,
        queue=room.name,
        resource=resource,
        requested=amount,
        free=max(room.left.get(resource, 0), 0),
        whole=room.whole.get(resource, 0),
        promise=None if never or largest is None else Promise(*largest),
    )


def _room_of_cluster(snapshot: Snapshot, cluster: Cluster, used: Iterable[Claim]) -> _Room:
    """Return 1.2 times what nodes that take pods offer, less what pods hold that use no queue."""
    nodes = snapshot.nodes
    taking = nodes.taking_pods()
    allocatable, free = cluster.allocatable[taking], cluster.free[taking]
    whole = dict(zip(nodes.columns, allocatable.sum(axis=0).tolist(), strict=True))
    limit = {name: amount * OVERCOMMIT_PERCENT // 100 for name, amount in whole.items()}
    foreign = Counter(dict(zip(nodes.columns, (allocatable - free).sum(axis=0).tolist(), strict=True)))
    for claim in used:
        foreign.subtract({name: amount * claim.times for name, amount in claim.amounts.items()})
    return _Room("", whole, limit, {name: limit[name] - max(foreign[name], 0) for name in limit})


def _room_of_queue(snapshot: Snapshot, name: str) -> _Room:
    limit = {resource: max(amount, 0) for resource, amount in snapshot.queues[name].capability.items()}
    return _Room(name, limit, limit, dict(limit))


def _used(snapshot: Snapshot) -> Iterator[Claim]:
    """Yield what pods hold, with the queues that they use and the priorities of their groups."""
    for (queue, name), shapes in snapshot.usage.items():
        for shape, count in shapes.items():
            yield Claim(snapshot.priority_of(name), queue, _request(shape), count)


def _expected(snapshot: Snapshot, ordered: Iterable[Group]) -> list[Claim]:
    """Return what groups that were let in before may still take."""
    untouched: Counter[tuple[int, str, Minimum]] = Counter()
    claims: list[Claim] = []
    for group in ordered:
        if group.phase != PodGroupPhase.INQUEUE or not group.min_resources or queue_cause(snapshot, group):
            continue
        priority = snapshot.priority_of(group.priority_class)
        if group.shapes or group.barred:
            claims.append(Claim(priority, group.queue, _rest(group), 1, 1))
        else:
            untouched[priority, group.queue, group.min_resources] += 1
    return claims + [Claim(*key[:2], dict(key[2]), times, times) for key, times in untouched.items()]


def _rest(group: Group) -> Amounts:
    """Return the part of a group's minResources that its pods do not hold yet and that may be placed."""
    rest = dict(group.min_resources or ())
    if not group.shapes and not group.barred:
        return rest
    for shapes in (group.shapes, group.barred):
        for shape, count in shapes.items():
            for name in rest:
                rest[name] -= shape.request.get(name, 0) * count
    return {name: max(amount, 0) for name, amount in rest.items()}


def _request(shape: PodShape) -> Amounts:
    return {name: min(max(amount, 0), LARGEST) for name, amount in shape.request.items()}
