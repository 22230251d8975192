"""The arguments of the plugins about nodes (reference/volcano-scheduler §3.8, §3.9, §3.11)."""

from __future__ import annotations

from scheduler.engine.wishes import DEFAULT as DEFAULT_WISHES
from scheduler.engine.wishes import WishWeights
from scheduler.policy.arguments import Arguments
from scheduler.policy.policy import NodeGrouping, Scoring, Usage
from scheduler.policy.strategy_fit import fit_of


def scoring_of(
    nodeorder: Arguments | None, binpack: Arguments | None, strategy_fit: Arguments | None
) -> Scoring | None:
    """Return how nodes are compared; None where no scorer has a weight. An argument is None where its plugin is off."""
    fit = fit_of(strategy_fit) if strategy_fit else None
    scoring = Scoring(
        binpack=binpack.weight("binpack.weight", 1) if binpack else 0,
        resources=binpack.packed() if binpack else (),
        least=nodeorder.weight("leastrequested.weight", 1) if nodeorder else 0,
        most=nodeorder.weight("mostrequested.weight", 0) if nodeorder else 0,
        balanced=nodeorder.weight("balancedresource.weight", 1) if nodeorder else 0,
        fit=fit if fit and (fit.weight or fit.spare) else None,
    )
    has_weight = scoring.binpack or scoring.least or scoring.most or scoring.balanced or scoring.fit
    return scoring if has_weight else None


def wishes_of(nodeorder: Arguments | None) -> WishWeights:
    """Return how pods' preferences count. Where nodeorder is off (None), they decide first, with its default weights."""
    if nodeorder is None:
        return DEFAULT_WISHES
    return WishWeights(
        nodeorder.weight("nodeaffinity.weight", 2),
        nodeorder.weight("podaffinity.weight", 2),
        nodeorder.weight("tainttoleration.weight", 3),
        nodeorder.weight("podtopologyspread.weight", 2),
        first=False,
    )


def node_groups_of(arguments: Arguments, *, inherits: bool) -> NodeGrouping:
    """Return how queues use node groups; inherits: the flag enableHierarchy is set."""
    strict = arguments.truth("strict", default=True)
    return NodeGrouping(strict, arguments.truth("enablePreferredOrder", default=False), inherits)


def usage_of(arguments: Arguments, *, closes: bool, weighs: bool) -> Usage:
    """Return how the load of nodes counts; closes: its thresholds are on; weighs: its weight is on."""
    limits = arguments.within("thresholds")
    return Usage(
        arguments.weight("usage.weight", 5) if weighs else 0,
        arguments.weight("cpu.weight", 1),
        arguments.weight("memory.weight", 1),
        limits.percentage("cpu", 80) if closes else None,
        limits.percentage("mem", 80) if closes else None,
    )
