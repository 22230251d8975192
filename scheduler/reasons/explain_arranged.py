"""Why an arranged gang waits where its pods alone would have room.

It is tried in one HyperNode after the other, on what is left after all others were placed, to find the one where most of its pods fit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from scheduler.engine import arrange
from scheduler.engine.cause import Arrangement, Cause, Reason
from scheduler.engine.gang import Arranged, Attempt, Gang
from scheduler.engine.hyper_nodes import HyperNodes, Topology
from scheduler.engine.place import Placer
from scheduler.engine.relations import NodeSet
from scheduler.reasons.explain import Names, explain, explain_rest, rooms_when_empty


class _Best(NamedTuple):
    """Where most pods of a gang fit: how many, in which HyperNode, and on which nodes."""

    fit: int
    hyper_node: str
    nodes: NodeSet | None


def explain_arranged(placer: Placer, gang: Gang, names: Names, *, needed: int) -> Cause:
    """Return why the minimum of a gang (`needed` pods) cannot be placed on what is left."""
    plain = _plain(gang)
    attempt = placer.place_minimum(plain)
    if attempt.short is not None:
        return explain(placer, plain, names, needed=needed)
    placer.undo(plain, attempt)
    nodes = len(names.nodes)
    topology, hyper_nodes = gang.topology, placer.cluster.hyper_nodes
    if topology is None or hyper_nodes is None or not hyper_nodes.binds(topology):
        return _of_parts(placer, gang, None, needed, nodes)
    about = _requirement(topology, hyper_nodes)
    best = _best(placer, gang, topology, hyper_nodes)
    if best is None:
        on = len(topology.on) if hyper_nodes.up_to(topology) else 0
        return Cause(Reason.NETWORK_TOPOLOGY, needed=needed, nodes=nodes, arrangement=about._replace(placed=on))
    if best.fit >= needed or (gang.parts and _fits_without_parts(placer, gang, best.nodes)):
        return _of_parts(placer, gang, best.nodes, needed, nodes)
    return Cause(
        Reason.NETWORK_TOPOLOGY,
        never=not _fits_when_empty(placer, gang, topology, hyper_nodes),
        fit=best.fit,
        needed=needed,
        nodes=nodes,
        arrangement=about._replace(hyper_node=best.hyper_node),
    )


def explain_arranged_rest(placer: Placer, gang: Gang, attempt: Attempt, names: Names, *, started: int) -> Cause | None:
    """Return why pods beyond the minimum have no node, or None when all have one."""
    left = [number for number, some in enumerate(gang.bins) if attempt.taken[number] < some.count]
    if not left:
        return None
    request = placer.requests_of(gang, left[0])
    is_admitted = gang.account is None or gang.account.allowed(request, 1) > 0
    if not is_admitted or not placer.room(gang.bins[left[0]].pod_class):
        return explain_rest(placer, gang, attempt, names, started=started)
    number = gang.bins[left[0]].part
    part = None if number is None else gang.parts[number]
    hyper_nodes = placer.cluster.hyper_nodes
    topology = gang.topology
    if part is not None and (topology is None or hyper_nodes is None or not hyper_nodes.binds(topology)):
        topology = part.topology
    found = {
        "started": True,
        "fit": started + attempt.placed(),
        "needed": started + sum(some.count for some in gang.bins),
        "nodes": len(names.nodes),
    }
    about = Arrangement() if topology is None or hyper_nodes is None else _requirement(topology, hyper_nodes)
    if part is not None and number not in attempt.started:
        return Cause(Reason.SUB_GROUPS, **found, arrangement=about._replace(group=part.name, size=part.need))  # type: ignore[arg-type]
    return Cause(Reason.NETWORK_TOPOLOGY, **found, arrangement=about)  # type: ignore[arg-type]


def _plain(gang: Gang) -> Gang:
    bins = tuple(replace(some, part=None) for some in gang.bins)
    return replace(gang, bins=bins, arranged=None)


def _requirement(topology: Topology, hyper_nodes: HyperNodes) -> Arrangement:
    """Return a network topology as the arrangement of a cause."""
    return Arrangement(topology.highest, topology.name, is_known=hyper_nodes.highest(topology) is not None)


def _best(placer: Placer, gang: Gang, topology: Topology, hyper_nodes: HyperNodes) -> _Best | None:
    """Return where most of a minimum fits, the first of equals; None where no HyperNode qualifies."""
    first = arrange.fill(placer, replace(gang, steps=(), arranged=Arranged(gang.topology, gang.parts)), None, root=None)
    occupied = hyper_nodes.occupied(topology)
    marks = np.bincount(occupied, minlength=hyper_nodes.size)
    needs = [(step.need, step.bins) for step in gang.steps]
    bounds: list[tuple[int, int]] = []
    for tier in hyper_nodes.up_to(topology):
        most = arrange.rooms(placer, first, tier, needs, None)
        bounds += [
            (-int(most[position]), tier.first + position)
            for position in np.flatnonzero(tier.sums(marks) == len(occupied)).tolist()
        ]
    best: _Best | None = None
    for bound, domain in sorted(bounds):
        if best is not None and best.fit >= -bound and not gang.part_steps:
            break
        nodes = hyper_nodes.mask(domain)
        attempt = arrange.fill(placer, gang, None, root=nodes)
        fit = attempt.placed()
        placer.undo(gang, attempt)
        if best is None or fit > best.fit:
            best = _Best(fit, hyper_nodes.named[domain].name, nodes)
    return best


def _fits_without_parts(placer: Placer, gang: Gang, nodes: NodeSet | None) -> bool:
    loose = replace(_plain(gang), arranged=Arranged(gang.topology))
    attempt = arrange.fill(placer, loose, None, root=nodes)
    placer.undo(loose, attempt)
    return attempt.short is None


def _fits_when_empty(placer: Placer, gang: Gang, topology: Topology, hyper_nodes: HyperNodes) -> bool:
    """Tell whether one HyperNode would have room for a minimum if nothing else ran, counting each step and each class by itself."""
    for tier in hyper_nodes.up_to(topology):
        is_roomy = np.ones(len(tier.starts), dtype=bool)
        for step in gang.steps:
            fit = np.zeros(len(tier.starts), dtype=np.int64)
            for some in (gang.bins[number] for number in step.bins):
                rooms = rooms_when_empty(placer.cluster, some.pod_class)
                fit += np.minimum(tier.sums(rooms), some.count)
            is_roomy &= fit >= step.need
        if is_roomy.any():
            return True
    return False


def _of_parts(placer: Placer, gang: Gang, root: NodeSet | None, needed: int, nodes: int) -> Cause:
    """Return the cause when too few parts fit as a whole."""
    attempt = arrange.fill(placer, gang, None, root=root)
    fit, few, started = attempt.placed(), attempt.few, len(attempt.started)
    placer.undo(gang, attempt)
    if attempt.short is None:  # room came back through a gang that was undone after this one
        return Cause(Reason.NOT_ENOUGH_RESOURCES, fit=needed, needed=needed, nodes=nodes)
    wanted, have = 0, started
    parts = gang.parts
    if few is not None:
        step, have = gang.part_steps[few[0]], few[1]
        wanted, parts = step.need, tuple(gang.parts[number] for number in step.parts)
    hyper_nodes = placer.cluster.hyper_nodes
    topology = next((part.topology for part in parts if part.topology is not None), None)
    about = (
        _requirement(topology, hyper_nodes)
        if topology is not None and hyper_nodes is not None and hyper_nodes.binds(topology)
        else Arrangement()
    )
    return Cause(
        Reason.SUB_GROUPS,
        fit=fit,
        needed=needed,
        nodes=nodes,
        arrangement=about._replace(have=have, wanted=wanted, size=max((part.need for part in parts), default=0)),
    )
