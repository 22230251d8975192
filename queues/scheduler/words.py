"""A policy in words, for people who do not know Volcano's configuration."""

from __future__ import annotations

from typing import NamedTuple

from kube.meta import duration_words
from scheduler.engine.wishes import WishWeights
from scheduler.policy.actions import Action
from scheduler.policy.policy import NodeGrouping, Policy, Scoring, TaskTopologies, Usage
from scheduler.policy.rescheduling import WHOLE, Levels
from scheduler.policy.supported import PLUGINS, PluginSupport
from scheduler.policy.zones import Window, Zones

STARTER = """\
actions: "enqueue, allocate, backfill, reclaim, preempt"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
  - name: pdb
  - name: cdp
- plugins:
  - name: overcommit
    arguments:
      overcommit-factor: 1.2
  - name: drf
  - name: predicates
  - name: proportion
  - name: resourcequota
"""
"""A configuration equal to the defaults, as a text to begin with."""


class PolicyFact(NamedTuple):
    """One decision of a policy: its title, its text, and the configuration's words for it."""

    title: str
    text: str
    written: str


def policy_facts(policy: Policy, *, measures_load: bool) -> list[PolicyFact]:
    """Return a policy's decisions; `measures_load` says that our agents report what nodes use."""
    return [
        PolicyFact("Jobs are let in", _entry(policy), "enqueue, overcommit"),
        PolicyFact(
            "Pods get nodes", "yes" if Action.ALLOCATE in policy.actions else "no: no waiting pod starts", "allocate"
        ),
        PolicyFact("Running pods are evicted", _evictions(policy), "preempt, reclaim"),
        PolicyFact("Pods that were evicted before", _again(policy), "reclaim: minRuntime"),
        PolicyFact("Running pods are moved", _moves(policy), "shuffle, rescheduling"),
        PolicyFact("Pods with a disruption budget", _budgets(policy), "pdb"),
        PolicyFact("Pods that have just started", _cooldown(policy), "cdp"),
        PolicyFact("Jobs that wait long", _wait(policy), "sla"),
        PolicyFact("Room is kept", _reservations(policy), "gang: reservation-wait, backfill"),
        PolicyFact("Nodes are chosen", _choice(policy.scoring), "nodeorder, binpack, resource-strategy-fit"),
        PolicyFact("What pods prefer", _preference(policy.wishes), "nodeorder"),
        PolicyFact("Tasks of one job", _tasks(policy.tasks), "task-topology"),
        PolicyFact("Busy nodes", _busy(policy.usage, measures_load=measures_load), "usage"),
        PolicyFact("Nodes that are lent for a time", _zones(policy.zones), "tdm"),
        PolicyFact("Node groups of queues", _node_groups(policy.node_groups), "nodegroup"),
    ]


def always() -> list[tuple[str, str]]:
    """Return the plugins that work whatever is configured, each with what it does."""
    return [(name, each.words) for name, each in PLUGINS.items() if each.support is PluginSupport.ALWAYS]


def _entry(policy: Policy) -> str:
    if Action.ENQUEUE not in policy.actions:
        return "at once, whatever room there is"
    if policy.overcommit is None:
        return "whatever room the cluster has, up to the capability of their queues"
    return f"for {policy.overcommit / 1000:g} times the cluster, up to the capability of their queues"


def _evictions(policy: Policy) -> str:
    for_whom = {
        Action.PREEMPT: "for more urgent jobs of their queue",
        Action.RECLAIM: "for queues that have less than they deserve",
    }
    reasons = [words for action, words in for_whom.items() if action in policy.actions]
    return ", and ".join(reasons) or "for nobody"


def _again(policy: Policy) -> str:
    if not policy.min_runtime_ms or Action.RECLAIM not in policy.actions:
        return "are evicted like others"
    least = duration_words(policy.min_runtime_ms)
    return f"run for at least {least} before they are evicted again for another queue"


def _moves(policy: Policy) -> str:
    moves = policy.rescheduling
    if moves is None:
        return "never"
    above = " or ".join(_shares(moves.target))
    if not above:
        return "never: no node is above a target of 100 %"
    text = f"every {duration_words(moves.interval_ms)} where more than {above} of a node is asked for, to nodes with at most "
    text += " and ".join(_shares(moves.low))
    if policy.scoring is None:
        text += "; hardly ever, as the fullest node is chosen first"
    return text


def _shares(levels: Levels) -> list[str]:
    parts = (levels.cpu, "CPU"), (levels.memory, "memory"), (levels.pods, "pods")
    return [f"{level} % of the {what}" for level, what in parts if level < WHOLE]


def _budgets(policy: Policy) -> str:
    if policy.budgets:
        return "are not evicted beyond what it allows"
    return "are evicted beyond what it allows only where nobody else can be"


def _cooldown(policy: Policy) -> str:
    if policy.cooldown:
        return "are not evicted for as long as they ask for (volcano.sh/cooldown-time)"
    return "are evicted like others"


def _wait(policy: Policy) -> str:
    if not policy.sla:
        return "wait like others"
    if policy.waits_ms is None:
        return "are let in after the time that they state themselves"
    return f"are let in after {duration_words(policy.waits_ms)}, or the time that they state themselves"


def _reservations(policy: Policy) -> str:
    if policy.reserves_ms is None:
        return "for no job, however long smaller ones keep it waiting"
    text = f"for the first job of a queue that has waited {duration_words(policy.reserves_ms)}"
    if Action.BACKFILL not in policy.actions:
        return f"{text}; nobody uses it meanwhile"
    return f"{text}; jobs that end in time may use it meanwhile"


def _choice(scoring: Scoring | None) -> str:
    if scoring is None:
        return "the fullest of what the pod asks for first"
    packed = ", ".join(f"{name} {weight}" for name, weight in scoring.resources)
    parts = [
        (scoring.binpack, f"full of certain resources ({packed})"),
        (scoring.least, "little CPU and memory used"),
        (scoring.most, "much CPU and memory used"),
        (scoring.balanced, "CPU and memory used alike"),
    ]
    if fit := scoring.fit:
        used = ", ".join(f"{'much' if each.much else 'little'} {each.name} {each.weight}" for each in fit.strategies)
        scarce = ", ".join(f"{name} {weight}" for name, weight in fit.scarce)
        parts += [(fit.weight, f"use of resources ({used})"), (fit.spare, f"without what is scarce ({scarce})")]
    return "by weights: " + "; ".join(f"{text} × {weight}" for weight, text in parts if weight)


def _preference(weights: WishWeights) -> str:
    parts = [
        (weights.nodes, "affinity to nodes"),
        (weights.pods, "affinity to pods"),
        (weights.spread, "spreading"),
        (weights.taints, "taints of nodes"),
    ]
    weighted = ", ".join(f"{text} × {weight}" for weight, text in parts if weight)
    if not weighted:
        return "has no effect"
    return f"{'decides first' if weights.first else 'is added to the weights of nodes'}: {weighted}"


def _tasks(tasks: TaskTopologies | None) -> str:
    near = f"drawn to one node or kept apart (× {tasks.weight})" if tasks and tasks.weight else ""
    order = "started in order" if tasks and tasks.orders else ""
    effects = " and ".join(filter(None, (near, order)))
    if not effects:
        return "are neither drawn together nor kept apart by annotations"
    return f"are {effects} where annotations of the job say so (volcano.sh/task-topology-…)"


def _node_groups(grouping: NodeGrouping | None) -> str:
    if grouping is None:
        return "are not heeded: every queue may use every node"
    others = "nodes of no group only" if grouping.strict else "every node"
    whose = "it, and no queue above it, names none" if grouping.inherits else "it names none"
    order = "; those that it prefers in their order" if grouping.by_order else ""
    return f"a queue uses those that its affinity names{order}, or {others} where {whose}"


def _busy(usage: Usage | None, *, measures_load: bool) -> str:
    if usage is None:
        return "are not told from others: only what pods ask for counts"
    if not measures_load:
        return "are not told from others: nobody measures the load of this cluster's nodes for this scheduler"
    limits = ((usage.most_cpu, "CPU"), (usage.most_memory, "memory"))
    closed = " or ".join(f"{limit} % of its {what}" for limit, what in limits if limit is not None)
    parts = [f"a node that uses more than {closed} takes no pods"] if closed else []
    if usage.weight:
        parts.append(f"idle ones come first (× {usage.weight}: CPU {usage.cpu}, memory {usage.memory})")
    return "; ".join([*parts, "simulated nodes are not measured"])


def _zones(zones: Zones | None) -> str:
    if zones is None:
        return "are nodes like others"
    listed = ", ".join(f"zone {name} from {_window(window)}" for name, window in zones.windows)
    if not listed:
        return "take no pods: no zone has a time"
    ends = f"; then they end, some every {duration_words(zones.period_ms)}" if zones.evicts else ""
    return f"take pods that may be revoked: {listed} UTC{ends}"


def _window(window: Window) -> str:
    return " to ".join(f"{time // 3_600_000:02}:{time // 60_000 % 60:02}" for time in (window.start, window.end))
