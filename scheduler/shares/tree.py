"""Queues as a tree, also where some are wrong.

A queue is below its parent; one without a parent is below `root`, which exists
whether or not somebody created it. One wrong queue stops no other (design §4):
a queue whose parent is missing is below root as well, and so is the first
queue by name in a cycle of parents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kube.usage import ROOT_QUEUE
from scheduler.records.records import Queue


class QueueTree:
    """Which queue is below which. Every queue is in it once, and root is above all."""

    def __init__(self, queues: Mapping[str, Queue]) -> None:
        self._parents = {
            name: queue.parent if queue.parent in queues and queue.parent != name else ROOT_QUEUE
            for name, queue in sorted(queues.items())
            if name != ROOT_QUEUE
        }
        for name in self._parents:
            self._break_circle(name)
        self._children: dict[str, list[str]] = {}
        for name, parent in self._parents.items():
            self._children.setdefault(parent, []).append(name)

    def parent(self, name: str) -> str:
        """Return the parent of a queue; "" for root."""
        return self._parents.get(name, "")

    def children(self, name: str) -> list[str]:
        """Return the queues right below one, by name."""
        return self._children.get(name, [])

    def downwards(self) -> Iterator[str]:
        """Yield root and then all queues, each after its parent."""
        left = [ROOT_QUEUE]
        while left:
            name = left.pop()
            yield name
            left += reversed(self.children(name))

    def upwards(self) -> Iterable[str]:
        """Return all queues, each before its parent, root last."""
        return reversed(list(self.downwards()))

    def _break_circle(self, name: str) -> None:
        above, seen = self._parents[name], {name}
        while above in self._parents and above not in seen:
            seen.add(above)
            above = self._parents[above]
        if above == name:
            self._parents[name] = ROOT_QUEUE
