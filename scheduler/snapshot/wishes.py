"""What pods of a profile prefer, in the engine's form (`scheduler.engine.wishes`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from scheduler.engine.arrays import Vector
from scheduler.engine.relations import OWN_NODE
from scheduler.engine.wishes import Even, Near, Wishes, WishWeights
from scheduler.records.profiles import Leans, Profile, Subject
from scheduler.snapshot.ties import Eligible

Leaned = Mapping[Subject, Mapping[tuple[str, int], int]]
"""The subjects that pods prefer in their domain, by topology and weight, with how many pods do."""

HOST_NAME = "kubernetes.io/hostname"


def wishes_of(
    weights: WishWeights,
    profile: Profile | None,
    leaned: Leaned,
    eligible: Eligible,
    matched: Vector | None,
    avoided: Vector | None,
) -> Wishes | None:
    """Return what pods prefer; None when that changes nothing.

    matched and avoided are as in Wishes. Taints alone are no wish where wishes decide first: the ranking heeds them itself.
    """
    near = tuple(_near(profile, leaned)) if profile and weights.pods else ()
    even = tuple(_even(profile, eligible)) if profile and weights.spread else ()
    matched = matched if weights.nodes else None
    avoided = avoided if weights.taints else None
    if matched is None and not near and not even and (avoided is None or weights.first):
        return None
    marks = set(profile.marks) if profile else set()
    moves = any(mark in marks for mark in (*(each.mark for each in near), *(each.mark for each in even)))
    return Wishes(weights, matched, avoided, near, even, moves)


def _near(profile: Profile, leaned: Leaned) -> Iterator[Near]:
    """Yield the pods' own leanings, then other pods' leanings about them."""
    for each in profile.demands.leanings if profile.demands else ():
        yield Near((each.term.pods,), each.term.topology, each.weight)
    found = [(subject, *how) for subject in profile.selected for how in leaned.get(subject, ())]
    for subject, topology, weight in sorted(found, key=repr):
        yield Near(Leans(subject, topology, weight), topology, weight)


def _even(profile: Profile, eligible: Eligible) -> Iterator[Even]:
    wished = profile.demands.even if profile.demands else ()
    if not wished:
        return
    labelled = eligible.labelled(tuple(dict.fromkeys(each.topology for each in wished)))
    for each in wished:
        by_node = each.topology == HOST_NAME
        nodes = labelled
        if each.honors_selector and not by_node:
            nodes = nodes & eligible.selected()
        if each.honors_taints and not by_node:
            nodes = nodes & eligible.tolerated()
        none_stands = not each.pods.labels.requirements and not each.pods.labels.nothing
        topology = OWN_NODE if by_node else each.topology
        yield Even((each.pods,), topology, each.skew, labelled, nodes, by_node, none_stands)
