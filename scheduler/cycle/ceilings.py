"""The ceilings of queues: a queue without a capability has none, one below another is under both."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from scheduler.engine.cause import Cause, Reason
from scheduler.engine.cluster import UNLIMITED, Vector

if TYPE_CHECKING:
    from scheduler.snapshot.records import Group
    from scheduler.snapshot.snapshot import Snapshot


class Ceilings:
    """The limited queues of one cycle, numbered by name.

    rooms are what each may still take, by column: its ceiling less what pods hold.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        limited = sorted(name for name, queue in snapshot.queues.items() if queue.capability)
        self.names = limited
        self._numbers = {name: number for number, name in enumerate(limited)}
        self.ceilings = [self._ceiling(name) for name in limited]
        self.rooms: list[Vector | None] = [ceiling.copy() for ceiling in self.ceilings]
        self._chains: dict[str, tuple[int, ...]] = {}
        if limited:
            self._subtract_usage()

    def limits(self, name: str) -> tuple[int, ...]:
        """Return the numbers of the limited queues among a queue and its ancestors."""
        if not self._numbers:
            return ()
        if name not in self._chains:
            self._chains[name] = tuple(self._numbers[n] for n in self._line(name) if n in self._numbers)
        return self._chains[name]

    def _line(self, name: str) -> list[str]:
        """Return a queue and its ancestors; a circle of parents ends where it began."""
        line: list[str] = []
        while name in self._snapshot.queues and name not in line:
            line.append(name)
            name = self._snapshot.queues[name].parent
        return line

    def _ceiling(self, name: str) -> Vector:
        ceiling = np.full(len(self._snapshot.nodes.columns), UNLIMITED, dtype=np.int64)
        for resource, amount in self._snapshot.queues[name].capability.items():
            column = self._snapshot.nodes.columns.get(resource)
            if column is not None:
                ceiling[column] = max(amount, 0)
        return ceiling

    def _subtract_usage(self) -> None:
        for (queue, _), shapes in self._snapshot.usage.items():
            for number in self.limits(queue):
                room = self.rooms[number]
                for shape, count in shapes.items():
                    if room is not None:
                        room -= self._snapshot.nodes.vector(shape) * count


def queue_cause(snapshot: Snapshot, group: Group) -> Cause | None:
    """Return the cause when the pods of a group cannot start in its queue, whatever room there is."""
    if group.queue not in snapshot.queues:
        return Cause(Reason.QUEUE_NOT_FOUND, queue=group.queue)
    if snapshot.has_children(group.queue):
        return Cause(Reason.QUEUE_HAS_CHILDREN, queue=group.queue)
    return None
