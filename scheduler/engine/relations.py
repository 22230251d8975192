"""Where pods may be because of other pods: host ports, affinity, anti-affinity, spreading.

Every one of these rules asks how many pods with some *mark* are in a *domain*. A mark is whatever makes pods count: that a
selector selects them, that they repel others, that they use a port. A domain is the nodes that have one value of a topology
label, or, for the empty label, a node by itself. A class has the marks of its pods, and the rules that its pods obey (`Ties`).
Counts follow every pod that is placed or taken away again, so that the rules judge pod after pod, whatever was placed in between.

Semantics are those of kube-scheduler's filters NodePorts, InterPodAffinity and PodTopologySpread.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from scheduler.engine.cause import Reason

Mark = Hashable

Marked = tuple[Mark, int, int]
"""A mark, a node, and how many pods there have it."""

OWN_NODE = ""
"""The topology in which each node is a domain by itself."""

NodeSet = NDArray[np.bool_]


class Domains(NamedTuple):
    """The domains of one topology. of_node has for each node an index into names; -1 where it is in none."""

    of_node: NDArray[np.int32]
    names: Sequence[str]


class Counted(Protocol):
    """What a spread, as a rule or a wish, counts: which pods, by which domains, on which nodes."""

    @property
    def mark(self) -> Mark: ...
    @property
    def topology(self) -> str: ...
    @property
    def eligible(self) -> NodeSet: ...
    @property
    def none_stands(self) -> bool: ...


class Ground(Protocol):
    """What is known of the cluster before anything is placed."""

    def domains(self, topology: str) -> Domains:
        """Return the domains of a topology."""
        ...

    def pods_with(self, mark: Mark) -> Iterable[tuple[int, int]]:
        """Yield the nodes that have pods with a mark, and how many."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Apart:
    """No pod with the mark in the same domain. display is what it is about, in words."""

    mark: Mark
    topology: str
    reason: Reason
    display: str
    phrase: str


@dataclass(frozen=True, slots=True, eq=False)
class Together:
    """A pod with the mark in the same domain of each topology.

    starts: the pods have the mark themselves, so the first of them may go
    anywhere while no pod with the mark is in any domain.
    """

    mark: Mark
    topologies: tuple[str, ...]
    starts: bool
    reason: Reason
    display: str
    phrase: str


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """No domain may have over `skew` pods with the mark more than the domain with the fewest.

    Only nodes of `eligible` make domains. With fewer than `least` domains the fewest is 0. counts_itself: the pods have the mark.
    none_stands: the mark is of a selector without conditions, by which kube-scheduler counts no pod but the one that it places.
    """

    mark: Mark
    topology: str
    skew: int
    least: int
    counts_itself: bool
    eligible: NodeSet
    reason: Reason
    display: str
    phrase: str
    none_stands: bool = False


Rule = Apart | Together | Spread


@dataclass(frozen=True, slots=True, eq=False)
class Ties:
    """The marks that pods of a class bring along and the rules that they obey."""

    marks: tuple[Mark, ...]
    rules: tuple[Rule, ...]
    moves_itself: bool = field(init=False)
    """Whether a pod of the class changes where the next one may be."""

    def __post_init__(self) -> None:
        marks = set(self.marks)
        object.__setattr__(self, "moves_itself", any(rule.mark in marks for rule in self.rules))

    def together(self) -> Together | None:
        """Return the rule by which the pods need others beside them; there is one at most."""
        return next((rule for rule in self.rules if isinstance(rule, Together)), None)


class Tally:
    """Pods with one mark by domain. The last slot stands for nodes in no domain, and counts nothing."""

    __slots__ = ("counts", "names", "of_node")

    def __init__(self, domains: Domains) -> None:
        self.of_node, self.names = domains
        self.counts = np.zeros(len(self.names) + 1, dtype=np.int64)

    def add(self, node: int, pods: int) -> None:
        """Count pods on a node."""
        domain = self.of_node[node]
        if domain >= 0:
            self.counts[domain] += pods


class Relations:
    """The marks of all pods, as they stand and as they are placed.

    Tallies are made when a rule first asks for them, so that unused ones cost nothing.
    """

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self._placed: defaultdict[Mark, defaultdict[int, int]] = defaultdict(lambda: defaultdict(int))
        self._tallies: dict[tuple[Mark, str], Tally] = {}
        self._spreads: dict[Counted, Tally] = {}
        self._by_mark: defaultdict[Mark, list[Tally]] = defaultdict(list)

    def count(self, nodes: Sequence[int], counts: Sequence[int], ties: Ties) -> None:
        """Note that counts[i] pods are on nodes[i]; negative counts take them away."""
        self.shift((mark, node, pods) for mark in ties.marks for node, pods in zip(nodes, counts, strict=True))

    def shift(self, marked: Iterable[Marked], sign: int = 1) -> None:
        """Note that pods with marks come to nodes; with -1 that they leave, also those that were there from the start."""
        for mark, node, pods in marked:
            self._placed[mark][node] += pods * sign
            for tally in self._by_mark.get(mark, ()):
                tally.add(node, pods * sign)

    def open_nodes(self, ties: Ties) -> NodeSet:
        """Return the nodes that no rule of a class forbids."""
        return in_all([self.allowed(rule) for rule in ties.rules])

    def allowed(self, rule: Rule) -> NodeSet:
        """Return the nodes that one rule does not forbid."""
        if isinstance(rule, Apart):
            tally = self.tally(rule.mark, rule.topology)
            free: NodeSet = (tally.counts == 0)[tally.of_node]
            return free
        if isinstance(rule, Together):
            return self._beside(rule)
        tally = self.spread(rule)
        fits = self.after(rule) - self.fewest(rule) <= rule.skew
        fits[-1] = False
        even: NodeSet = fits[tally.of_node]
        return even

    def is_start(self, rule: Together) -> bool:
        """Tell whether a pod that obeys the rule now would be the first of its kind."""
        return rule.starts and not any(self.tally(rule.mark, each).counts.any() for each in rule.topologies)

    def is_beside(self, rule: Together, node: int) -> bool:
        """Tell whether a rule allows one node."""
        tallies = [self.tally(rule.mark, each) for each in rule.topologies]
        least = 0 if self.is_start(rule) else 1
        return all(tally.of_node[node] >= 0 and tally.counts[tally.of_node[node]] >= least for tally in tallies)

    def regions(self, rule: Together) -> NDArray[np.int64]:
        """Return for each node the number of its domains in all topologies of a rule together; -1 where it lacks one."""
        domains = [self.tally(rule.mark, each).of_node for each in rule.topologies]
        if len(domains) == 1:
            return domains[0].astype(np.int64)
        _, regions = np.unique(np.stack(domains), axis=1, return_inverse=True)
        regions = regions.reshape(-1)
        regions[np.any([each < 0 for each in domains], axis=0)] = -1
        return regions

    def after(self, rule: Spread) -> NDArray[np.int64]:
        """Return how many pods each domain would have with one more of the class."""
        return self.spread(rule).counts + int(rule.counts_itself)

    def fewest(self, rule: Spread) -> int:
        """Return how many pods the domain with the fewest has; 0 with fewer domains than `least`."""
        counts = self.spread(rule).counts[:-1]
        return int(counts.min()) if len(counts) and len(counts) >= rule.least else 0

    def tally(self, mark: Mark, topology: str) -> Tally:
        """Return the pods with a mark by domain."""
        tally = self._tallies.get((mark, topology))
        if tally is None:
            tally = self._tallies[mark, topology] = self._tally(mark, self.ground.domains(topology))
        return tally

    def spread(self, rule: Counted) -> Tally:
        """Return the pods that a spread counts, by domains of the nodes that are eligible."""
        tally = self._spreads.get(rule)
        if tally is None:
            domains = _among(self.ground.domains(rule.topology), rule.eligible)
            tally = Tally(domains) if rule.none_stands else self._tally(rule.mark, domains)
            self._spreads[rule] = tally
        return tally

    def _tally(self, mark: Mark, domains: Domains) -> Tally:
        tally = Tally(domains)
        for node, pods in self.ground.pods_with(mark):
            tally.add(node, pods)
        for node, pods in self._placed[mark].items():
            tally.add(node, pods)
        self._by_mark[mark].append(tally)
        return tally

    def _beside(self, rule: Together) -> NodeSet:
        tallies = [self.tally(rule.mark, each) for each in rule.topologies]
        if self.is_start(rule):
            sets = [tally.of_node >= 0 for tally in tallies]
        else:
            sets = [(tally.counts > 0)[tally.of_node] for tally in tallies]
        return in_all(sets)


def in_all(sets: Sequence[NodeSet]) -> NodeSet:
    """Return the nodes that are in all of one or more sets."""
    nodes = sets[0]
    for each in sets[1:]:
        nodes = nodes & each
    return nodes


def _among(domains: Domains, eligible: NodeSet) -> Domains:
    """Return the domains that have eligible nodes, made of these alone."""
    of_node = np.where(eligible, domains.of_node, -1)
    numbers, packed = np.unique(of_node[of_node >= 0], return_inverse=True)
    left = np.full(len(of_node), -1, dtype=np.int32)
    left[of_node >= 0] = packed
    return Domains(left, [domains.names[number] for number in numbers.tolist()])
