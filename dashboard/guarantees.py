"""The unused part of queues' guarantees, which is lent to nobody."""

from __future__ import annotations

from dashboard.cluster_usage import ROOT, Picture, amounts_of
from kube import amounts
from kube.amounts import Amounts


class Guarantees:
    """What each queue reserves, with those below it: its guarantee or, if that is more, what they reserve and use."""

    def __init__(self, picture: Picture) -> None:
        self.taken = picture.subtree_uses()
        self._picture = picture
        self._cached: dict[str, Amounts] = {}
        self._unused_below: dict[str, Amounts] = {}

    def beside(self, name: str, top: str = "") -> Amounts:
        """Return what is reserved and unused beside a queue and its ancestors, up to the ancestor `top` or up to root."""
        reserved: Amounts = {}
        seen: set[str] = set()
        while name in self._picture.queues and name not in seen and name != (top or ROOT):
            seen.add(name)
            parent = self._picture.queues[name].parent
            beside = self._all_below(parent)
            reserved = amounts.add(reserved, beside if parent == name else amounts.subtract(beside, self._unused(name)))
            name = parent
        return {each: amount for each, amount in reserved.items() if amount}

    def _all_below(self, name: str) -> Amounts:
        """Return what the children of a queue reserve and do not use."""
        if name not in self._unused_below:
            total: Amounts = {}
            for queue in self._picture.children(name):
                total = amounts.add(total, self._unused(queue.name))
            self._unused_below[name] = total
        return self._unused_below[name]

    def _unused(self, name: str) -> Amounts:
        unused = amounts.subtract(self._reserved_by(name), self.taken.get(name, {}))
        return {each: amount for each, amount in unused.items() if amount > 0}

    def _reserved_by(self, name: str) -> Amounts:
        """Return what a queue reserves and uses, with those below it; in a circle of parents each queue counts once."""
        if name not in self._cached:
            self._cached[name] = {}
            inside = dict(self._picture.in_queue.get(name, {}))
            for below in self._picture.children(name):
                inside = amounts.add(inside, self._reserved_by(below.name))
            own = amounts_of(self._picture.queues[name].queue.spec.guarantee.resource)
            self._cached[name] = {each: max(inside.get(each, 0), own.get(each, 0)) for each in {**inside, **own}}
        return self._cached[name]
