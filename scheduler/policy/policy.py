"""The scheduler's configuration as rules read it (reference/volcano-scheduler §4.1)."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.engine.wishes import DEFAULT as DEFAULT_WISHES
from scheduler.engine.wishes import WishWeights
from scheduler.policy.actions import Action
from scheduler.policy.rescheduling import Rescheduling
from scheduler.policy.zones import Zones
from scheduler.victims.evict import MOST_DOMAINS


@dataclass(frozen=True, slots=True)
class Strategy:
    """How the use of a resource counts: much is good, or little, with a weight. A name that ends in * is that of all that begin so."""

    name: str
    weight: int
    much: bool


@dataclass(frozen=True, slots=True)
class Fit:
    """What resource-strategy-fit compares nodes by (§3.11): the use of resources, and that scarce ones are left to those who need them."""

    weight: int
    strategies: tuple[Strategy, ...]
    spare: int = 0
    scarce: tuple[tuple[str, int], ...] = ()

    def strategy(self, resource: str) -> Strategy | None:
        """Return how the use of a resource counts: by its own name, else by the longest beginning of it."""
        meant = [
            each
            for each in self.strategies
            if each.name == resource or (each.name.endswith("*") and resource.startswith(each.name[:-1]))
        ]
        return max(meant, key=lambda each: (each.name == resource, len(each.name)), default=None)


@dataclass(frozen=True, slots=True)
class Scoring:
    """How nodes with room are compared for a pod: the sum of scorers, each 0 to 100, times these weights.

    binpack favours nodes that are full of the `resources` that have a weight of their own (§3.9); least and most
    favour nodes with much or little free CPU and memory, balanced those on which both are used alike (§3.8). fit is
    None where resource-strategy-fit is not at work.
    """

    binpack: int = 0
    resources: tuple[tuple[str, int], ...] = ()
    least: int = 0
    most: int = 0
    balanced: int = 0
    fit: Fit | None = None


@dataclass(frozen=True, slots=True)
class NodeGrouping:
    """How queues have node groups (§3.11).

    strict    a queue that says nothing uses nodes of no group only
    by_order  groups that a queue prefers count the more the earlier they stand
    inherits  for a queue that says nothing holds what the nearest one above it says
    """

    strict: bool = True
    by_order: bool = False
    inherits: bool = False


@dataclass(frozen=True, slots=True)
class Usage:
    """How the load of nodes counts (§3.11): the weight of idle nodes, of CPU and memory in it, and above what percentage a node takes no pods."""

    weight: int = 5
    cpu: int = 1
    memory: int = 1
    most_cpu: int | None = 80
    most_memory: int | None = 80


@dataclass(frozen=True, slots=True)
class TaskTopologies:
    """What comes of the topology of a group's tasks (§3.11): how much it counts which pods are on a node; whether tasks come in order."""

    weight: int = 1
    orders: bool = True


@dataclass(frozen=True, slots=True)
class Packing:
    """How ordinary pods fill HyperNodes one after the other (§3.12): how much that counts, and what each tier counts of the one below it."""

    weight: int = 1
    fading: float = 0.8


@dataclass(frozen=True, slots=True)
class Taking:
    """How an action has others end for a group (§2.6).

    domains  so many HyperNodes in which that helps are compared, for groups that ask for one
    gangs    whether gangs may go whole; otherwise only what they have beyond their minima goes
    """

    domains: int = MOST_DOMAINS
    gangs: bool = True


@dataclass(frozen=True, slots=True)
class Policy:
    """What holds for one cycle.

    actions     what it may do
    overcommit  thousandths of the cluster for which groups are let in (§3.10); None: whatever room there is
    scoring     how nodes are compared; None: the fullest first, as `scheduler.engine.ranking` says
    wishes      what comes of what pods prefer (§3.8)
    node_groups how queues have node groups; None: they have none
    usage       how the load of nodes counts; None: it does not
    zones       when nodes of revocable zones are lent out (tdm, §3.11); None: they are nodes like others
    sla         whether groups are let in for having waited long (§3.11)
    waits_ms    after how long, where they do not say it themselves; None: never
    min_runtime_ms for how long what was evicted runs again before reclaim may evict it again (`scheduler.gangs.min_runtime`); 0: it may at once
    reserves_ms after how long a group that would fit has room kept (`scheduler.cycle.reservations`); None: never
    budgets     whether budgets for disruptions protect pods in any case (pdb, §3.11), and not only while there are others
    cooldown    whether pods stay that have just started and ask for time (cdp, §3.11)
    tasks       what comes of the topology of tasks (task-topology, §3.11); None: nothing
    packed      resources by which HyperNodes are compared, the fullest first, with their weights (§3.12)
    rescheduling when running pods are moved (shuffle, §2.7, with rescheduling, §3.11); None: never
    preempt     how others end for groups of their queue that are more urgent
    reclaim     how others end for groups of queues that have less than they deserve
    packing     how ordinary pods fill HyperNodes one after the other (§3.12); None: they do not
    kept        what of nodes is kept for idle devices (proportional of resource-strategy-fit, §3.11): device, resource, how much for each
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
"""What holds where nobody has said anything: a job of high priority gets room on a full cluster (design §4), but not of
pods whose owners said how many must stay, or for how long."""
