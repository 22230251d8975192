"""A picture of the cluster in this process: nodes, queues, and what their pods take.

It follows the log (`cluster.runtime.picture`), because pages show how full a thousand nodes are far more often than pods
come and go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from cluster.api import backend
from cluster.rules.simulation import SIMULATED
from cluster.runtime.picture import SharedPicture
from cluster.store import Change, Stored, store
from dashboard.live import Watch
from kube import amounts, resources
from kube.amounts import Amounts
from kube.kinds.core import Node
from kube.kinds.fields import Quantities
from kube.kinds.pod import UNENDED
from kube.kinds.scheduling import Queue
from kube.meta import parse_time
from kube.quantity import QuantityError
from kube.resources import NAMESPACES, NODES, POD_GROUPS, PODS, QUEUES
from kube.usage import Holder, Usage, group_use, namespace_queue, pod_use
from kube.volcano import reserved_room
from kube.volcano.reserved_room import GroupReservation

ROOT = "root"  # the queue above all others; lists do not show it
KINDS = (PODS, NODES, QUEUES, POD_GROUPS, NAMESPACES)
WATCHES = tuple(Watch(kind.id) for kind in KINDS)  # for pages that show what queues use and may take


class NodeFacts(NamedTuple):
    """A node as lists show it."""

    name: str
    uid: str
    state: str
    simulated: bool
    allocatable: Amounts
    created: str
    node: Node


class QueueFacts(NamedTuple):
    """A queue as lists show it; `parent` is "" for queues directly below root."""

    name: str
    uid: str
    state: str
    parent: str
    created: str
    queue: Queue


@dataclass
class Picture:
    """Nodes, queues and use at one revision."""

    revision: int = -1
    nodes: dict[str, NodeFacts] = field(default_factory=dict)
    queues: dict[str, QueueFacts] = field(default_factory=dict)
    _usage: Usage = field(default_factory=Usage)
    _rooms: dict[str, GroupReservation] = field(default_factory=dict)
    _children: dict[str, dict[str, None]] = field(default_factory=dict)
    _capacity: Amounts | None = None  # None until it is computed

    @property
    def on_node(self) -> dict[str, Amounts]:
        """What the pods on each node take."""
        return self._usage.on_node

    @property
    def in_queue(self) -> dict[str, Amounts]:
        """What the pods of each queue take, without those of the queues below it."""
        return self._usage.in_queue

    def reservations(self) -> list[GroupReservation]:
        """The room that is kept for pod groups, in the order in which the reservations were made."""
        return sorted(self._rooms.values(), key=lambda room: (room.reservation.made, room.group))

    def capacity(self) -> Amounts:
        """The allocatable amounts of all nodes that are ready."""
        total = self._capacity
        if total is None:
            total = {}
            for node in self.nodes.values():
                if node.state == "Ready":
                    total = amounts.add(total, node.allocatable)
            self._capacity = total  # set when it is complete: other threads read the same picture
        return {**total}

    def used(self) -> Amounts:
        """What all pods on nodes take."""
        total: Amounts = {}
        for taken in self.on_node.values():
            total = amounts.add(total, taken)
        return total

    def children(self, name: str) -> list[QueueFacts]:
        """The queues directly below a queue, by name; those below root are below ""."""
        return [self.queues[each] for each in sorted(self._children.get(name, ())) if each not in (name, ROOT)]

    def below(self, name: str) -> list[QueueFacts]:
        """Every queue below a queue; a circle of parents ends where it began."""
        descendants: dict[str, QueueFacts] = {}
        pending = self.children("" if name == ROOT else name)
        while pending:
            queue = pending.pop()
            if queue.name not in descendants and queue.name != name:
                descendants[queue.name] = queue
                pending += self.children(queue.name)
        return list(descendants.values())

    def subtree_use(self, name: str) -> Amounts:
        """What the pods of a queue and of the queues below it take."""
        total: Amounts = {}
        for each in self.subtree(name):
            total = amounts.add(total, self.in_queue.get(each, {}))
        return total

    def subtree_uses(self) -> dict[str, Amounts]:
        """What the pods of each queue in use and of the queues below it take."""
        taken: dict[str, Amounts] = {}
        for name, used in self.in_queue.items():
            for above in self.line(name):
                taken[above] = amounts.add(taken.get(above, {}), used)
        return taken

    def line(self, name: str) -> list[str]:
        """A queue and those above it but root, nearest first; a circle of parents ends where it began."""
        line: list[str] = []
        while name in self.queues and name not in line:
            line.append(name)
            name = self.queues[name].parent
        return line

    def groups_in(self, name: str) -> Counter[str]:
        """How many pod groups a queue and the queues below it have, by the phase as which they count."""
        total: Counter[str] = Counter()
        for each in self.subtree(name):
            total.update(self._usage.groups_in.get(each) or {})
        return total

    def loose_in(self, name: str) -> int:
        """How many pods on nodes a queue and the queues below it have that have no pod group."""
        return sum(self._usage.loose_in[each] for each in self.subtree(name))

    def holders(self, name: str) -> list[Holder]:
        """The owners besides Volcano Jobs that have something in a queue or below it."""
        return self._usage.holders(self.subtree(name))

    def subtree(self, name: str) -> list[str]:
        """A queue and every queue below it, by name."""
        return [name, *(queue.name for queue in self.below(name))]

    def limits(self, name: str, capacity: Mapping[str, int]) -> Amounts:
        """The most that a queue may take: the lowest capability of it and of those above it, else the capacity."""
        lowest: Amounts = {}
        for above in self.line(name):
            for resource, amount in amounts_of(self.queues[above].queue.spec.capability).items():
                lowest[resource] = min(amount, lowest.get(resource, amount))
        return {**capacity, **lowest}

    def take(self, change: Change) -> None:
        """Apply one change."""
        _TAKERS[change.resource](self, change, change.verb == "DELETED")

    @classmethod
    def loaded(cls, head: int) -> Picture:
        """A picture of the stored objects."""
        picture = cls(head)
        for kind in (NODES, QUEUES, POD_GROUPS, NAMESPACES):
            for stored in store.find(kind):
                _TAKERS[kind.id](picture, stored, False)
        for stored in store.find(PODS, phase=UNENDED):
            picture._take_pod(stored, False)
        return picture

    def _take_pod(self, stored: Stored | Change, gone: bool) -> None:
        self._usage.put_pod(stored.key, None if gone else pod_use(stored.body, backend.schedulers))

    def _take_group(self, stored: Stored | Change, gone: bool) -> None:
        self._usage.put_group(stored.key, None if gone else group_use(stored.body))
        room = None if gone else reserved_room.reserved_for(stored.namespace, stored.name, stored.body)
        if room is not None:
            self._rooms[stored.key] = room
        else:
            self._rooms.pop(stored.key, None)

    def _take_namespace(self, stored: Stored | Change, gone: bool) -> None:
        self._usage.put_namespace(stored.name, "" if gone else namespace_queue(stored.body))

    def _take_node(self, stored: Stored | Change, gone: bool) -> None:
        self._capacity = None
        if gone:
            self.nodes.pop(stored.name, None)
            return
        node = stored.read(Node)
        state = resources.NODES.index(stored.object).phase
        marks = {**node.metadata.labels, **node.metadata.annotations}
        self.nodes[stored.name] = NodeFacts(
            name=stored.name,
            uid=stored.uid,
            state="Unschedulable" if state == "Ready" and node.spec.unschedulable else state,
            simulated=marks.get(SIMULATED) == "true",
            allocatable=amounts_of(node.status.allocatable or node.status.capacity),
            created=node.metadata.creation_timestamp,
            node=node,
        )

    def _take_queue(self, stored: Stored | Change, gone: bool) -> None:
        queue = None if gone else stored.read(Queue)
        if (previous := self.queues.pop(stored.name, None)) is not None:
            del self._children[previous.parent][stored.name]
        if queue is None:
            return
        parent = queue.spec.parent if queue.spec.parent != ROOT else ""
        state = queue.status.state or queue.spec.state or "Open"
        created = queue.metadata.creation_timestamp
        self._children.setdefault(parent, {})[stored.name] = None
        self.queues[stored.name] = QueueFacts(stored.name, stored.uid, state, parent, created, queue)


_TAKERS: dict[str, Callable[[Picture, Stored | Change, bool], None]] = {
    PODS.id: Picture._take_pod,
    NODES.id: Picture._take_node,
    QUEUES.id: Picture._take_queue,
    POD_GROUPS.id: Picture._take_group,
    NAMESPACES.id: Picture._take_namespace,
}
_shared = SharedPicture(KINDS, Picture.loaded)
current, forget = _shared.current, _shared.forget


def amounts_of(quantities: Quantities) -> Amounts:
    """Return quantities as amounts; no amounts if they cannot be parsed."""
    try:
        return amounts.of(quantities)
    except QuantityError:
        return {}


def moment(text: str, otherwise: int = 0) -> int:
    """Return a time of an object in epoch ms, or `otherwise` if it cannot be parsed."""
    try:
        return parse_time(text)
    except ValueError:
        return otherwise
