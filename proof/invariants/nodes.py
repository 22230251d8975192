"""What nodes are given to run."""

from __future__ import annotations

from kube import amounts
from kube.amounts import Amounts
from proof.invariants.invariant import Invariant
from proof.invariants.picture import Picture, Step
from proof.invariants.views import NODES, PODS, Node, Pod, key_of


class NodeRoom(Invariant):
    """Source: reference volcano-scheduler §1.2; design §7, "no node overcommitted".

    Judged when a pod is bound, or asks for more. A node that shrinks
    overcommits itself; so does whoever makes a pod with a nodeName, whom no
    scheduler is asked about: such pods count, and are not judged.
    """

    name = "node not over its allocatable"
    meaning = "What the unfinished pods bound to a node ask for is never more than it offers, pods included."
    kinds = (PODS, NODES)

    def __init__(self, picture: Picture) -> None:
        super().__init__(picture)
        self._offers: dict[str, Amounts | None] = {}  # None where there is no such node
        self._changed: dict[str, int] = {}  # when what a node offers became another amount

    def take(self, step: Step) -> None:
        if step.change.resource == NODES:
            self._note(step)
        elif type(step.before) is Pod and type(step.after) is Pod and _takes_more(step.before, step.after):
            self._judge(step, step.before, step.after)

    def _note(self, step: Step) -> None:
        name = step.change.name
        offers = step.after.offers if type(step.after) is Node else None
        if name in self._offers and offers != self._offers[name]:
            self._changed[name] = self.picture.at
        self._offers[name] = offers

    def _judge(self, step: Step, before: Pod, after: Pod) -> None:
        node, request = after.node, after.ask.request
        taken = before.ask.request if before.node == node else {}
        if self.picture.is_recent(self._changed.get(node, 0)):
            return
        offers = self._offers.get(node)
        if offers is None:
            raise self.broken(key_of(step.change), f"is bound to {node}, and there is no such node")
        used = self.picture.used[node]
        for name, amount in request.items():
            if amount > taken.get(name, 0) and used[name] > offers.get(name, 0):
                usage = f"{amounts.show(name, used[name])} of {amounts.show(name, offers.get(name, 0))}"
                raise self.broken(key_of(step.change), f"with it {node} holds {usage}")


def _takes_more(before: Pod, after: Pod) -> bool:
    """Say whether a pod may take more of its node than before."""
    return after.holds and (before.node != after.node or before.ask is not after.ask)


INVARIANTS = (NodeRoom,)
