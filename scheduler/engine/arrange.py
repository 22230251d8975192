"""Placing gangs that are arranged: pods that are to be close together, and parts of a gang that start whole or not at all.

Rules: reference/volcano-scheduler §1.4 (sub-jobs), §2.2 (allocateForJob), §3.12 (HyperNodes in order).

* A gang with a topology is tried in one HyperNode after the other, lowest tier first. Within a tier the fullest with the gang
  comes first, then the one with most of its pods, then the first by name. A HyperNode without room for each step by itself is not
  tried. Where the topology is a wish, or names no highest tier or one above all HyperNodes, all nodes together come last.
* Only HyperNodes that contain all nodes of the gang's placed pods are tried.
* A part is tried in the same way, among the nodes of its gang. It gets all that it needs or nothing.
* Parts that must start come first, then the steps of the minimum: a pod of a part that does not run starts its part too.
* Beyond the minimum parts start one by one, and pods join what runs. When a HyperNode is full, the next higher one that has all
  pods of the gang is tried, as long as its tier is allowed.

Each choice of a HyperNode builds on the ones before, so a gang is placed greedily: parts that differ in size are not tried in
other orders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from scheduler.engine.arrays import MAX_REQUEST, Vector
from scheduler.engine.filler import Filler
from scheduler.engine.gang import Attempt, Gang, Part
from scheduler.engine.hyper_nodes import HyperNodes, Tier, Topology
from scheduler.engine.relations import NodeSet

Need = tuple[int, Sequence[int]]
"""At least so many pods of these bins."""


def place_minimum(filler: Filler, gang: Gang) -> Attempt:
    """Place what must start together; if it is short, nothing is placed."""
    first = Attempt(gang)
    if not gang.steps and not gang.part_steps:
        return _begin(first, None)
    first.short = (0, 0)
    account = gang.account
    if account is not None:
        for step in gang.steps:
            allowed = (account.allowed(filler.requests_of(gang, some), gang.bins[some].count) for some in step.bins)
            if sum(allowed) < step.need:
                return first  # no HyperNode has room, where the queue has none
    needs = [(step.need, step.bins) for step in gang.steps]
    for root in places(filler, first, gang.topology, needs):
        attempt = filler.start_anywhere(gang, partial(fill, filler, root=root))
        if attempt.short is None:
            return attempt
    return first


def fill(filler: Filler, gang: Gang, avoided: NodeSet | None, *, root: NodeSet | None) -> Attempt:
    """Place as much of a minimum as fits among the nodes of root, None for all."""
    attempt = _begin(Attempt(gang, avoided), root)
    again = filler.cluster.has_rules(gang)
    while True:
        before, attempt.short, attempt.few = attempt.placed(), None, None
        _start_parts(filler, attempt, root)
        for number, step in enumerate(gang.steps):
            missing = step.need - sum(attempt.taken[some] for some in step.bins)
            for some in step.bins:
                if missing > 0:
                    missing -= _bring(filler, attempt, some, missing, root, step.bins)
            if missing > 0:
                attempt.short = attempt.short or (number, step.bins[0])
        if attempt.short is None or not again or attempt.placed() == before:
            return attempt


def place_more(filler: Filler, attempt: Attempt, bin_number: int, due: int) -> list[tuple[int, int]]:
    """Place up to `due` pods of a bin beyond the minimum, or their part if that has not started; return (bin, pods)."""
    gang = attempt.gang
    number = gang.bins[bin_number].part
    starts = number is not None and number not in attempt.started
    bins = gang.parts[number].bins if number is not None and starts else (bin_number,)
    need = gang.parts[number].need if number is not None and starts else 1
    before = [attempt.taken[some] for some in bins]
    if number is not None and starts:
        roots = places(filler, attempt, gang.topology, [(need, bins)])
        if not any(_start(filler, attempt, number, root) for root in roots):
            attempt.full.update(bins)
    elif _fill_up(
        lambda: places(filler, attempt, gang.topology, [(need, bins)]),
        lambda root, wanted: _join(filler, attempt, bin_number, wanted, root),
        due,
    ):
        attempt.full.add(bin_number)
    pairs = zip(bins, before, strict=True)
    return [(some, attempt.taken[some] - taken) for some, taken in pairs if attempt.taken[some] > taken]


def places(
    filler: Filler,
    attempt: Attempt,
    topology: Topology | None,
    needs: Sequence[Need],
    root: NodeSet | None = None,
    part: Part | None = None,
) -> Iterator[NodeSet | None]:
    """Yield where a gang, or a part of it, may be, best first: sets of nodes among those of root; None for all nodes.

    needs must each find room there.
    """
    hyper_nodes = filler.cluster.hyper_nodes
    if topology is None or hyper_nodes is None:
        yield root
        return
    bins = range(len(attempt.gang.bins)) if part is None else part.bins
    occupied = np.concatenate([hyper_nodes.occupied(topology), _nodes_of(attempt, bins)])
    for tier in hyper_nodes.up_to(topology):
        for domain in _in_order(filler, attempt, hyper_nodes, tier, occupied, needs, bins, root):
            mask = hyper_nodes.mask(domain)
            yield mask if root is None else mask & root
    if not hyper_nodes.binds(topology):
        yield root


def rooms(filler: Filler, attempt: Attempt, tier: Tier, needs: Sequence[Need], root: NodeSet | None) -> Vector:
    """Return for each domain of a tier how many pods of all needs would fit at most, each class by itself."""
    gang = attempt.gang
    found = np.zeros(len(tier.starts), dtype=np.int64)
    for need, bins in needs:
        fit = np.zeros(len(tier.starts), dtype=np.int64)
        for some in bins:
            room = filler.rooms(gang.bins[some].pod_class)
            left = gang.bins[some].count - attempt.taken[some]
            fit += np.minimum(tier.sums(room if root is None else np.where(root, room, 0)), left)
        found += np.minimum(fit, need)
    return found


def _begin(attempt: Attempt, root: NodeSet | None) -> Attempt:
    attempt.allowed = {}
    _keep_to(attempt, range(len(attempt.gang.bins)), root)
    attempt.started = {number for number, part in enumerate(attempt.gang.parts) if part.need <= 0}
    return attempt


def _keep_to(attempt: Attempt, bins: Iterable[int], nodes: NodeSet | None) -> None:
    """Restrict bins to some nodes from now on; None lifts that."""
    if attempt.allowed is None:
        attempt.allowed = {}
    for some in bins:
        if nodes is None:
            attempt.allowed.pop(some, None)
        else:
            attempt.allowed[some] = nodes


def _start_parts(filler: Filler, attempt: Attempt, root: NodeSet | None) -> None:
    """Start as many of the parts that must start as fit."""
    gang = attempt.gang
    for number, step in enumerate(gang.part_steps):
        have = sum(some in attempt.started for some in step.parts)
        for some in step.parts:
            if have < step.need and some not in attempt.started:
                have += _start(filler, attempt, some, root)
        if have < step.need:
            attempt.few = attempt.few or (number, have)
            attempt.short = attempt.short or (0, gang.parts[step.parts[0]].bins[0] if step.parts else 0)


def _bring(
    filler: Filler, attempt: Attempt, bin_number: int, wanted: int, root: NodeSet | None, bins: Sequence[int]
) -> int:
    """Place pods of a bin, after starting their part if it does not run; return how many of `bins` were placed."""
    before = sum(attempt.taken[some] for some in bins)
    number = attempt.gang.bins[bin_number].part
    if number is None or number in attempt.started or _start(filler, attempt, number, root):
        more = wanted - (sum(attempt.taken[some] for some in bins) - before)
        if more > 0:
            _join(filler, attempt, bin_number, more, root)
    return sum(attempt.taken[some] for some in bins) - before


def _start(filler: Filler, attempt: Attempt, number: int, root: NodeSet | None) -> bool:
    """Place what a part needs to start, or nothing of it."""
    part, gang = attempt.gang.parts[number], attempt.gang
    if sum(gang.bins[some].count - attempt.taken[some] for some in part.bins) < part.need:
        return False
    before = {some: len(attempt.runs[some]) for some in part.bins}
    start = attempt.start
    for nodes in places(filler, attempt, part.topology, [(part.need, part.bins)], root, part):
        _keep_to(attempt, part.bins, nodes)
        missing = part.need
        for some in part.bins:
            missing -= filler.take(attempt, some, missing, together=missing)
        if missing <= 0:
            attempt.started |= {number}
            return True
        filler.undo_since(attempt, before, part.bins)
        attempt.start = start
    _keep_to(attempt, part.bins, root)
    return False


def _join(filler: Filler, attempt: Attempt, bin_number: int, wanted: int, root: NodeSet | None) -> int:
    """Place up to `wanted` pods of a bin that belong to no part, or to one that runs; return how many."""
    number = attempt.gang.bins[bin_number].part
    part = None if number is None else attempt.gang.parts[number]
    topology = None if part is None else part.topology

    def take(nodes: NodeSet | None, left: int) -> int:
        _keep_to(attempt, (bin_number,), nodes)
        return filler.take(attempt, bin_number, left, together=left)

    if topology is None:
        return take(root, wanted)
    return wanted - _fill_up(lambda: places(filler, attempt, topology, [(1, (bin_number,))], root, part), take, wanted)


def _fill_up(
    where: Callable[[], Iterable[NodeSet | None]], take: Callable[[NodeSet | None, int], int], wanted: int
) -> int:
    """Place up to `wanted` pods, in the first place that has room until none has; return how many are left.

    The possible places depend on the pods placed so far, so they are asked for anew.
    """
    while wanted > 0:
        taken = next((some for nodes in where() if (some := take(nodes, wanted))), 0)
        if not taken:
            break
        wanted -= taken
    return wanted


def _in_order(
    filler: Filler,
    attempt: Attempt,
    hyper_nodes: HyperNodes,
    tier: Tier,
    occupied: NDArray[np.int64],
    needs: Sequence[Need],
    bins: Sequence[int],
    root: NodeSet | None,
) -> list[int]:
    """Return the domains of a tier that contain all occupied nodes and have room for each need; best first."""
    is_open = np.ones(len(tier.starts), dtype=bool)
    if len(occupied):
        marks = np.bincount(occupied, minlength=hyper_nodes.size)
        is_open &= tier.sums(marks) == len(occupied)
    for need in needs:
        is_open &= rooms(filler, attempt, tier, [need], root) >= need[0]
    found: list[int] = np.flatnonzero(is_open).tolist()
    if len(found) > 1:
        scores = _scores(filler, attempt, tier, bins)
        mates = tier.sums(np.bincount(_mates(attempt, hyper_nodes), minlength=hyper_nodes.size))
        found.sort(key=lambda place: (-scores[place], -int(mates[place]), place))
    return [tier.first + place for place in found]


def _scores(filler: Filler, attempt: Attempt, tier: Tier, bins: Sequence[int]) -> list[float]:
    """Return for each domain how full it is with the waiting pods of these bins (§3.12, HyperNodeOrder)."""
    cluster, gang = filler.cluster, attempt.gang
    scores = np.zeros(len(tier.starts))
    for column, weight in cluster.packed:
        wanted = sum(
            int(cluster.classes[gang.bins[some].pod_class].request[column])
            * (gang.bins[some].count - attempt.taken[some])
            for some in bins
        )
        whole = tier.sums(cluster.allocatable[:, column])
        used = whole - tier.sums(cluster.free[:, column]) + min(wanted, MAX_REQUEST)
        fits = (used <= whole) & (whole > 0)
        scores += weight * np.where(fits, used / np.maximum(whole, 1), 0.0)
    return list(map(float, scores))


def _mates(attempt: Attempt, hyper_nodes: HyperNodes) -> NDArray[np.int64]:
    """Return the nodes of a gang's pods, one for each pod that has one."""
    gang = attempt.gang
    topologies = [gang.topology] if gang.topology else [part.topology for part in gang.parts]
    there = [hyper_nodes.occupied(each) for each in topologies if each is not None]
    return np.concatenate([*there, _nodes_of(attempt, range(len(gang.bins)))])


def _nodes_of(attempt: Attempt, bins: Iterable[int]) -> NDArray[np.int64]:
    """Return the nodes of the placed pods of some bins, one for each pod."""
    found = [attempt.nodes(some) for some in bins if attempt.taken[some]]
    return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)
