"""What the checker is told of a cluster; amounts are integers in their resource's smallest unit."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from kube.amounts import Amounts
from kube.kinds.core import Taint
from kube.volcano.reserved_room import Reservation
from scheduler.idle.waiting_pod import WaitingPod

ROOT_QUEUE = "root"


class Node(NamedTuple):
    """A node that is there: what pods may use of it, and which may."""

    offers: Amounts
    labels: Mapping[str, str]
    taints: Sequence[Taint]
    is_ready: bool
    unschedulable: bool


class Queue(NamedTuple):
    """A queue; parent is "" for root alone, and own what the pods of the queue itself take."""

    parent: str
    capability: Amounts
    guarantee: Amounts
    own: Mapping[str, int]
    is_fifo: bool = False


class Group(NamedTuple):
    """A pod group that waits.

    reason, message  of its condition Unschedulable, "" where that does not stand
    kept             its reservation, None where it has none
    roles            how many pods of each role must start, as its spec says
    is_arranged      whether it matters to it which HyperNodes or sub-groups its pods are in
    ready            the roles of its pods that count for its minimum
    pods             those that wait for a node and may have one: what each asks for, and what decides where it may be
    """

    key: str
    queue: str
    phase: str
    minimum: int
    roles: Mapping[str, int]
    min_resources: Mapping[str, int]
    is_arranged: bool
    reason: str
    message: str
    reservation: Reservation | None
    ready: Sequence[str]
    pods: Sequence[tuple[Amounts, WaitingPod]]

    @property
    def needed(self) -> int:
        """How many pods must get nodes together. Roles are ignored when they are more than the minimum."""
        missing = 0
        if sum(self.roles.values()) <= self.minimum:
            missing = sum(max(least - self.ready.count(role), 0) for role, least in self.roles.items() if least > 0)
        return max(self.minimum - len(self.ready), missing, 1)


class World(NamedTuple):
    """A cluster at one moment: `used` is what pods take of nodes, also of those that are gone; `limited` the namespaces with quotas."""

    nodes: Mapping[str, Node]
    used: Mapping[str, Mapping[str, int]]
    queues: Mapping[str, Queue]
    groups: Mapping[str, Group]
    limited: Collection[str]
