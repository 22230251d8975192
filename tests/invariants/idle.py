"""At rest nothing waits for what nobody uses."""

from __future__ import annotations

import re
from collections import Counter, defaultdict

from tests.invariants import placing
from tests.invariants.invariant import Invariant
from tests.invariants.views import GROUPS, ROOT_QUEUE, Group, Node, Queue, readable
from tests.invariants.waiting import waiting_of

# Reasons by which somebody is told that room is missing: on nodes, under a queue's ceiling, or because it is kept for others.
OF_ROOM = (
    "NotEnoughResources", "QueueLimit", "ParentLimit", "QueueGuarantees", "QueueOverDeserved", "RoomKept", "Reserved",
)  # fmt: skip
PLACES = re.compile(r"Kept for \S+ at most.*; on (?P<places>.+)")


class Room:
    """What nobody uses: on nodes, and under the ceilings of queues. A naive count over the objects themselves."""

    def __init__(self, picture, kept):
        self._picture, self._use = picture, picture.queue_use
        self.nodes = {
            key.removeprefix("/"): node for key, node in picture.nodes.items() if type(node) is Node
        }
        self.used = {name: Counter(picture.used.get(name, {})) for name in self.nodes}
        self._more = defaultdict(Counter)  # queue → what is kept for it
        self._kept = Counter()  # that of what is kept which nobody uses
        for each in kept:
            self._keep(*each)

    def _keep(self, name, request, places):
        for node, pods in places.items():
            if node not in self.nodes:
                continue
            free = self.nodes[node].offers
            for resource, amount in request.items():
                idle = max(free.get(resource, 0) - self.used[node][resource], 0)
                self._kept[resource] += min(amount * pods, idle)
                self._more[name][resource] += amount * pods
                self.used[node][resource] += amount * pods

    def holds(self, name, request, pods, waiting):
        """Say whether there is room for so many pods of a queue: on nodes that are open to them, and under each ceiling."""
        if placing.room(request, waiting, self.nodes, self.used) < pods:
            return False
        asked = {resource: amount * pods for resource, amount in request.items() if amount > 0}
        return all(self._is_below(above, name, asked) for above in self._use.line(name))

    def _is_below(self, above, name, asked):
        limits = self._limits(above)
        return all(
            self._held(above, resource, name, amount) <= limits[resource]
            for resource, amount in asked.items()
            if resource in limits
        )

    def _limits(self, name):
        limits = dict(self._spec(name).capability) if self._spec(name) else {}
        if name == ROOT_QUEUE:
            for resource in {resource for node in self.nodes.values() for resource in node.offers}:
                limits[resource] = min(limits.get(resource, self._whole(resource)), self._whole(resource))
        return limits

    def _whole(self, resource):
        """Return what is of a resource on nodes that take pods, and what pods use on the others."""
        whole = 0
        for name, node in self.nodes.items():
            used = self._picture.used.get(name, {}).get(resource, 0)
            takes = node.is_ready and not node.spec.unschedulable
            whole += max(node.offers.get(resource, 0), used) if takes else used
        return whole

    def _held(self, name, resource, taker, amount):
        """Return what a queue holds with what is guaranteed below it and not used there, if another one takes more."""
        own = self._use.own[name][resource] if name in self._use.own else 0
        own += amount if name == taker else 0
        below = [each for each in self._use.below(name) if each != name and self._use.parent(each) == name]
        if name == ROOT_QUEUE:
            own += self._foreign(resource) + self._kept[resource]
        else:
            own += self._more[name][resource]
        held = own
        for each in below:
            inner = self._held(each, resource, taker, amount)
            inner -= self._kept_below(each, resource) if name == ROOT_QUEUE else 0
            held += max(inner, self._guarantee(each, resource))
        return held

    def _kept_below(self, name, resource):
        return sum(self._more[each][resource] for each in self._use.below(name))

    def _foreign(self, resource):
        """Return what pods use on nodes that are in no queue."""
        on_nodes = sum(used.get(resource, 0) for used in self._picture.used.values())
        return max(on_nodes - sum(own[resource] for own in self._use.own.values()), 0)

    def _guarantee(self, name, resource):
        queue = self._spec(name)
        return queue.guarantee.get(resource, 0) if queue else 0

    def _spec(self, name):
        queue = self._picture.queues.get(f"/{name}")
        return queue if type(queue) is Queue else None


class IdleRoom(Invariant):
    """Source: design §4, "the KEP's backfill", and what users expect: whoever could start on what nobody uses does.

    Asked of the nodes, pods, queues and groups themselves, naively, so only where that is exact: groups that are told that room is
    missing, whose pods are alike and have no rules about others; or that were kept out and whose task says how many equal pods they
    will have. Room that is kept by a reservation is what its condition says. While somebody waits for victims
    that do not go, nobody is judged.
    """

    name = "idle room is given out"
    meaning = "At rest no pod group is told that room is missing for which there is idle room that is kept for nobody."
    kinds = ()

    def settle(self, now):
        groups = {key: group for key, group in self.picture.groups.items() if type(group) is Group}
        if any(_standing(group, "Unschedulable", "WaitingForVictims") for group in groups.values()):
            return
        kept = {key: self._kept(key, group) for key, group in groups.items()}
        if None in kept.values():
            return
        shared = Room(self.picture, filter(None, kept.values()))
        for key, group in groups.items():
            queue = self.picture.queues.get(f"/{group.queue}")
            is_fifo = type(queue) is Queue and queue.spec.dequeue_strategy == "fifo"
            reasons = OF_ROOM if is_fifo else (*OF_ROOM, "QueueOrder")
            if any(_standing(group, "Unschedulable", reason) for reason in reasons):
                others = (each for other, each in kept.items() if other != key and each)
                self._judge(Room(self.picture, others) if kept[key] else shared, key, group)

    def _kept(self, key, group):
        """Return what a reservation keeps: for which queue, what each pod asks for, and how many are to be on which node; None: unknown."""
        text = next(
            (c.message for c in group.status.conditions if c.type == "Reserved" and c.status == "True"), ""
        )
        found = PLACES.fullmatch(text)
        if found is None:
            return ()  # none, or a place in line
        asked = self._asked(key, group)
        if asked is None or " / " in found["places"]:
            return None
        pairs = (each.rpartition(": ") for each in found["places"].split(", "))
        return group.queue, asked[0], {node: int(pods) for node, _, pods in pairs}

    def _judge(self, room, key, group):
        if (asked := self._asked(key, group)) is None:
            return
        request, pods, waiting = asked
        if room.holds(group.queue, request, pods, waiting):
            why = next(c.message for c in group.status.conditions if c.type == "Unschedulable")
            raise self.broken(
                f"{GROUPS}/{key}", f"is told {why!r}, and there is idle room for its {pods} pods"
            )

    def _asked(self, key, group):
        """Return what each pod of a group asks for, how many must start, and what says where they may be; None where they differ."""
        if group.spec.network_topology or group.spec.sub_group_policy:
            return None
        found = waiting_of(self.picture, key, group)
        pods = list(found.pods.values())
        if not pods:
            return self._of_outside(key, group)
        if len({placing.likeness(*each) for each in pods}) > 1 or len(pods) < found.needed:
            return None
        pod, waiting = pods[0]
        return None if waiting.has_rules else (pod.ask.request, found.needed, waiting)

    def _of_outside(self, key, group):
        roles, whole = group.spec.min_task_member, readable(group.spec.min_resources)
        namespace = key.partition("/")[0]
        if group.phase != "Pending" or len(roles) != 1 or not whole or group.minimum < 1:
            return None
        if any(amount % group.minimum for amount in whole.values()):
            return None
        if any(each.startswith(f"{namespace}/") for each in self.picture.quotas):
            return None
        request = {name: amount // group.minimum for name, amount in whole.items()}
        return {**request, "pods": 1}, group.minimum, placing.WaitingPod()


def _standing(group, kind, reason):
    return any((c.type, c.status, c.reason) == (kind, "True", reason) for c in group.status.conditions)


INVARIANTS = (IdleRoom,)
