"""The scheduler's configuration as rules read it (reference/volcano-scheduler §4.1)."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.engine.wishes import DEFAULT as DEFAULT_WISHES
from scheduler.engine.wishes import WishWeights
from scheduler.policy.actions import Action
from scheduler.policy.rescheduling import Rescheduling
from scheduler.policy.zones import Zones
from scheduler.victims.evict import MAX_DOMAINS


@dataclass(frozen=True, slots=True)
class Strategy:
    """How the use of a resource counts, with a weight: much: high use is good, else low use. A name ending in * is a prefix."""

    name: str
    weight: int
    much: bool


@dataclass(frozen=True, slots=True)
class Fit:
    """How resource-strategy-fit compares nodes (§3.11): by the use of resources, and by leaving scarce ones to pods that need them."""

    weight: int
    strategies: tuple[Strategy, ...]
    spare: int = 0
    scarce: tuple[tuple[str, int], ...] = ()

    def strategy(self, resource: str) -> Strategy | None:
        """Return the strategy for a resource: by its name, else by the longest matching prefix; None for none."""
        meant = [
            each
            for each in self.strategies
            if each.name == resource or (each.name.endswith("*") and resource.startswith(each.name[:-1]))
        ]
        return max(meant, key=lambda each: (each.name == resource, len(each.name)), default=None)


@dataclass(frozen=True, slots=True)
class Scoring:
    """How nodes with room are compared for a pod: the sum of scorers, each 0 to 100, times these weights.

    binpack favours nodes on which the weighted `resources` are used most (§3.9); least and most
    favour nodes with much or little free CPU and memory, balanced those on which both are used alike (§3.8). fit is
    None where resource-strategy-fit is off.
    """

    binpack: int = 0
    resources: tuple[tuple[str, int], ...] = ()
    least: int = 0
    most: int = 0
    balanced: int = 0
    fit: Fit | None = None


@dataclass(frozen=True, slots=True)
class NodeGrouping:
    """How queues use node groups (§3.11).

    strict    a queue without an affinity uses only nodes that are in no group
    by_order  groups that a queue prefers count the more the earlier they are listed
    inherits  a queue without an affinity has that of the nearest queue above that has one
    """

    strict: bool = True
    by_order: bool = False
    inherits: bool = False


@dataclass(frozen=True, slots=True)
class Usage:
    """How the load of nodes counts (§3.11): the weight of idle nodes, of CPU and memory in it, and the percentages above which a node is closed."""

    weight: int = 5
    cpu: int = 1
    memory: int = 1
    most_cpu: int | None = 80
    most_memory: int | None = 80


@dataclass(frozen=True, slots=True)
class TaskTopologies:
    """How the topology of a group's tasks counts (§3.11): the weight of which pods are on a node; whether tasks are ordered by it."""

    weight: int = 1
    orders: bool = True


@dataclass(frozen=True, slots=True)
class Packing:
    """How ordinary pods fill HyperNodes one by one (§3.12): the weight of that, and each tier's weight as a part of the tier below."""

    weight: int = 1
    fading: float = 0.8


@dataclass(frozen=True, slots=True)
class Taking:
    """How an action evicts pods for a group (§2.6).

    domains  how many HyperNodes in which evictions help are compared, for groups that ask for one
    gangs    whether whole gangs may be evicted; otherwise only their pods beyond their minima
    """

    domains: int = MAX_DOMAINS
    gangs: bool = True


@dataclass(frozen=True, slots=True)
class Policy:
    """The policy of one cycle.

    actions     what it may do
    overcommit  thousandths of the cluster for which groups are admitted (§3.10); None: whatever room there is
    scoring     how nodes are compared; None: the fullest first, as `scheduler.engine.ranking` says
    wishes      how pods' preferences count (§3.8)
    node_groups how queues use node groups; None: they have none
    usage       how the load of nodes counts; None: it does not
    zones       when nodes of revocable zones are lent out (tdm, §3.11); None: they are nodes like others
    sla         whether groups that have waited long are admitted (§3.11)
    waits_ms    after how long, where they do not state it themselves; None: never
    min_runtime_ms how long evicted pods that run again are spared by reclaim (`scheduler.gangs.min_runtime`); 0: not at all
    reserves_ms after how long a group that would fit gets a reservation (`scheduler.cycle.reservations`); None: never
    budgets     whether disruption budgets protect pods in any case (pdb, §3.11), and not only while there are other victims
    cooldown    whether pods that have just started and ask for a cooldown are spared (cdp, §3.11)
    tasks       how the topology of tasks counts (task-topology, §3.11); None: it does not
    packed      resources by which HyperNodes are compared, the fullest first, with their weights (§3.12)
    rescheduling when running pods are moved (shuffle, §2.7, with rescheduling, §3.11); None: never
    preempt     how pods are evicted for more urgent groups of their queue
    reclaim     how pods are evicted for groups of queues that have less than they deserve
    packing     how ordinary pods fill HyperNodes one after the other (§3.12); None: they do not
    spared      what is spared on nodes for idle devices (proportional of resource-strategy-fit, §3.11): device, resource, amount per device
    """

    actions: frozenset[Action] = frozenset(Action) - {Action.SHUFFLE}
    overcommit: int | None = 1200
    scoring: Scoring | None = None
    sla: bool = False
    waits_ms: int | None = None
    reserves_ms: int | None = 300_000
    min_runtime_ms: int = 300_000
    budgets: bool = False
    cooldown: bool = False
    wishes: WishWeights = DEFAULT_WISHES
    node_groups: NodeGrouping | None = None
    usage: Usage | None = None
    zones: Zones | None = None
    tasks: TaskTopologies | None = None
    packed: tuple[tuple[str, int], ...] = (("cpu", 1), ("memory", 1))
    rescheduling: Rescheduling | None = None
    preempt: Taking = Taking()
    reclaim: Taking = Taking()
    spared: tuple[tuple[str, str, int], ...] = ()
    packing: Packing | None = None


DEFAULT = Policy(budgets=True, cooldown=True)
"""The policy without a configuration: a job of high priority gets room on a full cluster (design §4), but not from
pods whose owners said how many must stay, or for how long."""
