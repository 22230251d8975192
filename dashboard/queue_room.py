"""The room of each queue: what is free, how many jobs wait, and whether it takes new jobs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cluster import access
from cluster.rules import intake
from cluster.store import store
from dashboard.cluster_usage import ROOT, Picture, amounts_of
from dashboard.guarantees import Guarantees
from dashboard.parts import scope
from kube import amounts
from kube.amounts import Amounts
from kube.resources import JOBS

WAITING = ("Pending", "", "Restarting")  # the phases of jobs that wait
ORDINARY = ("memory", "pods", "ephemeral-storage")  # resources that the text leaves out: every node has much of them


class Space(NamedTuple):
    """The most that may be used of some nodes, and what of that is free."""

    most: Amounts
    free: Amounts

    def __str__(self) -> str:
        """Return the space in words, such as `12 of 40 CPU free`; "" without nodes."""
        names = [name for name in ("cpu", *sorted(set(self.most) - {"cpu", *ORDINARY})) if self.most.get(name)]
        free = {name: amounts.show(name, self.free.get(name, 0)).partition(" ")[0] for name in names}
        return " · ".join(f"{free[name]} of {amounts.show(name, self.most[name])} free" for name in names)


class Room(NamedTuple):
    """A queue: its space on real and on simulated nodes, how many jobs wait, and why it takes none, "" if it does."""

    name: str
    real: Space
    simulated: Space
    waiting: int
    refusal: str

    def __str__(self) -> str:
        """Return the room in words, such as `12 of 40 CPU free · 3 jobs wait`."""
        parts = [str(self.real)]
        if simulated := str(self.simulated):
            parts.append(f"simulated nodes {simulated}")
        if not any(parts):
            parts = ["no node is ready"]
        if self.waiting:
            parts.append("1 job waits" if self.waiting == 1 else f"{self.waiting} jobs wait")
        return " · ".join(filter(None, parts))


def rooms(picture: Picture, waiting: dict[str, int]) -> Iterator[Room]:
    """Yield the room of every queue but root, by name; `waiting` is the number of jobs that wait in each.

    Free is the least that is left of the queue, of those above it and of the
    nodes that are ready, less what guarantees reserve there for others; what others deserve is not considered.
    """
    real, simulated = (_whole(picture, simulated=which) for which in (False, True))
    guarantees = Guarantees(picture)
    parents = {queue.parent for queue in picture.queues.values()}
    for name, facts in sorted(picture.queues.items()):
        if name == ROOT:
            continue
        limits, rest = _limits(picture, name, guarantees)
        reserved = guarantees.beside(name)
        idle = amounts.subtract(amounts.add(real.free, simulated.free), reserved)
        rest |= {each: max(min(idle.get(each, 0), rest.get(each, idle.get(each, 0))), 0) for each in reserved}
        yield Room(
            name,
            _within(real, limits, rest),
            _within(simulated, limits, rest),
            waiting.get(name, 0),
            intake.refusal(name, facts.state, has_children=name in parents),
        )


def _whole(picture: Picture, *, simulated: bool) -> Space:
    """Return the space on all nodes that are ready, and are simulated or not."""
    most: Amounts = {}
    free: Amounts = {}
    for node in picture.nodes.values():
        if node.state == "Ready" and node.simulated is simulated:
            most = amounts.add(most, node.allocatable)
            rest = amounts.subtract(node.allocatable, picture.on_node.get(node.name, {}))
            free = amounts.add(free, {each: max(amount, 0) for each, amount in rest.items()})
    return Space(most, free)


def _limits(picture: Picture, name: str, guarantees: Guarantees) -> tuple[Amounts, Amounts]:
    """Return the lowest capability of a queue and of those above it, and the least that one of them has left for it."""
    lowest: Amounts = {}
    rest: Amounts = {}
    for above in picture.line(name):
        most = amounts_of(picture.queues[above].queue.spec.capability)
        unused = amounts.subtract(
            amounts.subtract(most, guarantees.taken.get(above, {})), guarantees.beside(name, above)
        )
        lowest |= {each: min(lowest.get(each, most[each]), most[each]) for each in most}
        rest |= {each: max(min(rest.get(each, unused[each]), unused[each]), 0) for each in most}
    return lowest, rest


def _within(space: Space, limits: Amounts, rest: Amounts) -> Space:
    """Return the part of a space that a queue with these limits may use, and has left."""
    most = {each: min(amount, limits.get(each, amount)) for each, amount in space.most.items()}
    free = {each: min(amount, rest.get(each, amount)) for each, amount in space.free.items()}
    return Space(most, free)


def jobs_by_queue(visible: frozenset[str] | access.Everywhere, phase: str | tuple[str, ...]) -> dict[str, int]:
    """Return how many jobs of a phase, or of some, each queue has in the namespaces that a reader may see."""
    return store.count(JOBS, by="queue", namespace=scope.namespaces_of("", visible), phase=phase)
