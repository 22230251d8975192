"""Which pod groups enter: go from Pending to Inqueue, only then does their job create the pods.

Rules: reference/volcano-scheduler §2.1, §3.6 (capacity) and §3.10
(overcommit), with the defects of §11 mended (design §4):

* Queues take turns by their shares, in which what was let in counts like what runs; within a queue groups go
  by priority and age. So no backlog of one queue keeps another one out for ever. A queue that is first in, first
  out lets nobody pass the first one that is kept out.
* A group that states no minResources needs no room.
* A group for whose minimum a ResourceQuota of its namespace has no room stays out, and keeps nobody else out (`scheduler.cycle.quotas`).
* Otherwise its minResources must fit in the cluster times the policy's overcommit (1.2 where nobody says
  otherwise), less what is in use and less what groups that entered before may still take (their
  minResources beyond what they hold already). Nodes that are not ready or
  closed to new pods do not count. Without overcommit the cluster is no limit.
* They must fit in the same way under the capability of its queue and of every
  queue above it; that is a limit, not an estimate, so nothing is overcommitted.
* What is guaranteed to other queues and not used there is given out to nobody else.
* What a group may still take is no more than its queues admit, so that a
  backlog behind a low ceiling takes nothing from the others. One that was let in and could not start were the nodes
  empty, may take nothing: its pods are too large, no node has their labels, some of them are never made, it was let in by another configuration,
  or nodes are gone since. It would keep everybody else out for ever.
* Pods that cannot be placed yet (scheduling gates, demands that the scheduler
  does not know, a queue that takes no pods) reserve nothing.
* A group that was kept out for too long gets a place in line for a reservation (`scheduler.cycle.reservations`) and is let in
  whatever room there is, unless there can never be enough. What groups with reservations may take does not count here, as
  their room is kept on nodes, where what runs now is counted already.
* With the plugin sla a group that has waited for its time is let in whatever room there is, unless there can
  never be enough. What it may take counts for the others.
* What groups of lower priority use or may take is no obstacle, so that an
  urgent job comes as far as having pods even on a full cluster or queue.
* What other queues use beyond what they deserve is no obstacle to a group that its queue deserves, where it may be
  reclaimed: the group's pods have to be there so that it is.
* A group whose minResources exceed that or a capability stays out, as its pods would only be waste; it gets a cause with the numbers.
  So does one that guarantees of others can never leave room for. One whose
  single pods are too large enters, since only its pods show that.
* A queue that does not exist, is Closed, or has queues below it lets nobody
  in. A Closing queue goes on with what is in it: it lets in whoever was made before it was shut, and of a job's
  group the job counts, which gets another one when it begins again (`kube.volcano.intake_times`).
* Whoever would be placed on what is left in the end is let in all the same (`scheduler.cycle.idle_room`).
* Where the policy does not name the action, all others enter at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np

from kube.amounts import Amounts
from kube.kinds.scheduling import PodGroupPhase, QueueState
from kube.usage import ROOT_QUEUE
from kube.volcano.intake_times import is_new
from scheduler.cycle.gate import Claim, ClusterRoom, Gate, Minimum
from scheduler.cycle.queue_accounts import giving_queues, queue_cause
from scheduler.cycle.quotas import QuotaRoom
from scheduler.cycle.reservations import Reservations
from scheduler.engine.accounts import Account
from scheduler.engine.arrays import UNLIMITED, Vector
from scheduler.engine.cause import Cause, Reason
from scheduler.engine.cluster import Cluster
from scheduler.engine.gang import Gang
from scheduler.engine.turns import Turns
from scheduler.gangs.waits import deadline
from scheduler.policy.actions import Action
from scheduler.policy.policy import Policy
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
"""Causes for which a queue that is first in, first out lets nobody pass."""


def enqueue(
    snapshot: Snapshot,
    ordered: Sequence[Group],
    cluster: Cluster,
    accounts: Mapping[str, Account],
    reservations: Reservations,
    may_start: Callable[[Group], bool],
    now: int,
) -> dict[str, Cause | None]:
    """Decide about each group that is outside: None lets it in, a cause keeps it out.

    Groups that were let in before get a cause as well where the queue waits for one before them.
    ordered are the groups that wait, highest priority first. The cluster and the accounts are
    as they are before anything is placed. may_start tells of a group that was let in whether it could if nothing else ran.
    """
    answers: dict[str, Cause | None] = {}
    asking: list[Group] = []
    for group in ordered:
        if group.is_outside:
            answers[group.key] = cause = queue_cause(snapshot, group) or _closed(snapshot, group)
            if cause is None:
                asking.append(group)
    if Action.ENQUEUE in snapshot.policy.actions and any(group.min_resources for group in asking):
        gate = _gate(snapshot, ordered, asking, cluster, accounts, may_start)
        giving = giving_queues(snapshot, accounts) if Action.RECLAIM in snapshot.policy.actions else set()
        quotas = QuotaRoom(snapshot.quotas, ordered, snapshot.groups)
        answers |= _ask(snapshot, gate, asking, giving, quotas, reservations, now)
        answers |= _behind(ordered, answers, accounts)
    return answers


def _ask(
    snapshot: Snapshot,
    gate: Gate,
    asking: Sequence[Group],
    giving: Collection[str],
    quotas: QuotaRoom,
    reservations: Reservations,
    now: int,
) -> Iterator[tuple[str, Cause | None]]:
    """Yield for each group, by its key, None when it is let in or why it is not; giving are the queues that others may reclaim from."""
    priorities = [snapshot.priority_of(group.priority_class) for group in asking]
    entrants = [
        Gang((), account=gate.account(group.queue), level=priority)
        for group, priority in zip(asking, priorities, strict=True)
    ]
    turns = Turns(entrants, ())
    while (turn := turns.take()) is not None:
        group = asking[turn.gang]
        if (exceeded := quotas.refusal(group)) is not None:
            yield group.key, exceeded
            turns.end()
            continue
        claim = Claim(priorities[turn.gang], group.queue, rest_of(group), 1, 1)
        wanted = group.min_resources or ()
        cause = gate.ask(wanted, claim)
        is_promised = (giving and gate.is_deserved(group.queue, wanted)) or _is_due(snapshot.policy, group, now)
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
            yield from ((asking[number].key, _order_cause(group)) for number in turns.close())
        turns.end()


def _is_due(policy: Policy, group: Group, now: int) -> bool:
    """Tell whether a group has waited for as long as it may."""
    due = deadline(policy, group)
    return due is not None and due <= now


def _behind(
    ordered: Iterable[Group], answers: Mapping[str, Cause | None], accounts: Mapping[str, Account]
) -> Iterator[tuple[str, Cause]]:
    """Yield a cause for each group that is in already, but behind one that its queue waits for; not for those that started."""
    first: dict[str, Group] = {}
    for group in ordered:
        cause = answers.get(group.key)
        account = accounts.get(group.queue)
        if account is None or not account.fifo:
            continue
        if cause is not None and cause.reason in KEPT_OUT:
            first.setdefault(group.queue, group)
        elif group.queue in first and group.key not in answers and group.ready() < max(group.min_member, 1):
            yield group.key, _order_cause(first[group.queue])


def _order_cause(first: Group) -> Cause:
    """Return the cause of those behind the group for which a queue waits."""
    return Cause(Reason.QUEUE_ORDER, entering=True, queue=first.queue, group=first.name)


def _closed(snapshot: Snapshot, group: Group) -> Cause | None:
    """Return the cause when a group that is outside would be new work in a queue that takes none."""
    queue = snapshot.queues[group.queue]
    is_late = queue.state == QueueState.CLOSING and is_new(group.asked_since, queue.shut_since)
    if queue.state != QueueState.CLOSED and not is_late:
        return None
    return Cause(Reason.QUEUE_CLOSED, queue=group.queue)


def _gate(
    snapshot: Snapshot,
    ordered: Iterable[Group],
    asking: Iterable[Group],
    cluster: Cluster,
    accounts: Mapping[str, Account],
    may_start: Callable[[Group], bool],
) -> Gate:
    used = list(_used(snapshot))
    priorities = {snapshot.priority_of(group.priority_class) for group in asking}
    room = _room_of_cluster(snapshot, cluster, used)
    return Gate(accounts, room, [*used, *_expected(snapshot, ordered, room, may_start)], priorities)


def _room_of_cluster(snapshot: Snapshot, cluster: Cluster, used: Iterable[Claim]) -> ClusterRoom:
    """Return what nodes that take pods offer, how much may be given out, and what pods hold there that use no queue."""
    nodes = snapshot.nodes
    taking = nodes.taking_pods()
    allocatable, free = cluster.allocatable[taking], cluster.free[taking]
    size = allocatable.sum(axis=0)
    foreign = (allocatable - free).sum(axis=0)
    for claim in used:
        foreign -= nodes.amounts(claim.amounts) * claim.times
    most = _most(size.tolist(), snapshot.policy.overcommit)
    if (root := snapshot.queues.get(ROOT_QUEUE)) is not None:
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


def _expected(
    snapshot: Snapshot, ordered: Iterable[Group], room: ClusterRoom, may_start: Callable[[Group], bool]
) -> list[Claim]:
    """Return what groups that were let in before may still take; nothing of those that cannot start, were the cluster empty."""
    untouched: Counter[tuple[int, str, Minimum]] = Counter()
    claims: list[Claim] = []
    for group in ordered:
        if group.phase != PodGroupPhase.INQUEUE or not group.min_resources or queue_cause(snapshot, group):
            continue
        if group.key in snapshot.reserved:
            continue
        if not _is_held_by(room, group.min_resources) or not may_start(group):
            continue
        priority = snapshot.priority_of(group.priority_class)
        if group.shapes or group.barred:
            claims.append(Claim(priority, group.queue, rest_of(group), 1, 1))
        else:
            untouched[priority, group.queue, group.min_resources] += 1
    return claims + [Claim(*key[:2], dict(key[2]), times, times) for key, times in untouched.items()]


def _is_held_by(room: ClusterRoom, minimum: Minimum) -> bool:
    """Tell whether the nodes would have room for a minimum, were they empty."""
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
