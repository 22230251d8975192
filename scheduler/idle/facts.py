"""What the checker knows of a cluster; amounts are integers in their resource's smallest unit."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from kube.amounts import Amounts
from kube.kinds.core import Taint
from kube.volcano.reserved_room import Reservation
from scheduler.idle.waiting_pod import WaitingPod

ROOT_QUEUE = "root"


class Node(NamedTuple):
    """A node that exists: what it offers to pods, and what decides which pods may use it."""

    offers: Amounts
    labels: Mapping[str, str]
    taints: Sequence[Taint]
    is_ready: bool
    unschedulable: bool


class Queue(NamedTuple):
    """A queue; parent is "" only for root; own is what the queue's own pods use."""

    parent: str
    capability: Amounts
    guarantee: Amounts
    own: Mapping[str, int]
    is_fifo: bool = False


class Group(NamedTuple):
    """A pod group that waits.

    reason, message  of its condition Unschedulable; "" where that is not True
    reservation      its reservation, None where it has none
    roles            how many pods of each role must start, as its spec says
    is_arranged      whether HyperNodes, sub-groups or volumes decide where its pods may be
    ready            the role of each pod that counts for its minimum
    pods             those that wait for a node and may get one: each one's request, and what decides where it may be
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
        """How many pods must get nodes together. Roles are ignored when their sum exceeds the minimum."""
        missing = 0
        if sum(self.roles.values()) <= self.minimum:
            missing = sum(max(least - self.ready.count(role), 0) for role, least in self.roles.items() if least > 0)
        return max(self.minimum - len(self.ready), missing, 1)


class World(NamedTuple):
    """A cluster at one moment: used is what pods use by node, including nodes that are gone; limited are the namespaces with quotas."""

    nodes: Mapping[str, Node]
    used: Mapping[str, Mapping[str, int]]
    queues: Mapping[str, Queue]
    groups: Mapping[str, Group]
    limited: Collection[str]
