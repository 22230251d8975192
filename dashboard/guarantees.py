"""What guarantees of queues keep from others, as far as it is not used: it is lent to nobody."""

from __future__ import annotations

from dashboard.cluster_usage import ROOT, Picture, amounts_of
from kube import amounts
from kube.amounts import Amounts


class Guarantees:
    """What each queue keeps, with those below it: its guarantee, or what they keep and use where that is more."""

    def __init__(self, picture: Picture) -> None:
        self.taken = picture.subtree_uses()
        self._picture = picture
        self._held: dict[str, Amounts] = {}
        self._unused_below: dict[str, Amounts] = {}

    def beside(self, name: str, top: str = "") -> Amounts:
        """Return what is kept and not used beside a queue and those above it, up to one of these or, without, to the cluster."""
        kept: Amounts = {}
        seen: set[str] = set()
        while name in self._picture.queues and name not in seen and name != (top or ROOT):
            seen.add(name)
            parent = self._picture.queues[name].parent
            beside = self._all_below(parent)
            kept = amounts.add(kept, beside if parent == name else amounts.subtract(beside, self._unused(name)))
            name = parent
        return {each: amount for each, amount in kept.items() if amount}

    def _all_below(self, name: str) -> Amounts:
        """Return what the queues right below a queue keep and do not use."""
        if name not in self._unused_below:
            total: Amounts = {}
            for queue in self._picture.children(name):
                total = amounts.add(total, self._unused(queue.name))
            self._unused_below[name] = total
        return self._unused_below[name]

    def _unused(self, name: str) -> Amounts:
        unused = amounts.subtract(self._kept(name), self.taken.get(name, {}))
        return {each: amount for each, amount in unused.items() if amount > 0}

    def _kept(self, name: str) -> Amounts:
        """Return what a queue keeps and uses, with those below it; of a circle of parents each queue counts once."""
        if name not in self._held:
            self._held[name] = {}
            inside = dict(self._picture.in_queue.get(name, {}))
            for below in self._picture.children(name):
                inside = amounts.add(inside, self._kept(below.name))
            own = amounts_of(self._picture.queues[name].queue.spec.guarantee.resource)
            self._held[name] = {each: max(inside.get(each, 0), own.get(each, 0)) for each in {**inside, **own}}
        return self._held[name]
