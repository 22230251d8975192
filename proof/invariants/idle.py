"""At rest nothing waits for what nobody uses."""

from __future__ import annotations

from kube.volcano import reserved_room
from proof.invariants.invariant import Invariant
from proof.invariants.picture import Picture
from proof.invariants.views import GROUPS, Group, Node, Queue, readable
from proof.invariants.waiting import waiting_of
from scheduler.idle import facts, judge


class IdleRoom(Invariant):
    """Source: `scheduler.idle.judge`, which says of whom it can be told.

    The same checker runs in the product; it is told here what the log shows, read by the invariants' own rules.
    """

    name = "idle room is given out"
    meaning = "At rest no pod group is told that room is missing for which there is idle room that is kept for nobody."
    kinds = ()

    def settle(self, now: int) -> None:
        world = world_of(self.picture)
        blocked = [group for group in world.groups.values() if judge.is_about_room(world, group)]
        for group, pods in judge.startable(world, blocked):
            text = f"is told {group.message!r}, and there is idle room for its {pods} pods"
            raise self.broken(f"{GROUPS}/{group.key}", text)


def world_of(picture: Picture) -> facts.World:
    """Return what the checker is told of a picture."""
    return facts.World(
        {key.removeprefix("/"): node.facts for key, node in picture.nodes.items() if type(node) is Node},
        picture.used,
        {
            key.removeprefix("/"): _queue(picture, key.removeprefix("/"), queue)
            for key, queue in picture.queues.items()
            if type(queue) is Queue
        },
        {key: _group(picture, key, group) for key, group in picture.groups.items() if type(group) is Group},
        {key.partition("/")[0] for key in picture.quotas},
    )


def _queue(picture: Picture, name: str, queue: Queue) -> facts.Queue:
    use = picture.queue_use
    is_fifo = queue.spec.dequeue_strategy == "fifo"
    return facts.Queue(use.parent(name), queue.capability, queue.guarantee, use.own.get(name, {}), is_fifo)


def _group(picture: Picture, key: str, group: Group) -> facts.Group:
    spec, waiting = group.spec, waiting_of(picture, key, group)
    conditions = {each.type: each for each in group.status.conditions if each.status == "True"}
    why, reserved = conditions.get("Unschedulable"), conditions.get(reserved_room.DATA)
    return facts.Group(
        key,
        group.queue,
        group.phase,
        group.minimum,
        spec.min_task_member,
        readable(spec.min_resources),
        bool(spec.network_topology or spec.sub_group_policy),
        why.reason if why else "",
        why.message if why else "",
        reserved_room.read(reserved.message) if reserved else None,
        [pod.role for pod in waiting.ready],
        [(pod.ask.request, each) for pod, each in waiting.pods.values()],
    )


INVARIANTS = (IdleRoom,)
