"""Letting pod groups in: from Pending to Inqueue, where their job creates the pods.

Rules: reference/volcano-scheduler §2.1 and §3.10 (overcommit), with the
defects of §11 mended (design §4):

* A group that states no minResources enters at once.
* Otherwise its minResources must fit in 1.2 times the cluster, less what is in
  use and less what groups that entered before may still take (their
  minResources beyond what they hold already). Nodes that are not ready or
  closed to new pods do not count.
* What groups of lower priority use or may take is no obstacle, so that an
  urgent job comes as far as having pods even on a full cluster.
* A group whose minResources exceed 1.2 times the whole cluster stays out, as
  its pods would only be waste; it gets a cause with the numbers. One whose
  single pods are too large enters, since only its pods show that.
* A queue that does not exist, or is Closed, lets nobody in. A Closing queue
  goes on with what is in it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from kube.kinds.scheduling import PodGroupPhase, QueueState
from scheduler.engine.cause import Cause, Reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kube.amounts import Amounts
    from scheduler.engine.cluster import Cluster, Vector
    from scheduler.records import Group
    from scheduler.snapshot import Snapshot

OVERCOMMIT_PERCENT = 120

Minimum = tuple[tuple[str, int], ...]
Claim = tuple[int, "Amounts", int]
"""Priority, amounts, and how many times."""


def is_outside(group: Group) -> bool:
    """Tell whether a group has not been let in yet."""
    return group.phase in ("", PodGroupPhase.PENDING)


def enqueue(snapshot: Snapshot, ordered: Sequence[Group], cluster: Cluster) -> dict[str, Cause | None]:
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
            gate = gate or _Gate(snapshot, ordered, cluster)
            cause = gate.ask(group.min_resources, snapshot.priority_of(group.priority_class))
        answers[group.key] = cause
    return answers


def queue_cause(snapshot: Snapshot, group: Group) -> Cause | None:
    """Return the cause when the group's queue does not exist."""
    if group.queue in snapshot.queues:
        return None
    return Cause(Reason.QUEUE_NOT_FOUND, queue=group.queue)


def _closed(snapshot: Snapshot, group: Group) -> Cause | None:
    if snapshot.queues[group.queue].state != QueueState.CLOSED:
        return None
    return Cause(Reason.QUEUE_CLOSED, queue=group.queue)


class _Gate:
    """What may still be given out. It only falls: from priority to priority, and with each group let in."""

    def __init__(self, snapshot: Snapshot, ordered: Iterable[Group], cluster: Cluster) -> None:
        self._nodes = snapshot.nodes
        taking = self._nodes.taking_pods()
        self._whole: Vector = cluster.allocatable[taking].sum(axis=0)
        self._total: Vector = self._whole * OVERCOMMIT_PERCENT // 100
        used = (cluster.allocatable[taking] - cluster.free[taking]).sum(axis=0)
        claims = [*_used(snapshot), *_expected(snapshot, ordered)]
        self._claims = sorted(claims, key=lambda claim: -claim[0])
        self._left: Vector = self._total - np.maximum(used - self._sum(_used(snapshot)), 0)
        self._refused: dict[Minimum, Cause] = {}

    def ask(self, wanted: Minimum, priority: int) -> Cause | None:
        """Let a minimum in and count it, or return why not; priority never rises between calls."""
        while self._claims and self._claims[0][0] >= priority:
            self._left = self._left - self._sum([self._claims.pop(0)])
        if wanted in self._refused:
            return self._refused[wanted]
        cause = self._obstacle(wanted)
        if cause is None:
            self._left = self._left - self._nodes.amounts(dict(wanted))
        else:
            self._refused[wanted] = cause
        return cause

    def _sum(self, claims: Iterable[Claim]) -> Vector:
        zero = np.zeros(len(self._whole), dtype=np.int64)
        return sum((self._nodes.amounts(some) * times for _, some, times in claims), start=zero)

    def _obstacle(self, wanted: Minimum) -> Cause | None:
        """Return the cause of the first resource that is short, one that can never be there first."""
        short: Cause | None = None
        for name, amount in wanted:
            column = self._nodes.columns.get(name)
            whole, total, left = (
                0 if column is None else int(vector[column])
                for vector in (self._whole, self._total, self._left)
            )
            known = {"entering": True, "resource": name, "requested": amount, "whole": whole}
            if amount > total:
                return Cause(Reason.NEVER_FITS, never=True, **known)  # type: ignore[arg-type]
            if amount > left and short is None:
                short = Cause(Reason.NOT_ENOUGH_RESOURCES, free=max(left, 0), **known)  # type: ignore[arg-type]
        return short


def _used(snapshot: Snapshot) -> list[Claim]:
    """Return what pods of groups hold, with the priorities of their groups."""
    return [
        (snapshot.priority_of(name), shape.request, count)
        for (_, name), shapes in snapshot.usage.items()
        for shape, count in shapes.items()
    ]


def _expected(snapshot: Snapshot, ordered: Iterable[Group]) -> list[Claim]:
    """Return what groups that were let in before may still take."""
    untouched: Counter[tuple[int, Minimum]] = Counter()
    claims: list[Claim] = []
    for group in ordered:
        if group.phase != PodGroupPhase.INQUEUE or not group.min_resources:
            continue
        priority = snapshot.priority_of(group.priority_class)
        if group.shapes:
            claims.append((priority, _rest(group), 1))
        else:
            untouched[priority, group.min_resources] += 1
    return claims + [(priority, dict(some), times) for (priority, some), times in untouched.items()]


def _rest(group: Group) -> Amounts:
    """Return the part of a group's minResources that its pods do not hold yet."""
    rest = dict(group.min_resources or ())
    for shape, count in group.shapes.items():
        for name in rest:
            rest[name] -= shape.request.get(name, 0) * count
    return {name: max(amount, 0) for name, amount in rest.items()}
