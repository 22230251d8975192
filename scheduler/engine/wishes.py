"""What pods prefer: nodes with labels, other pods near or away, an even spread, no taints.

Semantics are those of kube-scheduler's scores NodeAffinity, TaintToleration, InterPodAffinity and PodTopologySpread
(reference/volcano-scheduler §3.8): each gives the nodes that a pod may choose at that moment 0 to 100 in whole numbers, times its
weight. The scores depend on all of these nodes, and often on the pods placed just before. So nodes are compared anew for each
pod, or, where nothing moves, for as many as the best node has room for.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from scheduler.engine.arrays import Matrix, Scores, Vector
from scheduler.engine.kin import Kin
from scheduler.engine.relations import Mark, NodeSet, Relations

Indices = NDArray[np.int64]

MOST = 100
"""The highest score."""


@dataclass(frozen=True, slots=True)
class WishWeights:
    """The weights of wishes. first: they decide before everything else; otherwise they are added to other scores."""

    nodes: int = 2
    pods: int = 2
    taints: int = 3
    spread: int = 2
    first: bool = True


DEFAULT = WishWeights()
"""The defaults of Volcano's nodeorder, which decide before everything else."""


@dataclass(frozen=True, slots=True, eq=False)
class Near:
    """Each pod with the mark in the same domain counts `weight`, which is negative where it is avoided."""

    mark: Mark
    topology: str
    weight: int


@dataclass(frozen=True, slots=True, eq=False)
class Even:
    """The fewer pods with the mark are in a domain, the better. by_node: each node by itself is a domain.

    labelled are the nodes that have the labels of all such wishes of a pod: others are worth nothing. Of these, pods count on the
    eligible ones. none_stands: the mark is of a selector without conditions, by which kube-scheduler counts no pod.
    """

    mark: Mark
    topology: str
    skew: int
    labelled: NodeSet
    eligible: NodeSet
    by_node: bool = False
    none_stands: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Wishes:
    """What pods of a class prefer.

    matched      (nodes,) the weights of the node preferences that each meets; None where there are none
    avoided      (nodes,) how many taints say to use other nodes first; None where there are none
    moves_itself whether a pod of the class changes what nodes are worth to the next one
    kin          how it relates to others of its gang (task-topology); None where it does not
    """

    weights: WishWeights
    matched: Vector | None = None
    avoided: Vector | None = None
    near: tuple[Near, ...] = ()
    even: tuple[Even, ...] = ()
    moves_itself: bool = False
    kin: Kin | None = None

    def best(self, nodes: Indices, scores: Scores, relations: Relations | None, free: Matrix) -> int:
        """Return the best of one or more nodes, whose other scores are given in the same order; the first among equals."""
        worth = self.worth(nodes, relations, free)
        if not self.weights.first:
            return int(nodes[np.argmax(scores + worth)])
        wished = worth == worth.max()
        return int(nodes[wished][np.argmax(scores[wished])])

    def worth(self, nodes: Indices, relations: Relations | None, free: Matrix) -> Vector:
        """Return what nodes are worth, compared with each other."""
        worth = np.zeros(len(nodes), dtype=np.int64)
        if self.matched is not None:
            worth += self.weights.nodes * _of_most(self.matched[nodes])
        if self.avoided is not None:
            worth += self.weights.taints * (MOST - _of_most(self.avoided[nodes]))
        if self.near and relations is not None:
            raw = np.zeros(len(nodes), dtype=np.int64)
            for each in self.near:
                tally = relations.tally(each.mark, each.topology)
                raw += each.weight * tally.counts[tally.of_node[nodes]]
            worth += self.weights.pods * _above_least(raw)
        if self.even and relations is not None:
            worth += self.weights.spread * _even(self.even, nodes, relations)
        if self.kin is not None and relations is not None:
            worth += self.kin.weight * _above_least(self.kin.raw(nodes, relations, free))
        return worth


def _of_most(raw: Vector) -> Vector:
    most = int(raw.max())
    return raw * MOST // most if most else raw * 0


def _above_least(raw: Vector) -> Vector:
    return _of_most(raw - int(raw.min()))


def _even(wishes: tuple[Even, ...], nodes: Indices, relations: Relations) -> Vector:
    counted = wishes[0].labelled[nodes]
    worth = np.zeros(len(nodes), dtype=np.int64)
    among = nodes[counted]
    if not len(among):
        return worth
    raw = np.zeros(len(among))
    for each in wishes:
        tally = relations.spread(each)
        domains = tally.of_node[among]
        size = len(among) if each.by_node else len(np.unique(domains))
        raw += tally.counts[domains] * log(size + 2) + (each.skew - 1)
    whole = np.floor(raw)
    rounded = whole.astype(np.int64) + (raw - whole >= 0.5)  # away from zero, as Go rounds
    most, least = int(rounded.max()), int(rounded.min())
    worth[counted] = MOST * (most + least - rounded) // most if most else MOST
    return worth
