"""Which units have to go so that rules about other pods open a node for one more pod.

* Apart, and host ports: all pods with the mark in the node's domain. If one of them may not be evicted, the node stays closed.
* Spread: as many of the pods with the mark in the domain as it has too many.
* Together: no eviction opens a node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from scheduler.engine.cluster import Cluster
from scheduler.engine.gang import Gang
from scheduler.engine.relations import Apart, Mark, Relations, Rule, Spread, Tally, Ties
from scheduler.victims.units import Unit


@dataclass(frozen=True, slots=True)
class RuleMarks:
    """The marks in the rules of a gang; needed are those of pods that its pods must be together with, or spread among."""

    all: frozenset[Mark] = frozenset()
    needed: frozenset[Mark] = frozenset()

    @classmethod
    def of(cls, cluster: Cluster, gang: Gang) -> RuleMarks:
        """Return the marks of the rules of all classes of a gang."""
        ties = [cluster.classes[some.pod_class].ties for some in gang.bins]
        rules = [rule for each in ties if each is not None for rule in each.rules]
        needed = frozenset(rule.mark for rule in rules if not isinstance(rule, Apart))
        return cls(frozenset(rule.mark for rule in rules), needed)


def marks(unit: Unit) -> set[Mark]:
    """Return the marks of the pods of a unit."""
    return {mark for mark, _, _ in unit.marks}


class Conflicts:
    """The marks of units, by the nodes on which their pods are."""

    def __init__(self, relations: Relations, units: Sequence[Unit]) -> None:
        self._relations = relations
        self._marked: dict[Mark, dict[int, dict[int, int]]] = {}
        """mark → node → unit → pods"""
        for number, unit in enumerate(units):
            for mark, node, pods in unit.marks:
                on_node = self._marked.setdefault(mark, {}).setdefault(node, {})
                on_node[number] = on_node.get(number, 0) + pods

    def in_the_way(self, ties: Ties, node: int, gone: Collection[int]) -> list[int] | None:
        """Return the units that have to go besides those in `gone`; None where no eviction opens the node."""
        found: list[int] = []
        for rule in ties.rules:
            opposed = self._opposed(rule, node, gone)
            if opposed is None:
                return None
            found += [number for number in opposed if number not in found]
        return found

    def _opposed(self, rule: Rule, node: int, gone: Collection[int]) -> list[int] | None:
        if isinstance(rule, Apart):
            tally = self._relations.tally(rule.mark, rule.topology)
            domain = tally.of_node[node]
            return self._enough(rule.mark, tally, domain, int(tally.counts[domain]) if domain >= 0 else 0, gone)
        if isinstance(rule, Spread):
            tally = self._relations.spread(rule)
            domain = tally.of_node[node]
            if domain < 0:
                return None
            over = int(self._relations.after(rule)[domain]) - self._relations.fewest(rule) - rule.skew
            return self._enough(rule.mark, tally, domain, over, gone)
        return [] if self._relations.is_beside(rule, node) else None

    def _enough(self, mark: Mark, tally: Tally, domain: int, surplus: int, gone: Collection[int]) -> list[int] | None:
        """Return the first units that together have `surplus` pods with a mark in a domain; None where there are too few."""
        found: list[int] = []
        if surplus <= 0:
            return found
        totals: Counter[int] = Counter()  # by unit
        for node, units in self._marked.get(mark, {}).items():
            if tally.of_node[node] == domain:
                for number, pods in units.items():
                    if number not in gone:
                        totals[number] += pods
        for number, pods in sorted(totals.items()):
            found.append(number)
            surplus -= pods
            if surplus <= 0:
                return found
        return None
