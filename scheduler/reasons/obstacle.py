"""Which rule about other pods keeps a pod off the nodes that have room for it, with numbers."""

from __future__ import annotations

import numpy as np

from scheduler.engine.cause import Obstacle, Reason
from scheduler.engine.relations import NodeSet, Relations, Spread, Ties, Together


def find(relations: Relations, ties: Ties, roomy: NodeSet) -> tuple[Reason, Obstacle] | None:
    """Return the rule that closes most of the nodes with room; None where no node has room, or one with room is open."""
    if not ties.rules or not roomy.any() or (roomy & relations.open_nodes(ties)).any():
        return None
    closed = [roomy & ~relations.allowed(rule) for rule in ties.rules]
    counts = [int(each.sum()) for each in closed]
    worst = int(np.argmax(counts))
    rule = ties.rules[worst]
    topologies = rule.topologies if isinstance(rule, Together) else (rule.topology,)
    found = Obstacle(rule.display, counts[worst], int(roomy.sum()), topologies)
    return rule.reason, _with_domain(found, relations, rule, closed[worst]) if isinstance(rule, Spread) else found


def _with_domain(found: Obstacle, relations: Relations, rule: Spread, closed: NodeSet) -> Obstacle:
    """Return the obstacle of a spread with the closed domain that is nearest to being open."""
    tally = relations.spread(rule)
    found = found._replace(allowed=rule.skew)
    domains = np.unique(tally.of_node[closed])
    domains = domains[domains >= 0]
    if not len(domains):
        return found
    after, counts = relations.after(rule), tally.counts[:-1]
    nearest = int(domains[np.argmin(after[domains])])
    few = len(counts) < rule.least
    return found._replace(
        domain=tally.names[nearest],
        more=int(after[nearest]) - relations.fewest(rule),
        fewest="" if few else tally.names[int(np.argmin(counts))],
        domains=len(counts),
        least=rule.least if few else 0,
    )


def tally(relations: Relations, ties: Ties, nodes: NodeSet) -> dict[str, int]:
    """Count nodes by the first rule that closes them, in kube-scheduler's words."""
    found: dict[str, int] = {}
    for rule in ties.rules:
        closed = nodes & ~relations.allowed(rule)
        nodes = nodes & ~closed
        found[rule.phrase] = found.get(rule.phrase, 0) + int(closed.sum())
    return found
