"""Groups let in although the gate keeps them out: their minimum would be placed on what is left when all others have been placed.

The gate (`scheduler.cycle.enqueue`) counts what groups that entered may still take, so that pods are created for about as much as
the cluster holds. That must leave no room idle: groups that entered may wait for something else, for long or for ever.

A group that is outside has no pods, so stand-ins are placed: as many as must start, each with its part of minResources, on all
nodes that take pods. Where the pods may differ, stand-ins are cut to pieces, as large and small ones may fit together where equal
ones do not. So a group may be let in whose own pods find no room in the end, which only they can show. Groups whose pods are
being created come first.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kube.kinds.scheduling import PodGroupPhase
from scheduler.cycle.enqueue import KEPT_OUT, rest_of
from scheduler.cycle.quotas import QuotaRoom
from scheduler.cycle.world import World
from scheduler.engine.accounts import copied
from scheduler.engine.cause import Cause
from scheduler.engine.cluster import Cluster
from scheduler.engine.gang import Bin, Gang, GangStep
from scheduler.engine.place import Placer
from scheduler.engine.pod_class import PodClass
from scheduler.gangs.waits import made_until
from scheduler.records.records import Group

PIECES = 8
"""How many pieces a stand-in is cut to where the pods of its group may differ."""


def entrants(world: World, entries: Mapping[str, Cause | None]) -> list[str]:
    """Return the keys of the groups that are let in after all; nothing is charged to the world, which is as after placing.

    entries are the gate's answers for the groups that are outside, in its order.
    """
    outside = [
        world.snapshot.groups[key]
        for key, cause in entries.items()
        if cause is not None and cause.entering and not cause.never and cause.reason in KEPT_OUT
    ]
    if not outside or not world.allocates:
        return []
    room = _Room(world)
    quotas = QuotaRoom(world.snapshot.quotas, world.waiting, world.snapshot.groups)
    for group in world.waiting:
        if group.phase == PodGroupPhase.INQUEUE:
            if made_until(group, world.now) is not None and len(group.pending) < group.min_member - group.ready():
                room.take(group)
        elif group.key in entries and entries[group.key] is None:
            room.take(group)
            quotas.admit(group)
    found = []
    for group in outside:
        if quotas.refusal(group) is None and room.take(group):
            quotas.admit(group)
            found.append(group.key)
    return found


class _Room:
    """What is idle: a copy of the nodes and of the accounts of queues, on which stand-ins are placed."""

    def __init__(self, world: World) -> None:
        self._nodes, self._pods = world.snapshot.nodes, world.pods
        self._accounts = copied(world.accounts, charged=True)
        self._classes: dict[int, PodClass] = {}
        self._cluster = Cluster(world.cluster.allocatable, world.cluster.free.copy(), self._classes)
        self._placer = Placer(self._cluster, pods=world.pods)
        self._verdicts = np.where(self._nodes.taking_pods(), 0, 1).astype(np.int32)
        self._left = np.maximum(world.cluster.free, 0)[self._verdicts == 0].sum(axis=0)
        self._numbers: dict[bytes, int] = {}
        self._failed: set[tuple[object, ...]] = set()

    def take(self, group: Group) -> bool:
        """Place stand-ins for a group's minimum, or for what it lacks of that; tell whether there was room for all."""
        rest = rest_of(group)
        missing = max(group.min_member - group.ready(), 1)
        is_mixed = missing > 1 and len(group.roles) != 1
        likeness = group.queue, tuple(rest.items()), missing, is_mixed
        if likeness in self._failed or group.queue not in self._accounts:
            return False
        whole = self._nodes.amounts(rest)
        pieces = missing * PIECES if is_mixed else missing
        request = whole // pieces
        if not is_mixed and self._pods >= 0:
            request[self._pods] = 1
        number = self._numbers.setdefault(request.tobytes(), len(self._numbers))
        if number not in self._classes:
            self._classes[number] = PodClass(request, self._verdicts)
        gang = Gang((Bin(number, pieces),), (GangStep(pieces, (0,)),), self._accounts[group.queue])
        if (whole > self._left).any() or self._placer.place_minimum(gang).short is not None:
            self._failed.add(likeness)
            return False
        self._left -= request * pieces
        return True
