"""Which tasks of a job are to be on one node, and which are not (reference: volcano-scheduler §3.11, task-topology)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

AFFINITY = "volcano.sh/task-topology-affinity"
ANTI_AFFINITY = "volcano.sh/task-topology-anti-affinity"
TASK_ORDER = "volcano.sh/task-topology-task-order"

Pair = frozenset[str]
"""Two tasks; one alone is a task and itself: its own pods are meant."""


@dataclass(frozen=True, slots=True)
class TaskTopology:
    """Pairs of tasks that draw each other to one node, pairs that do not want to be on one, and which tasks come first."""

    near: frozenset[Pair] = frozenset()
    apart: frozenset[Pair] = frozenset()
    order: tuple[str, ...] = ()

    def drawn(self) -> frozenset[str]:
        """Return the tasks that have an affinity to some task."""
        return frozenset().union(*self.near)

    def tasks(self) -> frozenset[str]:
        """Return the tasks that have an affinity or an anti-affinity."""
        return self.drawn().union(*self.apart)

    def parted_from(self, task: str) -> list[str]:
        """Return the tasks with which a task has an anti-affinity, itself perhaps among them, by name."""
        pairs = [pair for pair in self.apart if task in pair]
        return sorted(min(pair - {task}, default=task) for pair in pairs)


def clauses(text: str) -> list[list[str]]:
    """Return the lists of tasks of an annotation such as "ps,worker;worker"."""
    listed = [[name.strip() for name in clause.split(",")] for clause in text.split(";")]
    return [names for each in listed if (names := [name for name in each if name])]


@lru_cache(maxsize=1024)
def read(affinity: str, anti_affinity: str, task_order: str) -> TaskTopology | None:
    """Return the topology of three annotations, None where they are empty. A pair in both affinities counts for neither."""
    near, apart = frozenset(_pairs(affinity)), frozenset(_pairs(anti_affinity))
    order = tuple(dict.fromkeys(name for clause in clauses(task_order) for name in clause))
    topology = TaskTopology(near - apart, apart - near, order)
    return topology if topology != TaskTopology() else None


def both(affinity: str, anti_affinity: str) -> list[Pair]:
    """Return the pairs that are in both the affinity and the anti-affinity."""
    return sorted(set(_pairs(affinity)) & set(_pairs(anti_affinity)), key=sorted)


def _pairs(text: str) -> Iterator[Pair]:
    for names in clauses(text):
        if len(names) == 1:
            yield frozenset(names)
        yield from (frozenset(two) for two in combinations(dict.fromkeys(names), 2))
