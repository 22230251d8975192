"""The nodes as the rules about other pods see them: their topologies, and which pods are on them already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from scheduler.engine.relations import OWN_NODE, Domains, Mark
from scheduler.records.node_selection import NodeFacts


class Marks:
    """How many pods with each mark there are on each row of the node table, without zeros."""

    def __init__(self) -> None:
        self._rows: dict[Mark, Counter[int]] = {}

    def add(self, marks: Iterable[Mark], row: int, pods: int) -> None:
        """Count pods with some marks on a row; pods is negative when they leave."""
        for mark in marks:
            rows = self._rows.setdefault(mark, Counter())
            rows[row] += pods
            if not rows[row]:
                del rows[row]
                if not rows:
                    del self._rows[mark]

    def rows(self, mark: Mark) -> Mapping[int, int]:
        """Return the rows that have pods with a mark."""
        return self._rows.get(mark, {})


class NodeGround:
    """The `scheduler.engine.relations.Ground` of nodes in the order of a cycle.

    rows are the nodes' rows in the table, by which marks count pods; marks may change later.
    """

    def __init__(self, nodes: Sequence[NodeFacts], rows: NDArray[np.intp], marks: Marks) -> None:
        self._nodes, self._marks = nodes, marks
        self._index = {row: index for index, row in enumerate(rows.tolist())}
        self._domains: dict[str, Domains] = {}

    def domains(self, topology: str) -> Domains:
        """Return the domains of a topology, in the order of their names."""
        found = self._domains.get(topology)
        if found is None:
            found = self._domains[topology] = self._find(topology)
        return found

    def pods_with(self, mark: Mark) -> Iterator[tuple[int, int]]:
        """Yield the nodes that have pods with a mark, and how many; pods on nodes that are gone are left out."""
        for row, pods in self._marks.rows(mark).items():
            if row in self._index:
                yield self._index[row], pods

    def _find(self, topology: str) -> Domains:
        if topology == OWN_NODE:
            return Domains(np.arange(len(self._nodes), dtype=np.int32), [facts.name for facts in self._nodes])
        values = [facts.labels.get(topology) for facts in self._nodes]
        names = sorted({value for value in values if value is not None})
        numbers: dict[str | None, int] = {name: number for number, name in enumerate(names)}
        return Domains(np.array([numbers.get(value, -1) for value in values], dtype=np.int32), names)
