"""What a gang may wait for: a closed set of reasons, each with its numbers."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, NamedTuple

import msgspec


class Reason(StrEnum):
    """Everything a gang may wait for; the value is the reason of the PodGroup's condition.

    NotEnoughResources and NotEnoughTasks are Volcano's own words
    (reference/volcano-scheduler §5.2); the others say what Volcano folds into
    NotEnoughResources.
    """

    NO_NODES = "NoNodes"
    NODES_UNAVAILABLE = "NodesUnavailable"
    NO_MATCHING_NODE = "NoMatchingNode"
    UNTOLERATED_TAINT = "UntoleratedTaint"
    NODE_GROUP = "NodeGroup"
    NODES_BUSY = "NodesBusy"
    REVOCABLE_ZONE = "RevocableZone"
    NEVER_FITS = "NeverFits"
    NOT_ENOUGH_RESOURCES = "NotEnoughResources"
    QUEUE_LIMIT = "QueueLimit"
    QUEUE_TOO_SMALL = "QueueTooSmall"
    PARENT_LIMIT = "ParentQueueLimit"
    PARENT_TOO_SMALL = "ParentQueueTooSmall"
    QUEUE_OVER_DESERVED = "QueueOverDeserved"
    QUEUE_GUARANTEES = "QueueGuarantees"
    QUEUE_ORDER = "QueueOrder"
    QUOTA_EXCEEDED = "QuotaExceeded"
    QUEUE_NOT_FOUND = "QueueNotFound"
    QUEUE_CLOSED = "QueueClosed"
    QUEUE_HAS_CHILDREN = "QueueHasChildren"
    NOT_ENOUGH_TASKS = "NotEnoughTasks"
    SCHEDULING_GATED = "SchedulingGated"
    HOST_PORT_TAKEN = "HostPortTaken"
    POD_AFFINITY = "PodAffinity"
    POD_ANTI_AFFINITY = "PodAntiAffinity"
    REPELLED = "Repelled"
    TOPOLOGY_SPREAD = "TopologySpread"
    NETWORK_TOPOLOGY = "NetworkTopology"
    SUB_GROUPS = "SubGroups"
    UNKNOWN_CONSTRAINT = "UnknownConstraint"
    CLAIM_NOT_BOUND = "ClaimNotBound"
    WAITING_FOR_VICTIMS = "WaitingForVictims"
    RESERVED = "Reserved"
    ROOM_KEPT = "RoomKept"
    NOT_ALLOCATING = "NotAllocating"
    GROUP_NOT_FOUND = "PodGroupNotFound"


class Constraint(StrEnum):
    """A constraint of a pod on its place; the value is the field. Pods wait where it cannot be read or obeyed."""

    POD_AFFINITY = "affinity.podAffinity"
    POD_ANTI_AFFINITY = "affinity.podAntiAffinity"
    TOPOLOGY_SPREAD = "topologySpreadConstraints"
    HOST_PORT = "containers.ports.hostPort"
    RESOURCE_CLAIMS = "resourceClaims"


class ExclusionKind(StrEnum):
    """Why pods of a class may not use a node, whatever room it has."""

    NONE = ""
    NOT_READY = "not ready"
    UNSCHEDULABLE = "unschedulable"
    SELECTOR = "selector"
    TAINT = "taint"
    NODE_GROUP = "node group"
    BUSY = "busy"
    REVOCABLE = "revocable"


class Exclusion(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One way in which a node is closed to a class.

    text is the phrase of kube-scheduler's filters, display what people read instead (a taint as key=value).
    """

    kind: ExclusionKind
    text: str = ""
    # Statuses keep the name that it had there first.
    display: str = msgspec.field(default="", name="shown")


Number = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
"""A number of a cause, which may be read from a status that somebody else has written."""


class Obstacle(NamedTuple):
    """A rule about other pods that closes all nodes with room (`roomy`); `nodes` of them are closed by this one.

    display is what it is about (a selector, a port, a topology label), topologies where pods count as near. For a spread, domain
    would have `more` pods more than fewest, where `allowed` may be; with only `domains` domains where it wants `least`, `more` than
    none.
    """

    display: str
    nodes: Number
    roomy: Number
    topologies: tuple[str, ...]
    domain: str = ""
    fewest: str = ""
    more: Number = 0
    allowed: Number = 0
    domains: Number = 0
    least: Number = 0


class Lacking(NamedTuple):
    """The one label that pods require and no node has: any of the values, or any value at all where there are none.

    similar are values of it on nodes that resemble what was meant.
    """

    key: str
    values: tuple[str, ...]
    similar: tuple[str, ...] = ()


class Arrangement(NamedTuple):
    """What a gang asks of the network, and how far it got.

    highest is the highest tier that it, or each of its sub-groups, may span, tier_name its name where it is given by name; then
    is_known says whether some HyperNode has it. hyper_node is the one into which most of it fits. placed of its pods have nodes
    already. have of `wanted` sub-groups with `size` pods each fit; group is the one that does not.
    """

    highest: Number | None = None
    tier_name: str = ""
    is_known: bool = True
    hyper_node: str = ""
    placed: Number = 0
    have: Number = 0
    wanted: Number = 0
    size: Number = 0
    group: str = ""

    @property
    def is_limited(self) -> bool:
        """Whether a highest tier is asked for."""
        return self.highest is not None or bool(self.tier_name)


Listed = tuple[tuple[str, Number], ...]
"""Names, each with a number."""
NAMED = 3


def listed(pairs: Iterable[tuple[str, int]]) -> Listed:
    """Return the first NAMED pairs, and one pair with the name "" for the sum of all others.

    People read no more of them, and a status would grow with the cluster.
    """
    first = tuple(pairs)
    others = sum(number for _, number in first[NAMED:])
    return (*first[:NAMED], ("", others)) if first[NAMED:] else first


def listed_names(names: Iterable[str]) -> Listed:
    """Return `listed` of names without numbers, each of which counts once."""
    return listed((name, 1) for name in names)


class Promise(NamedTuple):
    """What groups of a queue that were let in may still take of a resource."""

    amount: Number
    queue: str
    groups: Number


class Cause(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """Why pods of a gang have no node.

    fit of `needed` pods found room. Each pod that did not asks for `requested` of `resource`; the most that one node has free of
    it is `free` (on free_node), the most that one has at all is `whole` (on whole_node). resource is empty when no single
    resource is to blame. started: the minimum runs, the cause is about pods beyond it. entering: the pods are not even created,
    since the cluster or the queue has no room for the minimum as a whole; promise is then the largest part of what was given out
    and is not taken yet. keepers are the queues whose guarantees keep some of the resource, with the unused amounts, most first.
    excluded counts the nodes that are closed to the pod, by what closes them; tally is the same for all nodes in kube-scheduler's
    words. victims are the groups whose pods were just evicted to make room for the gang, with numbers of pods. protected is what
    protects pods from eviction for it, in words, with numbers of pods. queue deserves `deserved` of the resource and would use
    `used` with the gang, where that is why nothing is reclaimed for it. keeping are the groups that go first and hold the
    reserved room that the gang would need. withholding are queues that have more than they deserve of what is missing, and from
    which nothing is reclaimed. since, expected (ms) and places are those of a reservation, of the gang or in its way: since when
    room is reserved, when its group is to start, on which nodes. spared is the device for which some of the resource is kept,
    without which some node would have enough. lacking is the label that no node has, where it alone closes all nodes. Lists of
    groups, queues, nodes and protections are as `listed` returns them.
    """

    reason: Reason
    never: bool = False
    started: bool = False
    entering: bool = False
    fit: Number = 0
    needed: Number = 0
    resource: str = ""
    requested: Number = 0
    free: Number = 0
    free_node: str = ""
    whole: Number = 0
    whole_node: str = ""
    request: tuple[tuple[str, Number], ...] = ()
    queue: str = ""
    keepers: Listed = ()
    group: str = ""
    claim: str = ""
    quota: str = ""
    gated: Number = 0
    constraint: Constraint | None = None
    promise: Promise | None = None
    obstacle: Obstacle | None = None
    arrangement: Arrangement | None = None
    lacking: Lacking | None = None
    victims: Listed = ()
    protected: Listed = ()
    withholding: Listed = ()
    since: Number = 0
    expected: Number | None = None
    places: Listed = ()
    used: Number = 0
    deserved: Number = 0
    keeping: Listed = ()
    spared: str = ""
    nodes: Number = 0
    excluded: tuple[tuple[Number, Exclusion], ...] = ()
    tally: tuple[tuple[int, str], ...] = ()
