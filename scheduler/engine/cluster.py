"""Nodes as a matrix: what is free of each, and what changes when pods are put on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from scheduler.engine.accounts import Account
from scheduler.engine.arrays import Amount, Matrix, Vector
from scheduler.engine.cause import Exclusion, ExclusionKind
from scheduler.engine.gang import Attempt, Gang, minimum
from scheduler.engine.hyper_nodes import HyperNodes
from scheduler.engine.pod_class import PodClass
from scheduler.engine.relations import Relations
from scheduler.engine.scoring import Weights

OPEN = Exclusion(ExclusionKind.NONE)


@dataclass(slots=True, eq=False)
class Cluster:
    """What the engine places on. `free` shrinks as it places, and the accounts of queues are charged.

    allocatable (nodes, resources)
    free        (nodes, resources), may be negative where a node shrank
    classes     what Bin.pod_class refers to
    relations   what the ties of classes are about; None where no class has any
    weights     how nodes are compared; None where the fullest is the best
    hyper_nodes where arranged gangs may be; None where there are no such gangs
    packed      the columns by which HyperNodes are compared, with their weights
    """

    allocatable: Matrix
    free: Matrix
    classes: Sequence[PodClass] | Mapping[int, PodClass]
    exclusions: Sequence[Exclusion] = (OPEN,)
    touched: list[int] = field(default_factory=list)
    """Every node whose free amounts changed, in order, with repeats."""
    relations: Relations | None = None
    weights: Weights | None = None
    hyper_nodes: HyperNodes | None = None
    packed: tuple[Amount, ...] = ()
    when_empty: dict[int, int] = field(default_factory=dict)
    """How many pods of a class would fit if nothing else ran, as far as asked (`scheduler.reasons.explain`)."""

    def has_rules(self, gang: Gang) -> bool:
        """Tell whether some pods of a gang have rules about other pods."""
        if self.relations is None:
            return False
        ties = (self.classes[some.pod_class].ties for some in gang.bins)
        return any(each is not None and each.rules for each in ties)

    def minimum_requests(self, gang: Gang) -> list[Amount]:
        """Return what the minimum of a gang asks for in all, by column."""
        total: Counter[int] = Counter()
        for some, pods in zip(gang.bins, minimum(gang), strict=True):
            for column, amount in self.classes[some.pod_class].requests:
                total[column] += amount * pods
        return sorted(total.items())

    def taken(self, gang: Gang, attempt: Attempt) -> dict[int, Vector]:
        """Return by node what the pods of an attempt ask for."""
        found: dict[int, Vector] = {}
        for number, some in enumerate(gang.bins):
            request = self.classes[some.pod_class].request
            for node, pods in Counter(attempt.nodes(number).tolist()).items():
                found[node] = found.get(node, 0) + request * pods
        return found

    def fill(self, nodes: Sequence[int], counts: Sequence[int], some: PodClass, account: Account | None) -> None:
        """Put counts[i] pods of a class on nodes[i], for a queue; negative counts take them away again.

        Each node may be named once only.
        """
        if not nodes:
            return
        if len(nodes) == 1:
            self.free[nodes[0]] -= some.request * counts[0]
        else:
            self.free[nodes] -= np.multiply.outer(np.asarray(counts, dtype=np.int64), some.request)
        self.touched.extend(nodes)
        if some.ties is not None and self.relations is not None:
            self.relations.count(nodes, counts, some.ties)
        if account is not None:
            account.charge(some.requests, sum(counts))
