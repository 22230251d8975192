"""Which pod groups could start on idle room although they wait.

Source: design §4, "the KEP's backfill", and what users expect: a group that could start on room that nobody uses does so.

A group is judged only where a naive count is exact: its pods are alike and have no rules about others, or it is not admitted yet and its
only task says how many equal pods it will have. And only if its reason is missing room, or if it has no reason.
What a reservation reserves is what its data say. While any group waits for victims that are not gone, no group is judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kube.amounts import Amounts
from kube.volcano.reserved_room import Reservation
from scheduler.idle import placing
from scheduler.idle.facts import Group, World
from scheduler.idle.room import ReservedRoom, Room
from scheduler.idle.waiting_pod import WaitingPod

# Reasons that mean missing room: on nodes, under a queue's limit, or because it is reserved for others.
OF_ROOM = frozenset(
    {
        "NotEnoughResources",
        "QueueLimit",
        "ParentQueueLimit",
        "QueueGuarantees",
        "QueueOverDeserved",
        "RoomKept",
        "Reserved",
    }
)
OF_ORDER = "QueueOrder"  # another group in its queue comes first; valid only where the queue is first in, first out
OF_VICTIMS = "WaitingForVictims"
NOT_LET_IN = ("", "Pending")
REQUESTS = "requests."
OF_QUOTAS = (REQUESTS, "limits.", "count/")


class GroupRequest(NamedTuple):
    """What each pod of a group requests, how many must start, and what decides where they may be."""

    request: Amounts
    pods: int
    waiting: WaitingPod


def is_about_room(world: World, group: Group) -> bool:
    """Tell whether a group's reason means that room is missing."""
    queue = world.queues.get(group.queue)
    return group.reason in OF_ROOM or (group.reason == OF_ORDER and not (queue and queue.is_fifo))


def startable(world: World, groups: Iterable[Group]) -> Iterator[tuple[Group, int]]:
    """Yield those of `groups` that could start on idle room, each with how many pods. Reservations are those of all groups in the world."""
    every = world.groups.values()
    if any(group.reason == OF_VICTIMS for group in every):
        return
    reserved = {
        group.key: _reserved_room(world, group, group.reservation) for group in every if group.reservation is not None
    }
    placed = {key: each for key, each in reserved.items() if each is not None and each.places}
    if None in reserved.values():
        return
    shared = Room(world, placed.values())
    verdicts: dict[tuple[str, bytes, int], bool] = {}
    for group in groups:
        demand = _request(world, group)
        if demand is None:
            continue
        if group.key in placed:
            room = Room(world, (each for key, each in placed.items() if key != group.key))
            could = room.holds(group.queue, *demand)
        else:
            likeness = group.queue, placing.likeness(demand.request, demand.waiting), demand.pods
            if likeness not in verdicts:
                verdicts[likeness] = shared.holds(group.queue, *demand)
            could = verdicts[likeness]
        if could:
            yield group, demand.pods


def _reserved_room(world: World, group: Group, reservation: Reservation) -> ReservedRoom | None:
    """Return what a reservation holds; None where that is unknown."""
    if not reservation.places:
        return ReservedRoom(group.queue, {}, {})  # a place in line
    demand = _request(world, group)
    if demand is None or len(reservation.places) > 1:
        return None
    return ReservedRoom(group.queue, demand.request, dict(reservation.places[0]))


def _request(world: World, group: Group) -> GroupRequest | None:
    """Return what a group requests; None where a naive count would not be exact, as where its pods differ."""
    if group.is_arranged:
        return None
    if not group.pods:
        return _request_outside(world, group)
    if len(group.pods) < group.needed:
        return None
    if len({placing.likeness(*each) for each in group.pods}) > 1:
        return None
    request, waiting = group.pods[0]
    return None if waiting.has_rules else GroupRequest(request, group.needed, waiting)


def _request_outside(world: World, group: Group) -> GroupRequest | None:
    """Return what a group without pods will request; None unless it is not admitted yet and its only task tells."""
    # Job controllers repeat amounts under the names that quotas use; where only those exist, the group is not judged.
    written = group.min_resources
    whole = {name: amount for name, amount in written.items() if not name.startswith(OF_QUOTAS)}
    if any(name.startswith(REQUESTS) and name.removeprefix(REQUESTS) not in whole for name in written):
        return None
    if group.phase not in NOT_LET_IN or len(group.roles) != 1 or not whole or group.minimum < 1:
        return None
    if any(amount % group.minimum for amount in whole.values()):
        return None
    if group.key.partition("/")[0] in world.limited:
        return None
    request = {name: amount // group.minimum for name, amount in whole.items()}
    return GroupRequest({**request, "pods": 1}, group.minimum, WaitingPod())
