"""Which pod groups enter: go from Pending to Inqueue, only then does their job create the pods.

Rules: reference/volcano-scheduler §2.1, §3.6 (capacity) and §3.10 (overcommit), with the defects of §11 fixed (design §4):

* Queues take turns by their shares, in which what was let in counts like what runs; within a queue groups go by priority and age.
  So no backlog of one queue keeps another one out for ever. In a FIFO queue no group passes the first one that is kept out.
* A group that states no minResources needs no room.
* A group stays out if a ResourceQuota of its namespace has no room for its minimum; it keeps no other group out
  (`scheduler.cycle.quotas`).
* Otherwise its minResources must fit in the cluster times the policy's overcommit (1.2 by default), less what is in use and less
  what groups that entered before may still take (their minResources beyond what they hold already). Nodes that are not ready or
  closed to new pods do not count. Without overcommit the cluster is no limit.
* They must fit in the same way under the capability of its queue and of every queue above it; that is a limit, not an estimate,
  so nothing is overcommitted.
* What is guaranteed to other queues and not used there is not given out.
* What a group may still take is no more than its queues admit, so that a backlog behind a low ceiling takes nothing from the
  others. A group that was let in and could not start even on empty nodes may take nothing, as it would keep all others out for
  ever: its pods are too large, no node has their labels, some are never created, another configuration let it in, or nodes are
  gone since.
* Pods that cannot be placed yet (scheduling gates, demands that the scheduler does not know, a queue that takes no pods) reserve
  nothing.
* A group that was kept out for too long gets a place in line for a reservation (`scheduler.cycle.reservations`) and is let in
  whatever room there is, unless there can never be enough. What groups with reservations may take does not count here, as their
  room is reserved on nodes, where what runs now is counted already.
* With the plugin sla a group whose waiting time is up is let in whatever room there is, unless there can never be enough. What it
  may take counts for the others.
* What groups of lower priority use or may take is no obstacle, so that an urgent job gets its pods even on a full cluster or
  queue.
* What other queues use beyond what they deserve is no obstacle to a group whose minimum its queue deserves, where that may be
  reclaimed: reclaim needs the group's pods to exist.
* A group whose minResources exceed the cluster's limit or a capability stays out, as its pods would be useless; its cause has the
  numbers. So does a group for which the guarantees of others can never leave room. One whose single pods are too large enters,
  since only its pods show that.
* A queue that does not exist, is Closed, or has queues below it lets no group in. A Closing queue goes on with what is in it: it
  lets in groups created before it was shut. For a job's group the job's time counts, as the job gets another group when it
  restarts (`kube.volcano.intake_times`).
* A group that would be placed on what is left in the end is let in all the same (`scheduler.cycle.idle_room`).
* Where the policy does not name the action, all others enter at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from kube.amounts import Amounts
from kube.kinds.scheduling import PodGroupPhase, QueueState
from kube.usage import ROOT_QUEUE
from kube.volcano.intake_times import is_new
from scheduler.cycle.gate import Claim, ClusterRoom, Gate, Minimum
from scheduler.cycle.queue_accounts import giving_queues, queue_cause
from scheduler.cycle.quotas import QuotaRoom
from scheduler.cycle.reservations import Reservations
from scheduler.cycle.world import World
from scheduler.engine.arrays import UNLIMITED, Vector
from scheduler.engine.cause import Cause, Reason
from scheduler.engine.gang import Gang
from scheduler.engine.turns import Turns
from scheduler.gangs.waits import deadline, made_until
from scheduler.policy.actions import Action
from scheduler.reasons.explain import fits_on_empty_nodes
from scheduler.records.records import Group
from scheduler.records.shapes import LARGEST, PodShape
from scheduler.shares.deserved import ceiling
from scheduler.snapshot.snapshot import Snapshot

KEPT_OUT = frozenset(
    (
        Reason.NOT_ENOUGH_RESOURCES,
        Reason.NODES_UNAVAILABLE,
        Reason.NEVER_FITS,
        Reason.QUEUE_LIMIT,
        Reason.QUEUE_TOO_SMALL,
        Reason.PARENT_LIMIT,
        Reason.PARENT_TOO_SMALL,
        Reason.QUEUE_GUARANTEES,
    )
)
"""Causes for which a FIFO queue lets no group pass."""


def enqueue(world: World, reservations: Reservations) -> dict[str, Cause | None]:
    """Decide about each group that is outside, by key: None lets it in, a cause keeps it out.

    Groups that were let in before also get a cause where the queue waits for one before them. The cluster and the accounts are as
    before anything is placed.
    """
    snapshot = world.snapshot
    entries: dict[str, Cause | None] = {}
    entrants: list[Group] = []
    for group in world.waiting:
        if group.is_outside:
            entries[group.key] = cause = queue_cause(snapshot, group) or _closed(snapshot, group)
            if cause is None:
                entrants.append(group)
    if Action.ENQUEUE in world.policy.actions and any(group.min_resources for group in entrants):
        entries |= _let_in(world, entrants, reservations)
        entries |= _behind(world, entries)
    if world.policy.sla:
        dues = (deadline(world.policy, group) for group in world.waiting if entries.get(group.key) is not None)
        world.wake_at(min((due for due in dues if due is not None and due > world.now), default=None))
    return entries


def _let_in(world: World, entrants: Sequence[Group], reservations: Reservations) -> Iterator[tuple[str, Cause | None]]:
    """Yield for each group that asks to enter its key, and None if it is let in or why it is not."""
    snapshot = world.snapshot
    gate = _gate(world, entrants)
    giving = giving_queues(snapshot, world.accounts) if Action.RECLAIM in world.policy.actions else set()
    quotas = QuotaRoom(snapshot.quotas, world.waiting, snapshot.groups)
    priorities = [snapshot.priority_of(group.priority_class) for group in entrants]
    gangs = [
        Gang((), account=gate.account(group.queue), level=priority)
        for group, priority in zip(entrants, priorities, strict=True)
    ]
    turns = Turns(gangs, ())
    while (turn := turns.take()) is not None:
        group = entrants[turn.gang]
        if (exceeded := quotas.refusal(group)) is not None:
            yield group.key, exceeded
            turns.end()
            continue
        claim = Claim(priorities[turn.gang], group.queue, rest_of(group), 1, 1)
        wanted = group.min_resources or ()
        cause = gate.ask(wanted, claim)
        due = deadline(world.policy, group)
        is_promised = (giving and gate.is_deserved(group.queue, wanted)) or (due is not None and due <= world.now)
        if cause is not None and not cause.never and is_promised:
            gate.admit(claim)
            cause = None
        if cause is not None and not cause.never and reservations.may_enter(group):
            reservations.enter(group)
            cause = None
        yield group.key, cause
        if cause is None:
            quotas.admit(group)
        elif gate.account(group.queue).fifo:
            yield from ((entrants[number].key, _order_cause(group)) for number in turns.close())
        turns.end()


def _behind(world: World, entries: Mapping[str, Cause | None]) -> Iterator[tuple[str, Cause]]:
    """Yield a cause for each group that is in but behind one that its queue waits for; not for those that started."""
    first: dict[str, Group] = {}
    for group in world.waiting:
        cause = entries.get(group.key)
        account = world.accounts.get(group.queue)
        if account is None or not account.fifo:
            continue
        if cause is not None and cause.reason in KEPT_OUT:
            first.setdefault(group.queue, group)
        elif group.queue in first and group.key not in entries and group.ready() < max(group.min_member, 1):
            yield group.key, _order_cause(first[group.queue])


def _order_cause(first: Group) -> Cause:
    """Return the cause of groups behind the one that a queue waits for."""
    return Cause(Reason.QUEUE_ORDER, entering=True, queue=first.queue, group=first.name)


def _closed(snapshot: Snapshot, group: Group) -> Cause | None:
    """Return the cause if a group that is outside would be new work in a queue that takes none."""
    queue = snapshot.queues[group.queue]
    is_late = queue.state == QueueState.CLOSING and is_new(group.submitted_at, queue.shut_since)
    if queue.state != QueueState.CLOSED and not is_late:
        return None
    return Cause(Reason.QUEUE_CLOSED, queue=group.queue)


def _gate(world: World, entrants: Iterable[Group]) -> Gate:
    used = list(_used(world.snapshot))
    priorities = {world.snapshot.priority_of(group.priority_class) for group in entrants}
    room = _room_of_cluster(world, used)
    return Gate(world.accounts, room, [*used, *_expected(world, room)], priorities)


def _room_of_cluster(world: World, used: Iterable[Claim]) -> ClusterRoom:
    """Return what nodes that take pods offer, how much may be given out, and what pods without a queue hold there."""
    nodes, cluster = world.snapshot.nodes, world.cluster
    taking = nodes.taking_pods()
    allocatable, free = cluster.allocatable[taking], cluster.free[taking]
    size = allocatable.sum(axis=0)
    foreign = (allocatable - free).sum(axis=0)
    for claim in used:
        foreign -= nodes.amounts(claim.amounts) * claim.times
    most = _most(size.tolist(), world.policy.overcommit)
    if (root := world.snapshot.queues.get(ROOT_QUEUE)) is not None:
        most = np.minimum(most, ceiling(root, nodes.amounts, len(most)))
    away = cluster.allocatable[~taking].sum(axis=0)
    return ClusterRoom(nodes.columns, size.tolist(), most.tolist(), np.maximum(foreign, 0).tolist(), away.tolist())


def _most(size: Sequence[int], thousandths: int | None) -> Vector:
    """Return how much of a cluster of this size may be given out."""
    if thousandths is None:
        return np.full(len(size), UNLIMITED, dtype=np.int64)
    return np.array([min(whole * thousandths // 1000, UNLIMITED) for whole in size], dtype=np.int64)


def _used(snapshot: Snapshot) -> Iterator[Claim]:
    """Yield what pods hold, with the queues that they use and the priorities of their groups."""
    for (queue, name), shapes in snapshot.usage.items():
        for shape, count in shapes.items():
            yield Claim(snapshot.priority_of(name), queue, _request(shape), count)


def _expected(world: World, room: ClusterRoom) -> list[Claim]:
    """Return what groups let in before may still take; nothing for those that could not start on an empty cluster."""
    snapshot = world.snapshot
    untouched: Counter[tuple[int, str, Minimum]] = Counter()
    claims: list[Claim] = []
    for group in world.waiting:
        if group.phase != PodGroupPhase.INQUEUE or not group.min_resources or queue_cause(snapshot, group):
            continue
        if group.key in snapshot.groups.reserved:
            continue
        if not _is_held_by(room, group.min_resources) or not _may_start(world, group):
            continue
        priority = snapshot.priority_of(group.priority_class)
        if group.shapes or group.barred:
            claims.append(Claim(priority, group.queue, rest_of(group), 1, 1))
        else:
            untouched[priority, group.queue, group.min_resources] += 1
    return claims + [Claim(*key[:2], dict(key[2]), times, times) for key, times in untouched.items()]


def _may_start(world: World, group: Group) -> bool:
    """Tell whether the minimum of a group that was let in would fit if nothing else ran.

    While its pods are being created that is unknown, and taken for true.
    """
    layout = world.snapshot.layout_of(group)
    if not group.pending:
        return True
    if layout.constraint() is not None or world.snapshot.unbound_claim(group):
        return False
    if layout.absent:
        return made_until(group, world.now) is not None
    return fits_on_empty_nodes(world.cluster, world.gang_of(group, layout))


def _is_held_by(room: ClusterRoom, minimum: Minimum) -> bool:
    """Tell whether the nodes would have room for a minimum if they were empty."""
    columns = ((room.columns.get(name), amount) for name, amount in minimum)
    return all(amount <= (0 if column is None else room.size[column]) for column, amount in columns)


def rest_of(group: Group) -> Amounts:
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
